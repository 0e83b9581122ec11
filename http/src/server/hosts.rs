//! The names by which a server may be called, against pages that call it by a name of their own.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};

use hyper::header::{HOST, ORIGIN};
use hyper::http::request::Parts;

/// The names that are allowed beside those of this machine.
#[derive(Debug, Clone, Default)]
pub(super) struct Hosts(Vec<String>);

impl Hosts {
    pub(super) fn allow(&mut self, host: &str) {
        self.0.push(host.to_owned());
    }

    /// Returns why a request is refused that came to this address of the server. `known` is a value
    /// of `Host` that was allowed there, and becomes the one of this request.
    pub(super) fn refusal(
        &self,
        head: &Parts,
        local: Option<SocketAddr>,
        known: &RefCell<Option<Box<[u8]>>>,
    ) -> Option<&'static str> {
        let headers = &head.headers;
        let host = headers
            .get(HOST)
            .filter(|host| known.borrow().as_deref() != Some(host.as_bytes()));
        if let Some(host) = host {
            if !self.is_allowed(host.to_str().unwrap_or_default(), local) {
                return Some("the host is not allowed");
            }
            known.replace(Some(host.as_bytes().into()));
        }
        if let Some(host) = head.uri.host()
            && !self.is_allowed(host, local)
        {
            return Some("the host is not allowed");
        }
        let origin = headers.get(ORIGIN)?.to_str().unwrap_or_default();
        let (_, authority) = origin.split_once("://").unwrap_or_default();
        match self.is_allowed(authority, local) {
            true => None,
            false => Some("the origin is not allowed"),
        }
    }

    fn is_allowed(&self, authority: &str, local: Option<SocketAddr>) -> bool {
        let name = without_port(authority);
        let address: Option<IpAddr> = name.trim_matches(['[', ']']).parse().ok();
        if let Some(address) = address
            && (address.is_loopback()
                || local.is_some_and(|it| it.ip().to_canonical() == address.to_canonical()))
        {
            return true;
        }
        let is_name = |host: &str| name.eq_ignore_ascii_case(host);
        is_name("localhost") || self.0.iter().any(|host| is_name(host))
    }
}

/// Returns the name before `:port`.
fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((name, port))
            if port.bytes().all(|it| it.is_ascii_digit())
                && (!name.contains(':') || name.ends_with(']')) =>
        {
            name
        }
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use hyper::Request;
    use hyper::header::{HOST, HeaderValue, ORIGIN};

    use super::Hosts;

    fn is_refused(host: &str, origin: Option<&str>) -> bool {
        let mut hosts = Hosts::default();
        hosts.allow("Example.org");
        let mut head = Request::new(()).into_parts().0;
        let headers = &mut head.headers;
        headers.insert(HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        let known = RefCell::default();
        let local = "10.0.0.7:80".parse().ok();
        let refusal = hosts.refusal(&head, local, &known);
        assert_eq!(hosts.refusal(&head, local, &known), refusal, "again");
        refusal.is_some()
    }

    #[test]
    fn an_address_may_be_named_in_the_form_of_either_version() {
        let hosts = Hosts::default();
        let mut head = Request::new(()).into_parts().0;
        for (host, is_refused) in [
            ("10.0.0.7", false),
            ("[::ffff:10.0.0.7]", false),
            ("10.0.0.8", true),
        ] {
            head.headers.insert(HOST, HeaderValue::from_static(host));
            for local in ["[::ffff:10.0.0.7]:80", "10.0.0.7:80"] {
                let refusal = hosts.refusal(&head, local.parse().ok(), &RefCell::default());
                assert_eq!(refusal.is_some(), is_refused, "{host} at {local}");
            }
        }
    }

    #[test]
    fn this_machine_and_allowed_names_may_be_called() {
        let allowed = [
            "localhost",
            "LocalHost:5050",
            "127.0.0.1:80",
            "127.8.8.8",
            "[::1]:80",
            "[::1]",
            "10.0.0.7",
            "example.org",
            "EXAMPLE.ORG:443",
        ];
        for host in allowed {
            assert!(!is_refused(host, None), "{host}");
            assert!(
                !is_refused("localhost", Some(&format!("http://{host}"))),
                "{host}"
            );
        }
        let others = [
            "",
            "evil.org",
            "localhost.evil.org",
            "10.0.0.8",
            "example.org.",
            "127.0.0.1.evil.org",
            "localhost:80:90",
            "a@localhost",
            "[::2]",
            "[fe80::1]:80",
        ];
        for host in others {
            assert!(is_refused(host, None), "{host}");
            assert!(
                is_refused("localhost", Some(&format!("http://{host}"))),
                "{host}"
            );
        }
        assert!(is_refused("localhost", Some("null")));
    }
}

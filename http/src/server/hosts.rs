//! The names by which a server may be called, against pages that call it by a name of their own.

use std::net::{IpAddr, SocketAddr};

use crate::wire::Authority;

/// The names that are allowed beside those of this machine.
#[derive(Debug, Clone, Default)]
pub(super) struct Hosts(Vec<String>);

impl Hosts {
    /// Allows a name. Returns false if it is none, or has a port.
    pub(super) fn allow(&mut self, host: &str) -> bool {
        let parsed = Authority::parse(host).filter(|it| it.port.is_none() && !it.name.is_empty());
        parsed.map(|it| self.0.push(it.name.to_owned())).is_some()
    }

    /// Returns whether the server may be called so, at this address of its own.
    pub(super) fn is_allowed(&self, host: &str, local: Option<SocketAddr>) -> bool {
        let Some(Authority { name, .. }) = Authority::parse(host) else {
            return false;
        };
        let address: Option<IpAddr> = name.parse().ok();
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

#[cfg(test)]
mod tests {
    use super::Hosts;

    fn is_allowed(host: &str, local: &str) -> bool {
        let mut hosts = Hosts::default();
        assert!(hosts.allow("Example.org."));
        hosts.is_allowed(host, local.parse().ok())
    }

    #[test]
    fn what_is_allowed_is_a_name_without_a_port() {
        let allow = |host| Hosts::default().allow(host);
        assert!(allow("[::2]") && allow("a.b"));
        for wrong in ["", "a:80", "http://a", "a/b", "a@b"] {
            assert!(!allow(wrong), "{wrong}");
        }
    }

    #[test]
    fn an_address_may_be_named_in_the_form_of_either_version() {
        for (host, is_right) in [
            ("10.0.0.7", true),
            ("[::ffff:10.0.0.7]", true),
            ("10.0.0.8", false),
        ] {
            for local in ["[::ffff:10.0.0.7]:80", "10.0.0.7:80"] {
                assert_eq!(is_allowed(host, local), is_right, "{host} at {local}");
            }
        }
    }

    #[test]
    fn this_machine_and_allowed_names_may_be_called() {
        let allowed = [
            "localhost",
            "localhost.",
            "LocalHost:5050",
            "127.0.0.1:80",
            "127.8.8.8",
            "[::1]:80",
            "[::1]",
            "10.0.0.7",
            "example.org",
            "example.org.",
            "EXAMPLE.ORG:443",
        ];
        for host in allowed {
            assert!(is_allowed(host, "10.0.0.7:80"), "{host}");
        }
        let others = [
            "",
            "evil.org",
            "localhost.evil.org",
            "10.0.0.8",
            "127.0.0.1.evil.org",
            "localhost:80:90",
            "a@localhost",
            "[::2]",
            "[fe80::1]:80",
        ];
        for host in others {
            assert!(!is_allowed(host, "10.0.0.7:80"), "{host}");
        }
    }
}

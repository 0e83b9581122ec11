//! Who may call a server: by which name, from the pages of which sites, and with or without marks.
//!
//! A page of another site reaches no actor, unless its origin is allowed or the type is readable.

use std::cell::RefCell;
use std::net::SocketAddr;

use hyper::header::{HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::http::request::Parts;

use super::hosts::Hosts;
use super::peers::{Proxies, RemoteClient, forwarded};
use crate::wire::Authority;

/// The field in which a browser says which site a request comes from.
const SITE: &str = "sec-fetch-site";

#[derive(Debug, Clone, Default)]
pub(super) struct Callers {
    pub(super) hosts: Hosts,
    /// The origins of other pages that may call.
    origins: Vec<String>,
    /// A request that names no site may read from other machines as well.
    pub(super) allows_unmarked: bool,
}

/// The place at which a connection has come, and what it has shown so far.
pub(super) struct Door<'a> {
    pub(super) local: Option<SocketAddr>,
    /// The proxies, if one of them has come. It says for whom it asks.
    proxies: Option<&'a Proxies>,
    /// The value of `Host` that was allowed last. Most connections have no other one.
    host: RefCell<Option<Box<[u8]>>>,
}

/// A request that may be answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Caller {
    /// No page of another site has sent it, or one that may read all.
    pub(super) may_read: bool,
    /// The origin of another page that may read the answer.
    pub(super) origin: Option<HeaderValue>,
    /// The client for which a proxy asks.
    pub(super) peer: Option<RemoteClient>,
}

/// Why a request may not be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallRefusal {
    pub(super) status: u16,
    pub(super) why: &'static str,
    /// The cause by which it is counted.
    pub(super) cause: &'static str,
}

impl CallRefusal {
    const HOST: CallRefusal = CallRefusal {
        status: 403,
        why: "the host is not allowed",
        cause: "host",
    };
    const ORIGIN: CallRefusal = CallRefusal {
        status: 403,
        why: "the origin is not allowed",
        cause: "origin",
    };
    const ORIGINS: CallRefusal = CallRefusal {
        status: 400,
        why: "there is more than one Origin",
        cause: "origin",
    };
    /// Of a type that is not readable.
    pub(super) const SITE: CallRefusal = CallRefusal {
        status: 403,
        why: "another site may not read this",
        cause: "site",
    };
}

impl<'a> Door<'a> {
    pub(super) fn new(local: Option<SocketAddr>, proxies: Option<&'a Proxies>) -> Self {
        Door {
            local,
            proxies,
            host: RefCell::default(),
        }
    }

    /// Returns whether only this machine reaches it.
    pub(super) fn is_loopback(&self) -> bool {
        let local = self.local;
        local.is_some_and(|local| local.ip().to_canonical().is_loopback())
    }
}

impl Callers {
    /// Allows the pages of an origin. Returns false if it is none.
    pub(super) fn allow_origin(&mut self, origin: &str) -> bool {
        let Some(parsed) = Origin::parse(origin) else {
            return false;
        };
        // Browsers omit the usual port.
        let text = match origin.rsplit_once(':') {
            Some((text, _)) if parsed.host.port == Some(parsed.usual) => text,
            _ => origin.trim_end_matches(':'),
        };
        self.origins.push(text.to_ascii_lowercase());
        true
    }

    /// Returns whether answers differ by the origin of a page.
    pub(super) fn have_origins(&self) -> bool {
        !self.origins.is_empty()
    }

    /// Judges a request by its head.
    pub(super) fn judge(&self, head: &Parts, door: &Door<'_>) -> Result<Caller, CallRefusal> {
        let headers = &head.headers;
        let host = match head.uri.authority() {
            // Then `Host` says nothing.
            Some(host) => Some(host.as_str()),
            None => headers.get(HOST).map(|it| it.to_str().unwrap_or_default()),
        };
        self.check_host(host, door)?;
        let mut origins = headers.get_all(ORIGIN).iter();
        let origin = match (origins.next(), origins.next()) {
            (_, Some(_)) => return Err(CallRefusal::ORIGINS),
            (origin, None) => origin,
        };
        let peer = door.proxies.and_then(|proxies| forwarded(headers, proxies));
        let Some(origin) = origin else {
            return Ok(Caller {
                may_read: self.may_read(headers, door),
                origin: None,
                peer,
            });
        };
        let text = origin.to_str().unwrap_or_default();
        let is_other = self.origins.iter().any(|it| it.eq_ignore_ascii_case(text));
        // A page of the same host with another scheme is one of another site.
        let is_own =
            || is_of_site(headers) && Origin::parse(text).is_some_and(|origin| origin.is_at(host));
        if !is_other && !is_own() {
            return Err(CallRefusal::ORIGIN);
        }
        Ok(Caller {
            may_read: true,
            origin: is_other.then(|| origin.clone()),
            peer,
        })
    }

    fn check_host(&self, host: Option<&str>, door: &Door<'_>) -> Result<(), CallRefusal> {
        let Some(host) = host else { return Ok(()) };
        if door.host.borrow().as_deref() == Some(host.as_bytes()) {
            return Ok(());
        }
        if !self.hosts.is_allowed(host, door.local) {
            return Err(CallRefusal::HOST);
        }
        door.host.replace(Some(host.as_bytes().into()));
        Ok(())
    }

    /// Returns whether no page of another site has sent this, as far as it is marked.
    fn may_read(&self, headers: &HeaderMap, door: &Door<'_>) -> bool {
        match headers.contains_key(SITE) {
            true => is_of_site(headers),
            // Browsers omit the mark where the connection is not trusted.
            false => {
                let is_here = door.is_loopback() && door.proxies.is_none();
                is_here || self.allows_unmarked
            }
        }
    }
}

/// Returns whether no mark says that a page of another site has sent this.
fn is_of_site(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all(SITE).iter();
    sites.all(|site| site == "same-origin" || site == "none")
}

/// The origin of a page of the web.
struct Origin<'a> {
    host: Authority<'a>,
    /// The port if none is named.
    usual: u16,
}

impl<'a> Origin<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (scheme, host) = text.split_once("://")?;
        let host = Authority::parse(host).filter(|host| !host.name.is_empty())?;
        let usual = match scheme {
            _ if scheme.eq_ignore_ascii_case("http") => 80,
            _ if scheme.eq_ignore_ascii_case("https") => 443,
            // An application may claim to be at any host.
            _ => return None,
        };
        Some(Origin { host, usual })
    }

    /// Returns whether the page comes from this host, with the same port. A proxy may have another
    /// scheme than the server.
    fn is_at(&self, host: Option<&str>) -> bool {
        let Some(host) = host.and_then(Authority::parse) else {
            return false;
        };
        let port = |it: Authority<'_>| it.port.unwrap_or(self.usual);
        host.name.eq_ignore_ascii_case(self.host.name) && port(host) == port(self.host)
    }
}

#[cfg(test)]
mod tests {
    use hyper::Request;
    use hyper::header::{HOST, HeaderName, HeaderValue, ORIGIN};

    use super::{CallRefusal, Caller, Callers, Door, SITE};

    const AT_HOME: &str = "127.0.0.1:5050";
    const EXPOSED: &str = "10.0.0.7:5050";

    fn callers() -> Callers {
        let mut callers = Callers::default();
        assert!(callers.hosts.allow("example.org"));
        assert!(callers.allow_origin("https://Friend.org"));
        callers
    }

    fn judge(
        callers: &Callers,
        local: &str,
        fields: &[(HeaderName, &str)],
    ) -> Result<Caller, CallRefusal> {
        let mut head = Request::new(()).into_parts().0;
        for (name, value) in fields {
            head.headers
                .append(name, HeaderValue::from_str(value).unwrap());
        }
        let door = Door::new(local.parse().ok(), None);
        let judged = callers.judge(&head, &door);
        assert_eq!(callers.judge(&head, &door), judged, "again");
        judged
    }

    fn of_origin(host: &str, origin: &str) -> Result<Caller, CallRefusal> {
        judge(&callers(), AT_HOME, &[(HOST, host), (ORIGIN, origin)])
    }

    #[test]
    fn a_page_may_call_the_host_and_port_from_which_it_comes() {
        for (host, origin) in [
            ("localhost:5050", "http://localhost:5050"),
            ("LOCALHOST", "http://localhost"),
            ("localhost:80", "http://localhost"),
            ("example.org", "https://example.org"),
            ("example.org:443", "https://example.org"),
            ("[::1]:5050", "http://[::1]:5050"),
        ] {
            let own = Caller {
                may_read: true,
                ..Caller::default()
            };
            assert_eq!(of_origin(host, origin), Ok(own), "{host} {origin}");
        }
        for (host, origin) in [
            ("localhost:5050", "http://localhost:3000"),
            ("localhost:5050", "http://localhost"),
            ("localhost:5050", "http://127.0.0.1:5050"),
            ("example.org", "http://example.org:443"),
            ("example.org", "https://evil.org"),
            ("example.org", "null"),
            ("example.org", "https://user@example.org"),
            ("example.org", "example.org"),
            ("example.org", "https://friend.org:444"),
            ("example.org", "http://friend.org"),
            ("example.org", ""),
        ] {
            let refused = Err(CallRefusal::ORIGIN);
            assert_eq!(of_origin(host, origin), refused, "{host} {origin}");
        }
        let twice = [(HOST, "localhost"), (ORIGIN, "null"), (ORIGIN, "null")];
        assert_eq!(
            judge(&callers(), AT_HOME, &twice),
            Err(CallRefusal::ORIGINS)
        );
    }

    #[test]
    fn a_page_of_an_allowed_origin_may_read_the_answer() {
        let friend = of_origin("example.org", "https://friend.org").unwrap();
        assert_eq!(friend.origin.unwrap(), "https://friend.org");
        assert!(!Callers::default().allow_origin("friend.org"));
        assert!(!Callers::default().allow_origin("https://friend.org/path"));
        assert!(!Callers::default().allow_origin("null"));
        assert!(!Callers::default().allow_origin("capacitor://localhost"));
    }

    #[test]
    fn an_allowed_origin_may_name_its_usual_port() {
        for (given, text) in [
            ("https://friend.org:443", "https://friend.org"),
            ("http://friend.org:80", "http://friend.org"),
            ("http://friend.org:", "http://friend.org"),
            ("http://[::2]:80", "http://[::2]"),
            ("http://[::2]", "http://[::2]"),
            ("http://friend.org:443", "http://friend.org:443"),
        ] {
            let mut callers = callers();
            assert!(callers.allow_origin(given), "{given}");
            let fields = [(HOST, "example.org"), (ORIGIN, text)];
            let judged = judge(&callers, AT_HOME, &fields);
            assert_eq!(judged.unwrap().origin.unwrap(), text, "{given}");
        }
    }

    #[test]
    fn a_page_of_the_same_host_that_says_it_is_of_another_site_is_refused() {
        let site = HeaderName::from_static(SITE);
        let of_site = |mark: &str| {
            let own = [(HOST, "example.org"), (ORIGIN, "http://example.org")];
            let fields: Vec<_> = own.into_iter().chain([(site.clone(), mark)]).collect();
            judge(&callers(), AT_HOME, &fields).map(|caller| caller.may_read)
        };
        assert_eq!(of_site("same-origin"), Ok(true));
        assert_eq!(of_site("same-site"), Err(CallRefusal::ORIGIN));
        assert_eq!(of_site("cross-site"), Err(CallRefusal::ORIGIN));
        let app = of_origin("localhost", "capacitor://localhost");
        assert_eq!(app, Err(CallRefusal::ORIGIN));
    }

    #[test]
    fn what_a_browser_says_of_the_site_decides_who_may_read() {
        let site = HeaderName::from_static(SITE);
        let may_read = |callers: &Callers, local: &str, sites: &[&str]| {
            let host = if local == AT_HOME {
                "localhost"
            } else {
                "10.0.0.7"
            };
            let sites = sites.iter().map(|value| (site.clone(), *value));
            let fields: Vec<_> = [(HOST, host)].into_iter().chain(sites).collect();
            judge(callers, local, &fields).unwrap().may_read
        };
        let closed = callers();
        for local in [AT_HOME, EXPOSED] {
            assert!(may_read(&closed, local, &["same-origin"]));
            assert!(may_read(&closed, local, &["none"]));
            assert!(!may_read(&closed, local, &["same-site"]));
            assert!(!may_read(&closed, local, &["cross-site"]));
            assert!(!may_read(&closed, local, &["none", "cross-site"]));
        }
        assert!(may_read(&closed, AT_HOME, &[]) && !may_read(&closed, EXPOSED, &[]));
        let open = Callers {
            allows_unmarked: true,
            ..closed
        };
        assert!(may_read(&open, EXPOSED, &[]));
        assert!(!may_read(&open, EXPOSED, &["cross-site"]));
    }

    #[test]
    fn a_host_that_is_not_allowed_is_refused_before_all_else() {
        let evil = [(HOST, "evil.org"), (ORIGIN, "null"), (ORIGIN, "null")];
        assert_eq!(judge(&callers(), AT_HOME, &evil), Err(CallRefusal::HOST));
    }
}

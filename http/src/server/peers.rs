//! Clients by their addresses, and how much of a server each of them has.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::header::{FORWARDED, HeaderMap};

/// A client: its address, or the first 64 bits of an address of IPv6, which one client has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RemoteClient(IpAddr);

impl RemoteClient {
    pub(super) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = address.to_bits() & (u128::MAX << 64);
                RemoteClient(Ipv6Addr::from_bits(network).into())
            }
            address => RemoteClient(address),
        }
    }
}

/// The proxies that are trusted to say for whom they ask, and whose connections are counted.
#[derive(Debug, Default)]
pub(super) struct Proxies {
    trusted: Vec<IpAddr>,
    pub(super) counts_loopback: bool,
}

impl Proxies {
    pub(super) fn trust(&mut self, address: IpAddr) {
        self.trusted.push(address.to_canonical());
    }

    pub(super) fn has(&self, address: IpAddr) -> bool {
        self.trusted.contains(&address.to_canonical())
    }

    /// Returns the client whose connections are counted, if they are.
    pub(super) fn counted(&self, address: IpAddr) -> Option<RemoteClient> {
        let is_here = address.to_canonical().is_loopback() && !self.counts_loopback;
        let is_free = is_here || self.has(address);
        (!is_free).then(|| RemoteClient::of(address))
    }
}

/// Returns the client for which a proxy asks, if it says so. Each proxy appends what it knows, so the last
/// address counts that is no proxy itself.
pub(super) fn forwarded(headers: &HeaderMap, proxies: &Proxies) -> Option<RemoteClient> {
    let fields = headers.get_all(FORWARDED).iter().rev();
    for field in fields {
        for element in parts(field.to_str().ok()?, ',').into_iter().rev() {
            let mut pairs = parts(element, ';').into_iter();
            let client = pairs.find_map(|pair| {
                let (key, client) = pair.split_once('=')?;
                key.trim().eq_ignore_ascii_case("for").then_some(client)
            });
            let address = address(client?.trim())?;
            if !proxies.has(address) {
                return Some(RemoteClient::of(address));
            }
        }
    }
    None
}

/// Splits a value where the sign is not within quotes.
fn parts(value: &str, sign: char) -> Vec<&str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let is_sign = |it: char| {
        let is_plain = !std::mem::take(&mut is_escaped);
        match it {
            '"' if is_plain => is_quoted = !is_quoted,
            '\\' if is_quoted && is_plain => is_escaped = true,
            _ => {}
        }
        it == sign && !is_quoted
    };
    value.split(is_sign).collect()
}

/// Returns the address of a client, which may have a port, and quotes around both.
fn address(client: &str) -> Option<IpAddr> {
    let client = client.strip_prefix('"').unwrap_or(client);
    let client = client.strip_suffix('"').unwrap_or(client);
    let without_port = || match client.strip_prefix('[') {
        Some(rest) => Some(rest.split_once(']')?.0),
        // A port need not be a number.
        None => client.split(':').next(),
    };
    // Some proxies write no brackets.
    client.parse().ok().or_else(|| without_port()?.parse().ok())
}

/// How many requests are being answered for each client of proxies.
#[derive(Debug, Default)]
pub(super) struct PeerRequests(Mutex<HashMap<RemoteClient, usize>>);

impl PeerRequests {
    fn counts(&self) -> MutexGuard<'_, HashMap<RemoteClient, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request, unless the client has so many already.
    pub(super) fn begin(&self, peer: RemoteClient, most: usize) -> bool {
        let mut counts = self.counts();
        let count = counts.entry(peer).or_default();
        let has_room = *count < most;
        *count += usize::from(has_room);
        has_room
    }

    pub(super) fn end(&self, peer: RemoteClient) {
        let mut counts = self.counts();
        if let Some(count) = counts.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&peer);
            }
        }
    }
}

/// The share of a client of a proxy, as long as this exists.
pub(super) struct PeerShare {
    requests: Arc<PeerRequests>,
    peer: RemoteClient,
}

impl PeerShare {
    /// Counts a request that goes on, unless the client has so many already.
    pub(super) fn begin(
        requests: &Arc<PeerRequests>,
        peer: RemoteClient,
        most: usize,
    ) -> Option<Self> {
        let requests = requests.begin(peer, most).then(|| requests.clone())?;
        Some(PeerShare { requests, peer })
    }
}

impl Drop for PeerShare {
    fn drop(&mut self) {
        self.requests.end(self.peer);
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderMap, HeaderValue};

    use super::*;

    fn peer(address: &str) -> RemoteClient {
        RemoteClient::of(address.parse().unwrap())
    }

    #[test]
    fn addresses_of_one_network_of_ipv6_are_one_client() {
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:1"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
        assert_eq!(peer("::ffff:10.0.0.7"), peer("10.0.0.7"));
        assert_ne!(peer("10.0.0.7"), peer("10.0.0.8"));
    }

    #[test]
    fn the_last_proxy_says_who_asks() {
        let of = |fields: &[&str]| {
            let mut headers = HeaderMap::new();
            for field in fields {
                headers.append("forwarded", HeaderValue::from_str(field).unwrap());
            }
            let mut proxies = Proxies::default();
            proxies.trust("10.0.0.1".parse().unwrap());
            forwarded(&headers, &proxies)
        };
        let v4 = Some(peer("192.0.2.60"));
        assert_eq!(of(&["for=192.0.2.60;proto=http;by=203.0.113.43"]), v4);
        assert_eq!(of(&["for=1.2.3.4, For=\"192.0.2.60:4711\""]), v4);
        assert_eq!(of(&["for=1.2.3.4", "proto=https; for=192.0.2.60"]), v4);
        let v6 = Some(peer("2001:db8::17"));
        assert_eq!(of(&["for=\"[2001:db8::17]:4711\""]), v6);
        assert_eq!(of(&["for=\"[2001:db8::17]\""]), v6);
        assert_eq!(of(&["for=\"2001:db8::17\""]), v6);
        // What a client has chosen within quotes says nothing.
        for hidden in [
            "for=192.0.2.60;host=\"a,for=1.2.3.4\"",
            "host=\"a;for=1.2.3.4\";for=192.0.2.60",
            "host=\"a\\\",for=1.2.3.4\";for=192.0.2.60",
            "for=\"192.0.2.60:_port\"",
            "for=192.0.2.60, for=10.0.0.1",
        ] {
            assert_eq!(of(&[hidden]), v4, "{hidden}");
        }
        assert_eq!(of(&["for=192.0.2.60", "for=10.0.0.1, for=10.0.0.1"]), v4);
        for nobody in [&[][..], &["for=unknown"], &["for=_hidden"], &["proto=http"]] {
            assert_eq!(of(nobody), None, "{nobody:?}");
        }
    }

    #[test]
    fn a_client_has_so_many_requests_and_no_more() {
        let (requests, one, other) = (PeerRequests::default(), peer("1.1.1.1"), peer("2.2.2.2"));
        assert!(requests.begin(one, 2) && requests.begin(one, 2) && !requests.begin(one, 2));
        assert!(requests.begin(other, 2));
        requests.end(one);
        assert!(requests.begin(one, 2));
        for peer in [one, one, other] {
            requests.end(peer);
        }
        assert!(requests.counts().is_empty());
    }

    #[test]
    fn loopback_and_proxies_are_not_counted() {
        let mut proxies = Proxies::default();
        proxies.trust("10.0.0.1".parse().unwrap());
        for free in [
            "127.0.0.2",
            "::1",
            "::ffff:127.0.0.1",
            "10.0.0.1",
            "::ffff:10.0.0.1",
        ] {
            assert_eq!(proxies.counted(free.parse().unwrap()), None, "{free}");
        }
        let other = "10.0.0.2".parse().unwrap();
        assert_eq!(proxies.counted(other), Some(RemoteClient::of(other)));
    }
}

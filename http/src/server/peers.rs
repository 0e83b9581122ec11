//! Clients by their addresses, and how much of a server each of them has.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// Returns the client for which a proxy asks, if it says so. Each proxy appends what it knows, so the
/// last word counts.
pub(super) fn forwarded(headers: &HeaderMap) -> Option<RemoteClient> {
    let last = headers.get_all(FORWARDED).iter().next_back()?;
    let last = last.to_str().ok()?.rsplit(',').next()?;
    let mut pairs = last.split(';').filter_map(|pair| pair.split_once('='));
    let (_, client) = pairs.find(|(key, _)| key.trim().eq_ignore_ascii_case("for"))?;
    let client = client.trim().trim_matches('"');
    let with_port = || client.parse::<SocketAddr>().map(|client| client.ip());
    let alone = client.trim_start_matches('[').trim_end_matches(']');
    let address = alone.parse().or_else(|_| with_port()).ok()?;
    Some(RemoteClient::of(address))
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
            forwarded(&headers)
        };
        let v4 = Some(peer("192.0.2.60"));
        assert_eq!(of(&["for=192.0.2.60;proto=http;by=203.0.113.43"]), v4);
        assert_eq!(of(&["for=1.2.3.4, For=\"192.0.2.60:4711\""]), v4);
        assert_eq!(of(&["for=1.2.3.4", "proto=https; for=192.0.2.60"]), v4);
        let v6 = Some(peer("2001:db8::17"));
        assert_eq!(of(&["for=\"[2001:db8::17]:4711\""]), v6);
        assert_eq!(of(&["for=\"[2001:db8::17]\""]), v6);
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

//! The connections that are greeting: at most [`MOST`] at a time.
//!
//! If there are more, the host with the most of them loses its oldest one. So connections that say
//! nothing hold up no other node.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use crate::engine::StopSignal;
use crate::link::lock;

/// The connections that may be greeting at the same time.
const MOST: usize = 64;

#[derive(Default)]
pub(super) struct Greetings(Mutex<GreetingTable>);

#[derive(Default)]
struct GreetingTable {
    /// The hosts and what ends each greeting, in the order in which they began.
    greetings: BTreeMap<u64, (IpAddr, Arc<StopSignal>)>,
    next: u64,
}

impl Greetings {
    /// Begins a greeting. It is to end when its signal is stopped.
    pub(super) fn begin(&self, host: IpAddr) -> (u64, Arc<StopSignal>) {
        let mut table = lock(&self.0);
        if table.greetings.len() >= MOST
            && let Some(oldest) = table.oldest_of_most()
            && let Some((_, stop)) = table.greetings.remove(&oldest)
        {
            stop.stop();
        }
        let number = table.next;
        table.next += 1;
        let stop = Arc::<StopSignal>::default();
        table.greetings.insert(number, (host, stop.clone()));
        (number, stop)
    }

    pub(super) fn end(&self, number: u64) {
        lock(&self.0).greetings.remove(&number);
    }
}

impl GreetingTable {
    /// Returns the oldest greeting of the host that has the most.
    fn oldest_of_most(&self) -> Option<u64> {
        let mut hosts: BTreeMap<IpAddr, (usize, u64)> = BTreeMap::new();
        for (number, (host, _)) in &self.greetings {
            hosts.entry(*host).or_insert((0, *number)).0 += 1;
        }
        let most = hosts.into_values().max_by_key(|(greetings, _)| *greetings);
        most.map(|(_, oldest)| oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_with_many_silent_connections_ends_none_of_another_host() {
        let greetings = Greetings::default();
        let [crowd, other] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        let (_, of_other) = greetings.begin(other);
        let of_crowd: Vec<_> = (0..1000).map(|_| greetings.begin(crowd).1).collect();
        assert!(!of_other.is_stopped());
        let (old, new) = of_crowd.split_at(1000 - (MOST - 1));
        assert!(old.iter().all(|stop| stop.is_stopped()));
        assert!(!new.iter().any(|stop| stop.is_stopped()));
    }

    #[test]
    fn a_greeting_that_has_ended_gives_its_room_to_another_one() {
        let greetings = Greetings::default();
        let host = IpAddr::from([10, 0, 0, 1]);
        let (_, first) = greetings.begin(host);
        for _ in 0..1000 {
            let (number, _) = greetings.begin(host);
            greetings.end(number);
        }
        assert!(!first.is_stopped());
    }
}

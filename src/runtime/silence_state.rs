//! What a runtime keeps to report waits that never end: the calls that wait, the addresses that
//! contexts have made, and what was looked at or reported before.
//!
//! Nothing is kept unless such waits are reported.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use super::warning::Warning;
use crate::sync::Mutex;
use crate::sync::global::{AtomicU64, Ordering};
use crate::task::NotedWaits;

/// A call of `block_on`.
pub(crate) trait IdleCall: Send + Sync {
    /// Returns what the call waits for, if it is idle and nothing else has a waker of it.
    fn waits(self: Arc<Self>) -> Option<NotedWaits>;
}

pub(crate) struct Silence {
    /// Whether waits that never end are reported.
    pub(crate) is_reported: bool,
    /// The reading of the activity with which a thread parks until it looks, or has looked.
    reading: AtomicU64,
    /// The reading of the last look.
    looked_at: AtomicU64,
    calls: Mutex<Vec<Weak<dyn IdleCall>>>,
    /// The number of addresses that the context of each actor has made, by the actor's number.
    own_addresses: Mutex<HashMap<u64, usize>>,
    /// The actors that a report has named.
    named: Mutex<BTreeSet<u64>>,
    /// What a worker has found while it sleeps, and reports when it is awake.
    found: Mutex<Vec<Warning>>,
}

/// No reading of an activity that is zero.
const NEVER: u64 = u64::MAX;

impl Silence {
    pub(super) fn new(is_reported: bool) -> Self {
        Silence {
            is_reported,
            reading: AtomicU64::new(NEVER),
            looked_at: AtomicU64::new(NEVER),
            calls: Mutex::new(Vec::new()),
            own_addresses: Mutex::new(HashMap::new()),
            named: Mutex::new(BTreeSet::new()),
            found: Mutex::new(Vec::new()),
        }
    }

    // Relaxed, here and below: the readings are compared only, and publish nothing.

    /// Notes that a thread parks until it looks. Returns false if nothing has happened since the
    /// last look.
    pub(super) fn begins(&self, reading: u64) -> bool {
        self.reading.store(reading, Ordering::Relaxed);
        self.looked_at.load(Ordering::Relaxed) != reading
    }

    /// Notes a look. Returns false, and notes none, if something has happened since a thread parked
    /// for it.
    pub(super) fn looks(&self, reading: u64) -> bool {
        let looks = self.reading.load(Ordering::Relaxed) == reading;
        if looks {
            self.looked_at.store(reading, Ordering::Relaxed);
        }
        looks
    }

    /// Notes that a look has reported something, which counts as activity itself.
    pub(super) fn has_reported(&self, reading: u64) {
        self.looked_at.store(reading, Ordering::Relaxed);
    }

    /// Adds a call that waits.
    pub(crate) fn enter(&self, call: Weak<dyn IdleCall>) {
        let mut calls = self.calls.lock();
        calls.retain(|call| call.strong_count() > 0);
        calls.push(call);
    }

    /// Returns what the calls wait for that are idle.
    pub(super) fn calls(&self) -> Vec<NotedWaits> {
        let calls = self.calls.lock().clone();
        let calls = calls.iter().filter_map(Weak::upgrade);
        calls.filter_map(IdleCall::waits).collect()
    }

    pub(super) fn count_address(&self, actor: u64, is_new: bool) {
        let mut counts = self.own_addresses.lock();
        if is_new {
            *counts.entry(actor).or_default() += 1;
        } else if let Some(count) = counts.get_mut(&actor) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&actor);
            }
        }
    }

    /// Returns the number of addresses of the actor that its context has made.
    pub(super) fn own_addresses(&self, actor: u64) -> usize {
        self.own_addresses.lock().get(&actor).copied().unwrap_or(0)
    }

    /// Notes that a report names the actor. Returns whether it is the first one.
    pub(super) fn is_news(&self, actor: u64) -> bool {
        self.named.lock().insert(actor)
    }

    pub(super) fn keep(&self, found: Vec<Warning>) {
        self.found.lock().extend(found);
    }

    pub(super) fn take(&self) -> Vec<Warning> {
        std::mem::take(&mut *self.found.lock())
    }
}

//! What a runtime keeps to report waits that never end: the calls that wait, the addresses that
//! contexts have made, and what was looked at or reported before.
//!
//! Nothing is kept unless such waits are reported.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use super::status::ActorStatus;
use super::warning::Warning;
use crate::error::Deadlock;
use crate::instant::Instant;
use crate::sync::Mutex;
use crate::sync::global::{AtomicU64, Ordering};
use crate::task::NotedWaits;

/// A call of `block_on`.
pub(crate) trait IdleCall: Send + Sync {
    /// Returns what the call waits for, if it is idle and nothing else has a waker of it.
    fn waits(self: Arc<Self>) -> Option<NotedWaits>;

    fn poll_again(self: Arc<Self>);
}

/// The path of a wait that never ends, and its actors.
pub(super) type EndlessWait = (Deadlock, Vec<ActorStatus>);

/// What a look has found.
#[derive(Default)]
pub(super) struct Findings {
    /// The waits that the look before has found, too.
    pub(super) warnings: Vec<Warning>,
    /// The actors to be polled again, like all calls, if there are other waits that never end.
    pub(super) suspects: Option<BTreeSet<u64>>,
}

impl Findings {
    pub(super) fn is_empty(&self) -> bool {
        self.warnings.is_empty() && self.suspects.is_none()
    }
}

pub(crate) struct Silence {
    /// Whether waits that never end are reported.
    pub(crate) is_reported: bool,
    /// The reading of the activity with which a thread parks until it looks, or has looked, and
    /// when the first one began.
    parked: Mutex<Option<(u64, Instant)>>,
    /// The reading of the last look.
    looked_at: AtomicU64,
    calls: Mutex<Vec<Weak<dyn IdleCall>>>,
    /// The number of addresses that the context of each actor has made, by the actor's number.
    own_addresses: Mutex<HashMap<u64, usize>>,
    /// The paths that were reported.
    named: Mutex<BTreeSet<String>>,
    /// The paths that the last look has found first.
    suspected: Mutex<BTreeSet<String>>,
    /// The actors whose last turn has ended with an ask to itself.
    own_asks: Mutex<BTreeSet<u64>>,
    /// What a worker has found while it sleeps, and reports when it is awake.
    found: Mutex<Findings>,
}

/// No reading of an activity that is zero.
const NEVER: u64 = u64::MAX;

impl Silence {
    pub(super) fn new(is_reported: bool) -> Self {
        Silence {
            is_reported,
            parked: Mutex::new(None),
            looked_at: AtomicU64::new(NEVER),
            calls: Mutex::new(Vec::new()),
            own_addresses: Mutex::new(HashMap::new()),
            named: Mutex::new(BTreeSet::new()),
            suspected: Mutex::new(BTreeSet::new()),
            own_asks: Mutex::new(BTreeSet::new()),
            found: Mutex::new(Findings::default()),
        }
    }

    // Relaxed, here and below: the readings are compared only, and publish nothing.

    /// Notes that a thread parks until it looks. Returns when the first one began to, or `None` if
    /// nothing has happened since the last look.
    pub(super) fn begins(&self, reading: u64) -> Option<Instant> {
        if self.looked_at.load(Ordering::Relaxed) == reading {
            return None;
        }
        let mut parked = self.parked.lock();
        let begun = parked.filter(|(of, _)| *of == reading);
        let (_, begun) = *parked.insert(begun.unwrap_or_else(|| (reading, Instant::now())));
        Some(begun)
    }

    /// Notes a look. Returns false, and notes none, if something has happened since a thread parked
    /// for it.
    pub(super) fn looks(&self, reading: u64) -> bool {
        let looks = self.parked.lock().is_some_and(|(of, _)| of == reading);
        if looks {
            self.looked_at.store(reading, Ordering::Relaxed);
        }
        looks
    }

    /// Notes that a look has reported something, which counts as activity itself.
    pub(super) fn has_reported(&self, reading: u64) {
        self.looked_at.store(reading, Ordering::Relaxed);
    }

    pub(super) fn has_suspects(&self) -> bool {
        !self.suspected.lock().is_empty()
    }

    /// Returns the waits that the last look has suspected, and whether there are others, which this
    /// look suspects. Those that were reported are left out.
    pub(super) fn sort(&self, mut found: Vec<EndlessWait>) -> (Vec<EndlessWait>, bool) {
        let mut suspected = self.suspected.lock();
        let before = std::mem::take(&mut *suspected);
        let mut named = self.named.lock();
        found.retain(|(path, _)| {
            let path = path.as_str();
            let is_certain = before.contains(path);
            if is_certain {
                named.insert(path.to_owned())
            } else {
                if !named.contains(path) {
                    suspected.insert(path.to_owned());
                }
                false
            }
        });
        (found, !suspected.is_empty())
    }

    /// Adds a call that waits.
    pub(crate) fn enter(&self, call: Weak<dyn IdleCall>) {
        let mut calls = self.calls.lock();
        calls.retain(|call| call.strong_count() > 0);
        calls.push(call);
    }

    /// Returns what the calls wait for, or `None` if something else has a waker of one.
    pub(super) fn calls(&self) -> Option<Vec<NotedWaits>> {
        let calls = self.calls.lock().clone();
        let calls = calls.iter().filter_map(Weak::upgrade);
        calls.map(IdleCall::waits).collect()
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

    /// Wakes all calls, so that they are polled again.
    pub(super) fn poll_calls_again(&self) {
        let calls = self.calls.lock().clone();
        let calls = calls.iter().filter_map(Weak::upgrade);
        calls.for_each(IdleCall::poll_again);
    }

    /// Notes that a report has this path. Returns whether it is the first one.
    pub(super) fn is_news(&self, path: &str) -> bool {
        self.named.lock().insert(path.to_owned())
    }

    /// Notes that the actor's turn ends with an ask to itself. Returns whether it was not noted.
    pub(super) fn suspect_own_ask(&self, actor: u64) -> bool {
        self.own_asks.lock().insert(actor)
    }

    /// Returns whether that was noted at the end of the actor's last turn, and forgets it.
    pub(super) fn unsuspect_own_ask(&self, actor: u64) -> bool {
        self.own_asks.lock().remove(&actor)
    }

    pub(super) fn keep(&self, found: Findings) {
        *self.found.lock() = found;
    }

    pub(super) fn take(&self) -> Findings {
        std::mem::take(&mut *self.found.lock())
    }
}

//! The waits of actors for each other that are no asks: for room in a mailbox, and for an end.
//!
//! The list is kept only if deadlocks are detected. Such a wait has no error for a deadlock, so it
//! goes on, and a cycle of waits is reported once.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use super::walk;
use super::{Edge, WaitsFor};
use crate::contain::{KeptWaker, contain};
use crate::error::Deadlock;
use crate::scheduler::ActivityCount;
use crate::sync::global::{AtomicU64, Ordering};
use crate::sync::{Mutex, Process};
use crate::task::look_at;

/// Whether a runtime of this process detects deadlocks, as a number. Until then no wait is listed.
static DETECTS: AtomicU64 = AtomicU64::new(0);

/// Lists waits from now on, in the runtimes that detect deadlocks.
pub(crate) fn detect_waits() {
    // Relaxed: what begins in such a runtime comes after this. It publishes nothing.
    DETECTS.store(1, Ordering::Relaxed);
}

#[inline]
pub(crate) fn detects_waits() -> bool {
    // Relaxed: as above.
    DETECTS.load(Ordering::Relaxed) != 0
}

/// The waits of the actors of a runtime.
pub(crate) struct ActorWaits {
    list: Arc<Mutex<WaitTable>>,
    /// A wait is counted as an ask: it may have to be reported.
    activity: Arc<ActivityCount>,
}

#[derive(Default)]
struct WaitTable {
    last: u64,
    waits: BTreeMap<u64, ListedWait>,
}

/// A wait on the list.
#[derive(Clone)]
pub(crate) struct ListedWait {
    number: u64,
    edge: Edge,
    /// The waker of the actor that waits.
    waiter: KeptWaker,
    /// A cycle with this wait was reported.
    is_reported: bool,
}

/// A cycle of waits, to be reported.
pub(crate) struct WaitCycle {
    pub(crate) path: Deadlock,
    /// The numbers of its waits.
    waits: Vec<u64>,
}

impl ListedWait {
    pub(crate) fn edge(&self) -> &Edge {
        &self.edge
    }
}

impl ActorWaits {
    pub(crate) fn new(activity: &Arc<ActivityCount>) -> Self {
        ActorWaits {
            list: Arc::new(Mutex::new(WaitTable::default())),
            activity: activity.clone(),
        }
    }

    /// Adds a wait of the actor that this waker wakes.
    pub(crate) fn list(&self, edge: Edge, waiter: KeptWaker) -> Box<WaitListing> {
        // Counted before it is listed, as an ask is.
        self.activity.ask_waits();
        let mut list = self.list.lock();
        list.last += 1;
        let number = list.last;
        let wait = ListedWait {
            number,
            edge,
            waiter,
            is_reported: false,
        };
        list.waits.insert(number, wait);
        drop(list);
        Box::new(WaitListing {
            list: Arc::downgrade(&self.list),
            number,
            activity: self.activity.clone(),
            process: Process::current(),
        })
    }

    /// Returns the edges of the waits for ends among those that are [stuck](ActorWaits::stuck).
    pub(crate) fn for_ends(&self) -> Vec<Edge> {
        let waits = self.stuck().into_iter().map(|wait| wait.edge);
        waits
            .filter(|edge| edge.for_what == WaitsFor::End)
            .collect()
    }

    /// Returns the waits of actors that wait for no message meanwhile.
    pub(crate) fn stuck(&self) -> Vec<ListedWait> {
        let list = self.list.lock();
        let mut waits: Vec<ListedWait> = list.waits.values().cloned().collect();
        drop(list);
        waits.retain(|wait| look_at(wait.waiter.as_waker()).is_none_or(|look| !look.is_receiving));
        waits
    }

    /// Notes that these cycles are reported.
    pub(crate) fn mark_reported(&self, cycles: &[WaitCycle]) {
        let mut list = self.list.lock();
        for number in cycles.iter().flat_map(|cycle| &cycle.waits) {
            if let Some(wait) = list.waits.get_mut(number) {
                wait.is_reported = true;
            }
        }
    }
}

/// Returns the cycles of these waits that were not reported yet.
pub(crate) fn cycles(waits: &[ListedWait]) -> Vec<WaitCycle> {
    if waits.iter().all(|wait| wait.is_reported) {
        return Vec::new();
    }
    let edges: Vec<&Edge> = waits.iter().map(ListedWait::edge).collect();
    let cycles = walk::wait_cycles(&edges).into_iter();
    let news = cycles.filter(|(_, own)| own.iter().any(|&at| !waits[at].is_reported));
    news.map(|(path, own)| WaitCycle {
        path,
        waits: own.iter().map(|&at| waits[at].number).collect(),
    })
    .collect()
}

/// The entry of a wait in the list; dropping it removes the wait. It is boxed, since futures have it.
pub(crate) struct WaitListing {
    list: Weak<Mutex<WaitTable>>,
    number: u64,
    activity: Arc<ActivityCount>,
    process: Process,
}

impl Drop for WaitListing {
    fn drop(&mut self) {
        if !self.process.is_current() {
            return;
        }
        self.activity.ask_is_over();
        if let Some(list) = self.list.upgrade() {
            let wait = list.lock().waits.remove(&self.number);
            contain(|| drop(wait));
        }
    }
}

//! The waiting asks of a runtime, so that those in a deadlock can be ended.
//!
//! The list is kept only if deadlocks are detected. It knows which actor asks which, and how to end
//! an ask, but neither the request nor the type of the reply. An ask that is listed leaves its
//! waker in its [`AskWait`], whose lock decides which came first: the reply, or the end by deadlock.

#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::sync::{Arc, Weak};

use slab::Slab;

use super::Edge;
use super::waits::ListedWait;
use super::walk;
use crate::contain::KeptWaker;
use crate::error::Deadlock;
use crate::lock::SpinLock;
use crate::runtime::ask_times::AskSample;
use crate::scheduler::ActivityCount;
use crate::sync::{Mutex, Process, mutant};
use crate::timers::DeadlineKind;

/// The waiting asks of a runtime.
pub(crate) struct AskList {
    list: Arc<Mutex<Slab<ListedAsk>>>,
    /// The count of waiting asks.
    activity: Arc<ActivityCount>,
}

/// An ask on the list.
#[derive(Clone)]
pub(crate) struct ListedAsk {
    edge: Edge,
    wait: Arc<AskWait>,
}

/// The state that the list and an ask share.
struct AskWait {
    state: SpinLock<Waited>,
    /// The list that has this ask. It is weak because the list holds this state in turn.
    list: Weak<Mutex<Slab<ListedAsk>>>,
    key: usize,
    /// `None` if the ask is on no list.
    activity: Option<Arc<ActivityCount>>,
    /// The actor that asks, if its messages are traced.
    asker: Option<u64>,
    /// The process of the list.
    process: Process,
    /// The ask ends by itself, by a deadline that is a [`DeadlineKind::Timeout`].
    is_timed: bool,
}

enum Waited {
    /// The asker may have left its waker.
    Waiting(Option<KeptWaker>),
    Ended(Deadlock),
    /// The ask has another outcome, or was dropped.
    Over,
}

impl AskList {
    pub(crate) fn new(activity: &Arc<ActivityCount>) -> Self {
        AskList {
            list: Arc::new(Mutex::new(Slab::new())),
            activity: activity.clone(),
        }
    }

    /// Creates a list without a runtime.
    #[cfg(test)]
    pub(crate) fn alone() -> Self {
        AskList::new(&Arc::new(ActivityCount::new()))
    }

    /// Adds an ask. `asker` is the actor that asks, if its messages are traced.
    pub(crate) fn list(&self, edge: Edge, asker: Option<u64>, is_timed: bool) -> Listing {
        // Counted before it is listed: who ends the last activity then sees that an ask is pending.
        self.activity.ask_waits();
        let mut list = self.list.lock();
        let entry = list.vacant_entry();
        let wait = Arc::new(AskWait {
            state: SpinLock::new(Waited::Waiting(None)),
            list: Arc::downgrade(&self.list),
            key: entry.key(),
            activity: Some(self.activity.clone()),
            asker,
            process: Process::current(),
            is_timed,
        });
        entry.insert(ListedAsk {
            edge,
            wait: wait.clone(),
        });
        Listing::of(wait)
    }

    /// Returns the asks that wait now.
    pub(crate) fn waiting(&self) -> Vec<ListedAsk> {
        let list = self.list.lock();
        let waiting = list.iter().map(|(_, listed)| listed.clone());
        waiting.filter(|ask| ask.wait.is_waiting()).collect()
    }
}

/// Returns, of the asks that wait when only timeouts are left, those that lead to a cycle of asks
/// and of the other waits. Returns
/// `None` if there are none, or if one of the other asks has a timeout.
///
/// The timeout of such an ask is future work: its asker then continues, and may have the reply that
/// another ask waits for.
pub(crate) fn deadlocked(waiting: Vec<ListedAsk>, others: &[ListedWait]) -> Option<Vec<ListedAsk>> {
    let edges = all_edges(&waiting, others);
    let leads = walk::lead_to_cycles(&edges);
    let mut deadlocked = Vec::new();
    for (ask, leads) in waiting.into_iter().zip(leads) {
        if leads {
            deadlocked.push(ask);
        } else if ask.wait.is_timed {
            return None;
        }
    }
    (!deadlocked.is_empty()).then_some(deadlocked)
}

/// Ends these asks, each with the text of its chain of asks and of the other waits. Returns how
/// many it has ended.
///
/// It is called for asks that were waiting when nothing was left that could reply. An ask that is
/// answered or dropped meanwhile keeps that outcome and is not counted.
pub(crate) fn end(listed: &[ListedAsk], others: &[ListedWait]) -> usize {
    let deadlocks = walk::name_all(&all_edges(listed, others));
    // All asks are ended before the first asker is woken, because that one may answer another ask.
    let ended: Vec<Option<KeptWaker>> = listed
        .iter()
        .zip(deadlocks)
        .filter_map(|(ask, deadlock)| ask.wait.end(deadlock))
        .collect();
    let count = ended.len();
    for waker in ended.into_iter().flatten() {
        if !mutant("ended_asker_is_not_woken") {
            waker.wake();
        }
    }
    count
}

/// Returns the edges of the asks, then those of the other waits.
fn all_edges<'a>(asks: &'a [ListedAsk], others: &'a [ListedWait]) -> Vec<&'a Edge> {
    let asks = asks.iter().map(ListedAsk::edge);
    asks.chain(others.iter().map(ListedWait::edge)).collect()
}

impl ListedAsk {
    /// Returns a key that differs from those of all other listed asks.
    pub(crate) fn key(&self) -> usize {
        self.wait.key
    }

    pub(crate) fn edge(&self) -> &Edge {
        &self.edge
    }
}

impl AskWait {
    fn is_waiting(&self) -> bool {
        self.state.with(|state| matches!(state, Waited::Waiting(_)))
    }

    /// Ends the wait as a deadlock. Returns as `finish` does.
    fn end(&self, deadlock: Deadlock) -> Option<Option<KeptWaker>> {
        let mut ended = Waited::Ended(deadlock);
        self.state.with(|state| match state {
            Waited::Waiting(_) => {
                std::mem::swap(state, &mut ended);
            }
            Waited::Ended(_) | Waited::Over => {}
        });
        match ended {
            Waited::Waiting(waker) => {
                self.is_over();
                Some(waker)
            }
            _ => None,
        }
    }

    fn is_over(&self) {
        if let Some(activity) = &self.activity {
            activity.ask_is_over();
        }
    }

    /// Marks the wait as over, for an outcome other than a deadlock. Returns `None` if it was over
    /// before, and otherwise the asker's waker, if it left one.
    fn finish(&self) -> Option<Option<KeptWaker>> {
        let completed = self.state.with(|state| match state {
            Waited::Waiting(waker) => {
                let waker = waker.take();
                *state = Waited::Over;
                Some(waker)
            }
            Waited::Ended(_) if mutant("ended_ask_is_answered") => Some(None),
            Waited::Ended(_) | Waited::Over => None,
        });
        completed.inspect(|_| self.is_over())
    }
}

/// What an ask shares with those that may end, trace or time it: its waker, its asker and, if deadlocks
/// are detected, its entry in the list. Dropping it removes that entry.
pub(crate) struct Listing {
    wait: Arc<AskWait>,
    sample: Option<AskSample>,
}

impl Listing {
    fn of(wait: Arc<AskWait>) -> Self {
        Listing { wait, sample: None }
    }

    /// Lets the end of the ask complete a sample.
    pub(crate) fn timed(mut self, sample: AskSample) -> Self {
        self.sample = Some(sample);
        self
    }

    /// Creates the listing of an ask that is on no list, since no deadlock would end it.
    pub(crate) fn alone(asker: Option<u64>) -> Self {
        Listing::of(Arc::new(AskWait {
            state: SpinLock::new(Waited::Waiting(None)),
            list: Weak::new(),
            key: usize::MAX,
            activity: None,
            asker,
            process: Process::current(),
            is_timed: false,
        }))
    }

    /// Returns the actor that asks, if its messages are traced.
    pub(crate) fn asker(&self) -> Option<u64> {
        self.wait.asker
    }

    /// Returns whether the ask has no outcome yet.
    pub(crate) fn is_waiting(&self) -> bool {
        self.wait.is_waiting()
    }

    /// Returns a key that no other ask in the list has; `usize::MAX` if this one is on no list.
    pub(crate) fn key(&self) -> usize {
        self.wait.key
    }

    /// Returns the kind with which the ask's timeout is armed.
    pub(crate) fn kind(&self) -> DeadlineKind {
        match self.wait.is_timed {
            true => DeadlineKind::Timeout,
            false => DeadlineKind::Event,
        }
    }

    /// Swaps the waker for the previous one if the ask waits. Returns the deadlock if it has ended in
    /// one. An ask that is over has its outcome in the slot, under whose lock both change.
    pub(crate) fn swap_waker(&self, waker: &mut Option<KeptWaker>) -> Option<Deadlock> {
        self.wait.state.with(|state| match state {
            Waited::Waiting(left) => {
                std::mem::swap(left, waker);
                None
            }
            Waited::Ended(deadlock) => Some(deadlock.clone()),
            Waited::Over => None,
        })
    }

    /// Marks the wait as over since there is an outcome, as [`AskWait::finish`] does.
    pub(crate) fn finish(&self) -> Option<Option<KeptWaker>> {
        let waker = self.wait.finish()?;
        self.sample.as_ref().inspect(|sample| sample.end());
        Some(waker)
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        if !self.wait.process.is_current() {
            return;
        }
        let waker = self.wait.finish();
        if let Some(list) = self.wait.list.upgrade() {
            let listed = list.lock().try_remove(self.wait.key);
            drop(listed);
        }
        drop(waker);
    }
}

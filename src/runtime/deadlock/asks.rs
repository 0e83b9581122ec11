//! The asks of a runtime that wait, so that those in a deadlock can be told of it.
//!
//! Kept only where deadlocks are detected. The list knows who asks whom and how to end an ask, and
//! neither what is asked nor of what kind the answer is. An ask that is listed leaves its waker in
//! its [`Wait`], whose lock says what came first: the answer, or the end by deadlock.

#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::sync::{Arc, Weak};
use std::task::Waker;

use slab::Slab;

use super::edge::Edge;
use super::walk;
use crate::contain::contain;
use crate::error::Deadlock;
use crate::lock::Lock;
use crate::scheduler::ActivityCount;
use crate::sync::{Mutex, Process, mutant};
use crate::timers::Kind;

/// The asks of a runtime that wait.
pub(crate) struct Asks {
    list: Arc<List>,
    /// Where those that wait are counted.
    activity: Arc<ActivityCount>,
}

type List = Mutex<Slab<Listed>>;

/// An ask on the list.
#[derive(Clone)]
pub(crate) struct Listed {
    edge: Edge,
    wait: Arc<Wait>,
}

/// What the list and an ask have together.
struct Wait {
    state: Lock<Waited>,
    /// Where it is listed. The list has it in turn, so that this must not keep the list.
    list: Weak<List>,
    key: usize,
    activity: Arc<ActivityCount>,
    /// That of the list.
    process: Process,
    /// It ends by itself, by a deadline that is a [`Kind::TimeOut`].
    is_timed: bool,
}

enum Waited {
    /// The asker may have left its waker.
    Waiting(Option<Waker>),
    Ended(Deadlock),
    /// It has another outcome, or the asker is gone.
    Over,
}

impl Asks {
    pub(crate) fn new(activity: &Arc<ActivityCount>) -> Self {
        Asks {
            list: Arc::new(Mutex::new(Slab::new())),
            activity: activity.clone(),
        }
    }

    /// A list of no runtime.
    #[cfg(test)]
    pub(crate) fn alone() -> Self {
        Asks::new(&Arc::new(ActivityCount::new()))
    }

    pub(crate) fn list(&self, edge: Edge, is_timed: bool) -> Listing {
        self.activity.ask_waits();
        let mut list = self.list.lock();
        let entry = list.vacant_entry();
        let wait = Arc::new(Wait {
            state: Lock::new(Waited::Waiting(None)),
            list: Arc::downgrade(&self.list),
            key: entry.key(),
            activity: self.activity.clone(),
            process: Process::current(),
            is_timed,
        });
        entry.insert(Listed {
            edge,
            wait: wait.clone(),
        });
        Listing(wait)
    }

    /// Those that wait now.
    pub(crate) fn waiting(&self) -> Vec<Listed> {
        let list = self.list.lock();
        let waiting = list.iter().map(|(_, listed)| listed.clone());
        waiting.filter(|ask| ask.wait.is_waiting()).collect()
    }
}

/// Of the asks that wait when nothing but time-outs is left, those that come to a cycle; `None` if there
/// are none, or if one of the others has a time-out.
///
/// The end of such a one is work to come: its asker then goes on, and may have what another waits for.
pub(crate) fn deadlocked(waiting: Vec<Listed>) -> Option<Vec<Listed>> {
    let edges: Vec<&Edge> = waiting.iter().map(Listed::edge).collect();
    let come = walk::come_to_cycles(&edges);
    let mut deadlocked = Vec::new();
    for (ask, comes) in waiting.into_iter().zip(come) {
        if comes {
            deadlocked.push(ask);
        } else if ask.wait.is_timed {
            return None;
        }
    }
    (!deadlocked.is_empty()).then_some(deadlocked)
}

/// Ends these asks, each with the text that tells who waits for whom; says how many.
///
/// For those that waited when nothing was left that could answer one. What is answered or given up
/// meanwhile has that outcome and does not count.
pub(crate) fn end(listed: &[Listed]) -> usize {
    let edges: Vec<&Edge> = listed.iter().map(Listed::edge).collect();
    let deadlocks = walk::name_all(&edges);
    // All are ended before the first asker is woken: it may answer one of the others.
    let ended: Vec<Option<Waker>> = listed
        .iter()
        .zip(deadlocks)
        .filter_map(|(ask, deadlock)| ask.wait.end(deadlock))
        .collect();
    let count = ended.len();
    for waker in ended.into_iter().flatten() {
        if !mutant("ended_asker_is_not_woken") {
            contain(|| waker.wake());
        }
    }
    count
}

impl Listed {
    /// Tells it from all others that are listed.
    pub(crate) fn key(&self) -> usize {
        self.wait.key
    }

    pub(crate) fn edge(&self) -> &Edge {
        &self.edge
    }
}

impl Wait {
    fn is_waiting(&self) -> bool {
        self.state.with(|state| matches!(state, Waited::Waiting(_)))
    }

    /// Ends the ask, unless it has an outcome; gives the asker's waker then.
    fn end(&self, deadlock: Deadlock) -> Option<Option<Waker>> {
        let mut ended = Waited::Ended(deadlock);
        self.state.with(|state| match state {
            Waited::Waiting(_) => {
                std::mem::swap(state, &mut ended);
            }
            Waited::Ended(_) | Waited::Over => {}
        });
        match ended {
            Waited::Waiting(waker) => {
                self.activity.ask_is_over();
                Some(waker)
            }
            _ => None,
        }
    }

    /// The ask has another outcome, if it has none yet; gives the asker's waker then.
    fn settle(&self) -> Option<Option<Waker>> {
        let settled = self.state.with(|state| match state {
            Waited::Waiting(waker) => {
                let waker = waker.take();
                *state = Waited::Over;
                Some(waker)
            }
            Waited::Ended(_) if mutant("ended_ask_is_answered") => Some(None),
            Waited::Ended(_) | Waited::Over => None,
        });
        settled.inspect(|_| self.activity.ask_is_over())
    }
}

/// The ask's end of its place in the list; dropped, it is listed no more.
pub(crate) struct Listing(Arc<Wait>);

impl Listing {
    /// Whether it has no outcome yet.
    pub(crate) fn is_waiting(&self) -> bool {
        self.0.is_waiting()
    }

    /// Tells it from all others that are listed.
    pub(crate) fn key(&self) -> usize {
        self.0.key
    }

    /// What its time-out is armed as.
    pub(crate) fn kind(&self) -> Kind {
        match self.0.is_timed {
            true => Kind::TimeOut,
            false => Kind::Event,
        }
    }

    /// Swaps the waker for the one that was left before, or says how the ask has ended.
    pub(crate) fn leave(&self, waker: &mut Option<Waker>) -> Option<Deadlock> {
        self.0.state.with(|state| match state {
            Waited::Waiting(left) => {
                std::mem::swap(left, waker);
                None
            }
            Waited::Ended(deadlock) => Some(deadlock.clone()),
            Waited::Over => None,
        })
    }

    /// As [`Wait::settle`].
    pub(crate) fn settle(&self) -> Option<Option<Waker>> {
        self.0.settle()
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        if !self.0.process.is_current() {
            return;
        }
        let waker = self.0.settle();
        if let Some(list) = self.0.list.upgrade() {
            let listed = list.lock().try_remove(self.0.key);
            drop(listed);
        }
        contain(|| drop(waker));
    }
}

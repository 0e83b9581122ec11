//! The asks of a runtime that wait, so that those in a deadlock can be told of it.
//!
//! Kept only where deadlocks are detected. The list knows who asks whom and how to end an ask, and
//! neither what is asked nor of what kind the answer is. An ask that is listed leaves its waker in
//! its [`Wait`], whose lock says what came first: the answer, or the end by deadlock.

#[cfg(all(test, not(greenroom_loom)))]
mod tests;
pub(super) mod walk;

use std::fmt;
use std::sync::{Arc, Weak};
use std::task::Waker;

use slab::Slab;

use super::current::{self, Place, Role};
use super::quiescence::Pulse;
use crate::contain::contain;
use crate::error::Deadlock;
use crate::lock::Lock;
use crate::sync::{Mutex, Process, mutant};
use crate::task::TaskInfo;
use crate::time::Sleep;
use crate::timers::Kind;

/// The asks of a runtime that wait.
pub(crate) struct Asks {
    list: Arc<List>,
    /// Where those that wait are counted.
    pulse: Arc<Pulse>,
}

type List = Mutex<Slab<Listed>>;

/// An ask on the list.
#[derive(Clone)]
pub(crate) struct Listed {
    edge: Edge,
    wait: Arc<Wait>,
}

/// Somebody waits for an actor: for its answer, or for room in its mailbox.
#[derive(Clone)]
pub(crate) struct Edge {
    pub(crate) from: Who,
    pub(crate) to: TaskInfo,
    /// In a simulation: the number that the question gets.
    pub(crate) question: Option<u64>,
}

/// Who asks, or does something else.
#[derive(Clone)]
pub(crate) enum Who {
    Task(TaskInfo),
    /// Nobody that could be asked.
    Other(&'static str),
}

impl Who {
    /// The number of the task; for others, one that goes by the text.
    pub(super) fn number(&self) -> u64 {
        match self {
            Who::Task(task) => task.id(),
            Who::Other(what) => what
                .bytes()
                .fold(0, |sum, byte| (sum << 5 ^ sum >> 59) ^ u64::from(byte)),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Task(task) => task.fmt(f),
            Who::Other(what) => f.write_str(what),
        }
    }
}

/// What the list and an ask have together.
struct Wait {
    state: Lock<State>,
    /// Where it is listed. The list has it in turn, so that this must not keep the list.
    list: Weak<List>,
    key: usize,
    pulse: Arc<Pulse>,
    /// That of the list.
    process: Process,
    /// It ends by itself, by a deadline that is a [`Kind::TimeOut`].
    is_timed: bool,
}

enum State {
    /// The asker may have left its waker.
    Waiting(Option<Waker>),
    Ended(Deadlock),
    /// It has another outcome, or the asker is gone.
    Over,
}

/// Puts an ask that begins on this thread on the list of the current runtime, if that keeps one.
///
/// `time_out` is what ends it by itself; `who` gives the actor that asks, if it is one, and the one
/// that is asked.
#[inline]
pub(crate) fn list(
    time_out: Option<&Sleep>,
    who: impl FnOnce() -> (Option<TaskInfo>, TaskInfo),
) -> Option<Listing> {
    current::with(|place| {
        let place = place.filter(|place| place.runtime.options.detect_deadlocks)?;
        place.runtime.check_process();
        Some(list_at(place, time_out, who()))
    })
}

/// Whether an ask that begins here may be ended as a deadlock before its time-out.
///
/// In a simulation waiting takes no time, and what is done about a time-out is to be tested. A stage is
/// work of its runtime, and tells its foreign loop of all deadlines.
fn may_be_cut(place: &Place<'_>) -> bool {
    let on_a_stage = matches!(place.role.get(), Role::Pinned(local) if local.is_stage());
    place.runtime.simulation().is_none() && !on_a_stage
}

#[cold]
fn list_at(
    place: &Place<'_>,
    time_out: Option<&Sleep>,
    (asker, asked): (Option<TaskInfo>, TaskInfo),
) -> Listing {
    let is_timed = time_out.is_some_and(Sleep::ends) && may_be_cut(place);
    let edge = match (place.runtime.simulation(), asker) {
        (Some(simulation), _) => simulation.edge(asked),
        (None, Some(actor)) => Edge {
            from: Who::Task(actor),
            to: asked,
            question: None,
        },
        (None, None) => Edge {
            from: Who::Other(match place.role.get() {
                Role::Outside => "block_on",
                _ => "a task",
            }),
            to: asked,
            question: None,
        },
    };
    place.runtime.asks.list(edge, is_timed)
}

impl Asks {
    pub(crate) fn new(pulse: &Arc<Pulse>) -> Self {
        Asks {
            list: Arc::new(Mutex::new(Slab::new())),
            pulse: pulse.clone(),
        }
    }

    /// A list of no runtime.
    #[cfg(test)]
    pub(crate) fn alone() -> Self {
        Asks::new(&Arc::new(Pulse::new()))
    }

    pub(crate) fn list(&self, edge: Edge, is_timed: bool) -> Listing {
        self.pulse.ask_waits();
        let mut list = self.list.lock();
        let entry = list.vacant_entry();
        let wait = Arc::new(Wait {
            state: Lock::new(State::Waiting(None)),
            list: Arc::downgrade(&self.list),
            key: entry.key(),
            pulse: self.pulse.clone(),
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
pub(super) fn deadlocked(waiting: Vec<Listed>) -> Option<Vec<Listed>> {
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
    pub(super) fn key(&self) -> usize {
        self.wait.key
    }

    pub(super) fn edge(&self) -> &Edge {
        &self.edge
    }
}

impl Wait {
    fn is_waiting(&self) -> bool {
        self.state.with(|state| matches!(state, State::Waiting(_)))
    }

    /// Ends the ask, unless it has an outcome; gives the asker's waker then.
    fn end(&self, deadlock: Deadlock) -> Option<Option<Waker>> {
        let mut ended = State::Ended(deadlock);
        self.state.with(|state| match state {
            State::Waiting(_) => {
                std::mem::swap(state, &mut ended);
            }
            State::Ended(_) | State::Over => {}
        });
        match ended {
            State::Waiting(waker) => {
                self.pulse.ask_is_over();
                Some(waker)
            }
            _ => None,
        }
    }

    /// The ask has another outcome, if it has none yet; gives the asker's waker then.
    fn settle(&self) -> Option<Option<Waker>> {
        let settled = self.state.with(|state| match state {
            State::Waiting(waker) => {
                let waker = waker.take();
                *state = State::Over;
                Some(waker)
            }
            State::Ended(_) if mutant("ended_ask_is_answered") => Some(None),
            State::Ended(_) | State::Over => None,
        });
        settled.inspect(|_| self.pulse.ask_is_over())
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
            State::Waiting(left) => {
                std::mem::swap(left, waker);
                None
            }
            State::Ended(deadlock) => Some(deadlock.clone()),
            State::Over => None,
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

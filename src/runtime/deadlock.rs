//! Deadlock detection: the asks and other waits of actors, and those that wait for each other
//! forever.
//!
//! A wait is an edge of a graph, from who waits to the actor that is waited for.

mod asks;
mod waits;
mod walk;

#[cfg(all(test, greenroom_loom))]
pub(crate) use asks::end;
#[cfg(not(all(test, greenroom_loom)))]
pub(super) use asks::end;
pub(crate) use asks::{AskList, Listing};
pub(super) use asks::{ListedAsk, deadlocked};
pub(crate) use waits::{ActorWaits, WaitListing, detect_waits, detects_waits};
pub(super) use waits::{ListedWait, WaitCycle, cycles};
pub(crate) use walk::name_all;
pub(super) use walk::wait_cycles;

use std::fmt;

use crate::task::TaskInfo;
pub(crate) use crate::task::WaitsFor;

/// A wait for an actor.
#[derive(Clone)]
pub(crate) struct Edge {
    pub(crate) from: Who,
    pub(crate) to: TaskInfo,
    pub(crate) for_what: WaitsFor,
    /// In a simulation: the number of the request.
    pub(crate) question: Option<u64>,
}

impl Edge {
    /// Creates the edge of an ask.
    pub(crate) fn of_ask(from: Who, to: TaskInfo) -> Self {
        Edge {
            from,
            to,
            for_what: WaitsFor::Answer,
            question: None,
        }
    }
}

/// The task that asks, or that has another part in an event.
#[derive(Clone)]
pub(crate) enum Who {
    Task(TaskInfo),
    /// A caller that cannot be asked itself, by description.
    Other(&'static str),
}

impl Who {
    /// Returns the number of the task, or a hash of the description.
    pub(crate) fn number(&self) -> u64 {
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

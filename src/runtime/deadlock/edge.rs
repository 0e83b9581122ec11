//! An edge of the wait-for graph: one wait, by its two ends.

use std::fmt;

use crate::task::TaskInfo;

/// A wait for an actor: for its reply, or for room in its mailbox.
#[derive(Clone)]
pub(crate) struct Edge {
    pub(crate) from: Who,
    pub(crate) to: TaskInfo,
    /// In a simulation: the number of the request.
    pub(crate) question: Option<u64>,
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

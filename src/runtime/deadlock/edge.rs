//! Who waits for whom: one wait, by its two ends.

use std::fmt;

use crate::task::TaskInfo;

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

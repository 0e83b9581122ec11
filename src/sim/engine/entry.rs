//! What can be ready in a simulation, and whose turn it is.

use crate::task::{Runnable, TaskInfo};

/// Something that is ready.
pub(super) enum Entry {
    Task(Due),
    /// The oldest of what is due on the host with this key: a pinned thread takes turns in order. There
    /// are as many of these as are due there.
    Host(usize),
    Frame(u64),
    /// The next effect of a turn that is over.
    Effect(Runner),
}

/// A runnable whose turn is to come.
pub(super) struct Due {
    pub(super) runnable: Runnable,
    pub(super) identity: u64,
    /// How many became ready before it.
    pub(super) age: u64,
}

/// Whose turn it is, by a number of this simulation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Runner {
    Frame(u64),
    /// With what it is tracked by.
    Task {
        number: u64,
        identity: u64,
    },
}

/// The turn under way on the thread of the simulation.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub(super) runner: Runner,
    /// Whether it is split; `None` until it does something to others.
    pub(super) is_split: Option<bool>,
}

impl Turn {
    pub(super) fn new(runner: Runner) -> Self {
        Turn {
            runner,
            is_split: None,
        }
    }
}

/// What tells a task or actor from all others that live.
pub(super) fn identity(task: &TaskInfo) -> u64 {
    if task.is_actor() {
        identity_of_actor(task.id())
    } else {
        task.id()
    }
}

pub(super) fn identity_of_actor(id: u64) -> u64 {
    // A task's is an address, and so even.
    id << 1 | 1
}

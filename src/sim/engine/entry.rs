//! The kinds of ready entries, and the turns that they get.

use crate::task::{Runnable, TaskInfo};

/// An entry that is ready.
pub(super) enum Entry {
    Task(Due),
    /// The oldest runnable that is due on the host with this key; a pinned thread runs in order.
    /// There are as many such entries as runnables that are due there.
    Host(usize),
    Frame(u64),
    /// The next effect of a turn that has ended.
    Effect(Runner),
}

/// A runnable that is due.
pub(super) struct Due {
    pub(super) runnable: Runnable,
    pub(super) identity: u64,
    /// How many runnables became ready before it.
    pub(super) age: u64,
}

/// The task or frame that has a turn, by a number of this simulation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Runner {
    Frame(u64),
    /// A task or actor, with the identity by which it is tracked.
    Task {
        number: u64,
        identity: u64,
    },
}

/// The turn in progress on the thread of the simulation.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub(super) runner: Runner,
    /// Whether the turn is split; `None` until its first effect.
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

/// Returns a number that identifies a task or actor among all that live.
pub(super) fn identity(task: &TaskInfo) -> u64 {
    if task.is_actor() {
        identity_of_actor(task.id())
    } else {
        task.id()
    }
}

pub(super) fn identity_of_actor(id: u64) -> u64 {
    // The identity of a task is its address, which is even.
    id << 1 | 1
}

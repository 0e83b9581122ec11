//! The kinds of ready entries, the turns that they get, and the effects that a turn defers.

use std::collections::VecDeque;

use super::mirror::SentMessage;
use crate::contain::KeptWaker;
use crate::runtime::RunsOn;
use crate::runtime::deadlock::Who;
use crate::task::{Delivery, Runnable, TaskInfo};

/// An entry that is ready.
pub(super) enum ReadyEntry {
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
pub(super) struct RunningTurn {
    pub(super) runner: Runner,
    pub(super) split: TurnSplit,
}

/// Whether a turn is split, which is drawn at its first effect.
#[derive(Clone, Copy)]
pub(super) enum TurnSplit {
    NotDrawn,
    Split,
    Whole,
}

impl RunningTurn {
    pub(super) fn new(runner: Runner) -> Self {
        RunningTurn {
            runner,
            split: TurnSplit::NotDrawn,
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

/// The pending effects of a turn.
pub(super) struct PendingEffects {
    pub(super) who: Who,
    pub(super) rank: u64,
    /// The key of the turn's task, and the number of the turn.
    pub(super) turn: (u64, u64),
    /// Each with its number among all effects of the run.
    pub(super) effects: VecDeque<(u32, Effect)>,
    /// The actors that the turn has closed since it last had no effects.
    pub(super) closes: Vec<u64>,
    /// Whether the effects are among the ready entries.
    pub(super) is_ready: bool,
}

impl PendingEffects {
    /// Returns which turn this is, if a task with another key runs before all its effects have
    /// happened.
    pub(super) fn overtaken_by(&self, key: u64) -> Option<(u64, u64)> {
        (self.turn.0 != key && !self.effects.is_empty()).then_some(self.turn)
    }
}

pub(super) enum Effect {
    Message(SentMessage, Delivery),
    /// The mailbox of the actor with this id is closed.
    Close(u64, Delivery),
    /// An address is dropped, or a report arrives.
    Act(Delivery),
    Answer(Option<KeptWaker>),
    Ready(Due, RunsOn),
    /// A frame is woken that waits, or is marked for another poll.
    WakesFrame(u64),
    FrameIsReady(u64),
}

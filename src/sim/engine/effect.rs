//! The types of deferred effects.

use std::collections::VecDeque;

use super::entry::Due;
use super::lane::Sent;
use crate::runtime::RunsOn;
use crate::runtime::deadlock::Who;
use crate::task::Delivery;
use crate::waker::KeptWaker;

/// The pending effects of a turn.
pub(super) struct Pending {
    pub(super) who: Who,
    pub(super) rank: u64,
    /// The key of the turn's task, and the number of the turn.
    pub(super) turn: (u64, u64),
    pub(super) effects: VecDeque<Effect>,
    /// The actors that the turn has closed since it last had no effects.
    pub(super) closes: Vec<u64>,
    /// Whether the effects are among the ready entries.
    pub(super) is_ready: bool,
}

impl Pending {
    /// Returns which turn this is, if a task with another key runs before all its effects have
    /// happened.
    pub(super) fn overtaken_by(&self, key: u64) -> Option<(u64, u64)> {
        (self.turn.0 != key && !self.effects.is_empty()).then_some(self.turn)
    }
}

pub(super) struct Effect {
    /// The number among all effects of the run.
    pub(super) number: u32,
    pub(super) kind: EffectKind,
}

pub(super) enum EffectKind {
    Message(Sent, Delivery),
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

//! The effects of one turn.

use std::collections::VecDeque;
use std::task::Waker;

use super::entry::Due;
use super::lane::Sent;
use crate::runtime::RunsOn;
use crate::runtime::deadlock::Who;
use crate::task::Delivery;

/// The effects of a turn that are still to come.
pub(super) struct Pending {
    pub(super) who: Who,
    pub(super) rank: u64,
    /// Its key, and which of its turns it is.
    pub(super) turn: (u64, u64),
    pub(super) effects: VecDeque<Effect>,
    /// The actors that it has closed since it had no effects.
    pub(super) closes: Vec<u64>,
    /// It is among what is ready.
    pub(super) is_ready: bool,
}

impl Pending {
    /// Returns which turn it is, if another key goes on before all of it has taken effect.
    pub(super) fn overtaken_by(&self, key: u64) -> Option<(u64, u64)> {
        (self.turn.0 != key && !self.effects.is_empty()).then_some(self.turn)
    }
}

pub(super) struct Effect {
    /// Among all of the run.
    pub(super) number: u32,
    pub(super) kind: EffectKind,
}

pub(super) enum EffectKind {
    Message(Sent, Delivery),
    /// The mailbox of the actor with this id is closed.
    Close(u64, Delivery),
    /// An address is given up.
    Leave(Delivery),
    Answer(Option<Waker>),
    Ready(Due, RunsOn),
    /// A frame is woken that waits, or is ready for its next poll.
    WakesFrame(u64),
    FrameIsReady(u64),
}

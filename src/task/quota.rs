//! How many messages an actor may handle in a turn: a whole batch, or as many as fit into the time of a turn.
//!
//! To read the clock costs as much as two short messages, so most turns are not timed. One in [`TIMED_EVERY`] of
//! those that handle a whole batch is; and each turn of an actor that was found slow is, as it is long anyway.
//!
//! # Invariants
//! - QUOTA-1: a quota is one byte, so that it fits beside the tag of a lifecycle.

#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::time::Duration;

use super::run::BATCH;

/// How long a turn may take. Short enough that a few busy actors can have theirs before another one
/// is late; so long that the 50 ns between two turns do not count.
pub(crate) const TURN: Duration = Duration::from_micros(40);

/// Of so many whole batches one is timed.
const TIMED_EVERY: u8 = 8;

/// How many messages more an actor of cheap ones may handle in a turn, if nothing else waits after a batch.
const MORE: u32 = 3 * BATCH;

/// What is known of an actor's turns.
///
/// A number with three parts, of 3, 1 and 3 bits: how often the batch is halved, whether four batches fit into a
/// turn, and how many whole batches have not been timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Quota(u8);

/// The middle part: four batches fit into a turn.
const CHEAP: u8 = TIMED_EVERY;
/// One in the highest part.
const HALVING: u8 = 2 * TIMED_EVERY;

impl Quota {
    /// Of an actor that is new.
    pub(crate) const WHOLE: Quota = Quota(0);
    const HALVINGS_MAX: u8 = BATCH.ilog2() as u8;

    fn halvings(self) -> u8 {
        self.0 / HALVING
    }

    /// How many messages this turn may handle.
    pub(crate) fn messages(self) -> u32 {
        BATCH >> self.halvings()
    }

    /// Whether anything is known that makes this turn another than that of a new actor.
    #[inline]
    pub(crate) fn is_known(self) -> bool {
        self.0 >= TIMED_EVERY - 1
    }

    /// Whether this turn is to be timed.
    pub(crate) fn is_timed(self) -> bool {
        self.0 >= HALVING || self.0 % TIMED_EVERY == TIMED_EVERY - 1
    }

    /// How many messages more this turn may handle, if nothing else waits.
    pub(crate) fn more(self) -> u32 {
        if self.0 & CHEAP != 0 && !self.is_timed() {
            MORE
        } else {
            0
        }
    }

    /// The quota after a turn that handled a batch, or more, and was not timed.
    pub(crate) fn after_untimed(self) -> Self {
        Quota(self.0 + 1)
    }

    /// The quota after a turn that handled so many messages, all that it might, in that time. It shrinks at once,
    /// and grows by one step a turn: the thread may have lost its core meanwhile.
    pub(crate) fn after_timed(self, handled: u32, took: Duration) -> Self {
        // In 64 bits: a turn of half a year is as slow as a longer one.
        let fitting = TURN.as_nanos() as u64 * u64::from(handled) / (took.as_nanos() as u64).max(1);
        let wanted = fitting.clamp(1, u64::from(BATCH)).ilog2() as u8;
        let halvings = (Self::HALVINGS_MAX - wanted).max(self.halvings().saturating_sub(1));
        let is_cheap = halvings == 0 && fitting >= u64::from(BATCH + MORE);
        Quota(halvings * HALVING + if is_cheap { CHEAP } else { 0 })
    }
}

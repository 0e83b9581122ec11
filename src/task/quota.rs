//! The number of messages that an actor may handle in a turn: a whole batch, or fewer if they are
//! slow.
//!
//! Reading the clock costs as much as two short messages, so most turns are not timed. Of the turns
//! that handle a whole batch, one in [`TIMED_EVERY`] is. Each turn of an actor that was found slow
//! is timed as well, since such a turn is long anyway.
//!
//! # Invariants
//! - QUOTA-1: a quota is one byte, so that it fits beside the tag of a lifecycle.

#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::time::Duration;

use super::run::BATCH;

/// The time that a turn may take. It is short enough that another actor is not late if a few busy
/// actors run first. It is long enough that the 50 ns between two turns do not matter.
pub(crate) const TURN: Duration = Duration::from_micros(40);

/// The number of whole batches of which one is timed.
const TIMED_EVERY: u8 = 8;

/// The number of additional messages in a turn of cheap messages, if nothing else waits after a
/// batch.
const MORE: u32 = 3 * BATCH;

/// How many messages an actor may handle in its next turn, and whether that turn is timed.
///
/// The number has four parts, from the highest of 1, 3, 1 and 3 bits: whether the turn is a sample, how
/// often the batch is halved, whether four batches fit into a turn, and how many whole batches were not
/// timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Quota(u8);

/// The middle part: four batches fit into a turn.
const CHEAP: u8 = TIMED_EVERY;
/// The unit of the part above it.
const HALVING: u8 = 2 * TIMED_EVERY;
/// The highest part.
const SAMPLED: u8 = 128;

impl Quota {
    /// The quota of a new actor.
    pub(crate) const WHOLE: Quota = Quota(0);
    const HALVINGS_MAX: u8 = BATCH.ilog2() as u8;

    fn halvings(self) -> u8 {
        (self.0 & !SAMPLED) / HALVING
    }

    /// Returns the number of messages that this turn may handle.
    pub(crate) fn messages(self) -> u32 {
        BATCH >> self.halvings()
    }

    /// Returns whether this turn differs from that of a new actor.
    #[inline]
    pub(crate) fn is_special(self) -> bool {
        self.0 >= TIMED_EVERY - 1
    }

    /// Returns whether the turn is timed as a sample of all turns.
    pub(crate) fn is_sampled(self) -> bool {
        self.0 & SAMPLED != 0
    }

    pub(crate) fn sampled(self) -> Self {
        Quota(self.0 | SAMPLED)
    }

    pub(crate) fn unsampled(self) -> Self {
        Quota(self.0 & !SAMPLED)
    }

    /// Returns whether this turn is to be timed, since it may be slow.
    pub(crate) fn is_timed(self) -> bool {
        self.halvings() > 0 || self.0 % TIMED_EVERY == TIMED_EVERY - 1
    }

    /// Returns the number of additional messages that this turn may handle, if nothing else waits.
    pub(crate) fn more(self) -> u32 {
        if self.0 & CHEAP != 0 && !self.is_timed() {
            MORE
        } else {
            0
        }
    }

    /// Returns the quota after a turn that handled a batch or more and was not timed.
    pub(crate) fn after_untimed(self) -> Self {
        Quota(self.0 + 1)
    }

    /// Returns the quota after a timed turn that handled all messages that it was allowed to.
    ///
    /// The quota shrinks at once and grows by one step a turn, since the thread may have lost its
    /// core during a slow turn.
    pub(crate) fn after_timed(self, handled: u32, took: Duration) -> Self {
        // 64 bits hold the nanoseconds of 584 years.
        let fitting = TURN.as_nanos() as u64 * u64::from(handled) / (took.as_nanos() as u64).max(1);
        let wanted = fitting.clamp(1, u64::from(BATCH)).ilog2() as u8;
        let halvings = (Self::HALVINGS_MAX - wanted).max(self.halvings().saturating_sub(1));
        let is_cheap = halvings == 0 && fitting >= u64::from(BATCH + MORE);
        Quota(halvings * HALVING + if is_cheap { CHEAP } else { 0 })
    }
}

//! The times of some turns of an actor, as a sample.
//!
//! A turn is timed once in 64, since to read the clock costs as much as a short turn.

use std::time::Duration;

/// The turns of an actor that were timed: one in 64.
///
/// The times of all turns are about 64 times as long. A runtime with the observer
/// [`Measure`](crate::Measure), or any other, measures each turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SampledTurns {
    /// The number of turns that were timed.
    pub turns: u64,
    /// The duration of all of them.
    pub busy: Duration,
    /// The duration of the longest one.
    pub longest: Duration,
}

impl SampledTurns {
    pub(crate) fn add(&mut self, took: Duration) {
        self.turns += 1;
        self.busy = self.busy.saturating_add(took);
        self.longest = self.longest.max(took);
    }
}

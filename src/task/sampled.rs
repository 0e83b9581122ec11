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

/// How long the timed turns of a runtime's actors took: how many took how long.
///
/// Turns on pinned threads are not among them. Those of actors that have ended are, so the numbers only
/// grow.
///
/// ```
/// use greenroom::TurnTimes;
///
/// # greenroom::run(async {
/// let times = greenroom::Runtime::current().stats().turn_times;
/// for (count, bound) in times.counts.iter().zip(TurnTimes::BOUNDS) {
///     println!("{count} turns took at most {bound:?}, and more than the ones before");
/// }
/// # });
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnTimes {
    /// The duration of all of them.
    pub total: Duration,
    /// For each of the [`BOUNDS`](TurnTimes::BOUNDS) the number of turns that took at most this, and more
    /// than the bound before. The last number is that of the longer ones.
    pub counts: [u64; 8],
}

impl TurnTimes {
    /// The bounds: from a turn as short as the read of a clock to one that holds a thread for a second.
    pub const BOUNDS: [Duration; 7] = [
        Duration::from_micros(1),
        Duration::from_micros(10),
        Duration::from_micros(100),
        Duration::from_millis(1),
        Duration::from_millis(10),
        Duration::from_millis(100),
        Duration::from_secs(1),
    ];

    pub(crate) fn add(&mut self, took: Duration) {
        self.total = self.total.saturating_add(took);
        self.counts[Self::BOUNDS.partition_point(|bound| *bound < took)] += 1;
    }

    /// Adds the turns of another part.
    pub(crate) fn add_all(&mut self, other: &TurnTimes) {
        self.total = self.total.saturating_add(other.total);
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
    }
}

impl SampledTurns {
    pub(crate) fn add(&mut self, took: Duration) {
        self.turns += 1;
        self.busy = self.busy.saturating_add(took);
        self.longest = self.longest.max(took);
    }
}

#[cfg(all(test, not(greenroom_loom)))]
mod tests {
    use std::time::Duration;

    use super::TurnTimes;

    #[test]
    fn a_turn_is_counted_at_the_first_bound_that_it_does_not_exceed() {
        let mut times = TurnTimes::default();
        for took in [0, 1000, 1001, 1_000_000_000, 1_000_000_001] {
            times.add(Duration::from_nanos(took));
        }
        assert_eq!(times.counts, [2, 1, 0, 0, 0, 0, 1, 1]);
        assert_eq!(times.total, Duration::from_nanos(2_000_002_002));
        let mut both = times;
        both.add_all(&times);
        assert_eq!((both.counts[0], both.total), (4, 2 * times.total));
    }
}

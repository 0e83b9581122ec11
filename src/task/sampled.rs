//! The times of some turns of an actor, and of some asks, as samples.
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

/// How long the timed turns or asks of a runtime took: how many took how long. The numbers only grow.
///
/// ```
/// use greenroom::SampledTimes;
///
/// # greenroom::run(async {
/// let times = greenroom::Runtime::current().stats().turn_times;
/// for (count, bound) in times.counts.iter().zip(SampledTimes::BOUNDS) {
///     println!("{count} turns took at most {bound:?}, and more than the ones before");
/// }
/// # });
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SampledTimes {
    /// The duration of all of them.
    pub total: Duration,
    /// For each of the [`BOUNDS`](SampledTimes::BOUNDS) the number of those that took at most this, and
    /// more than the bound before. The last number is that of the longer ones.
    pub counts: [u64; 8],
}

impl SampledTimes {
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

    /// Returns how many of the bounds are exceeded. They are powers of ten, from 10³ ns on.
    #[inline]
    pub(crate) fn index(took: Duration) -> usize {
        let nanos = match took.as_secs() {
            0 => took.subsec_nanos(),
            1 if took.subsec_nanos() == 0 => 1_000_000_000,
            _ => return Self::BOUNDS.len(),
        };
        let power = nanos.saturating_sub(1).checked_ilog10().unwrap_or(0);
        power.saturating_sub(2) as usize
    }

    /// Adds those of which so many were at each index, and of this duration in all.
    pub(crate) fn add(&mut self, counts: &[u64; 8], total: Duration) {
        self.total = self.total.saturating_add(total);
        for (count, more) in self.counts.iter_mut().zip(counts) {
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

    use super::SampledTimes;

    #[test]
    fn a_turn_is_counted_at_the_first_bound_that_it_does_not_exceed() {
        for (index, bound) in SampledTimes::BOUNDS.into_iter().enumerate() {
            let nano = Duration::from_nanos(1);
            assert_eq!(SampledTimes::index(bound), index);
            assert_eq!(SampledTimes::index(bound + nano), index + 1);
            assert_eq!(SampledTimes::index(bound - nano), index);
        }
        assert_eq!(SampledTimes::index(Duration::ZERO), 0);
        assert_eq!(SampledTimes::index(Duration::MAX), 7);
    }
}

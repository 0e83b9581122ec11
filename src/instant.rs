//! A moment in time: the one door to the system's clock.

use std::ops::{Add, Sub};
use std::sync::OnceLock;
use std::time::Duration;

/// A moment of the monotonic clock, in nanoseconds since the process first asked.
///
/// It counts on for 584 years and then stays at its end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Instant(u64);

impl Instant {
    /// Now.
    pub fn now() -> Instant {
        static EPOCH: OnceLock<std::time::Instant> = OnceLock::new();
        Instant(nanos_of(EPOCH.get_or_init(std::time::Instant::now).elapsed()))
    }

    /// The time since `earlier`; zero if that is later.
    pub fn duration_since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The time since then; zero if it is yet to come.
    pub fn elapsed(self) -> Duration {
        Instant::now().duration_since(self)
    }

    /// `duration` later; `None` beyond the end of the clock.
    pub fn checked_add(self, duration: Duration) -> Option<Instant> {
        let nanos = u64::try_from(duration.as_nanos()).ok()?;
        // The last value stands for "never" in a table of deadlines.
        self.0.checked_add(nanos).filter(|&sum| sum != u64::MAX).map(Instant)
    }

    pub(crate) fn nanos(self) -> u64 {
        self.0
    }
}

fn nanos_of(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX - 1)
}

impl Add<Duration> for Instant {
    type Output = Instant;

    /// `duration` later, or the end of the clock.
    fn add(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_add(nanos_of(duration)).min(u64::MAX - 1))
    }
}

impl Sub for Instant {
    type Output = Duration;

    /// As [`Instant::duration_since`].
    fn sub(self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }
}

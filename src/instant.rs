//! A moment in time: the one door to the system's clock, and to that of a simulation.
//!
//! A thread that drives a simulation has its time; all others have the system's.

use std::cell::Cell;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment of the monotonic clock, in nanoseconds since the process first asked.
///
/// In a [simulation](crate::sim) it is a moment of the virtual clock, which begins at zero; moments of
/// two clocks have nothing to do with each other. It counts on for 584 years and then stays at its
/// end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Instant(u64);

impl Instant {
    /// Now.
    pub fn now() -> Instant {
        let simulated = SIMULATED.try_with(Cell::get).ok().flatten();
        simulated.unwrap_or_else(|| Instant(clock::nanos()))
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
        self.0
            .checked_add(nanos)
            .filter(|&sum| sum <= LAST)
            .map(Instant)
    }

    pub(crate) fn nanos(self) -> u64 {
        self.0
    }

    /// Where the clock of a simulation begins.
    pub(crate) const ZERO: Instant = Instant(0);
}

std::thread_local! {
    static SIMULATED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Has this thread see another time from now on, the system's for `None`; gives what it saw before.
pub(crate) fn simulate(now: Option<Instant>) -> Option<Instant> {
    SIMULATED
        .try_with(|simulated| simulated.replace(now))
        .ok()
        .flatten()
}

/// As long as this lives, the thread sees the system's time, though it may drive a simulation.
pub(crate) struct RealTime(Option<Instant>);

impl RealTime {
    pub(crate) fn enter() -> Self {
        RealTime(simulate(None))
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        if self.0.is_some() {
            simulate(self.0);
        }
    }
}

#[cfg(not(greenroom_loom))]
mod clock {
    use std::sync::OnceLock;
    use std::time::Instant;

    pub(super) fn nanos() -> u64 {
        static EPOCH: OnceLock<Instant> = OnceLock::new();
        let since = EPOCH.get_or_init(Instant::now).elapsed();
        u64::try_from(since.as_nanos()).unwrap_or(super::LAST)
    }
}

/// The clock of a model goes on when the model says so.
#[cfg(greenroom_loom)]
pub(crate) mod clock {
    use std::cell::Cell;

    // All threads of a model are on one thread of the system.
    std::thread_local!(static NOW: Cell<u64> = const { Cell::new(1) });

    pub(super) fn nanos() -> u64 {
        NOW.get()
    }

    #[cfg(test)]
    pub(crate) fn advance(duration: std::time::Duration) {
        NOW.set((super::Instant(NOW.get()) + duration).nanos());
    }
}

/// The end of the clock: the value after it stands for "never" in a table of deadlines.
const LAST: u64 = u64::MAX - 1;

impl Add<Duration> for Instant {
    type Output = Instant;

    /// `duration` later, or the end of the clock.
    fn add(self, duration: Duration) -> Instant {
        self.checked_add(duration).unwrap_or(Instant(LAST))
    }
}

impl Sub for Instant {
    type Output = Duration;

    /// As [`Instant::duration_since`].
    fn sub(self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }
}

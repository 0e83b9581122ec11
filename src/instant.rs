//! A moment in time: the one door to the system's clock, and to that of a simulation.
//!
//! A thread that drives a simulation has its time; all others have the system's.

use std::cell::Cell;
use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment of the system's clock, for other crates.
pub(crate) use std::time::Instant as SystemInstant;

/// A moment of the monotonic clock, in nanoseconds since the process first asked.
///
/// In a [simulation](crate::sim) it is a moment of the virtual clock, which begins at zero; moments of
/// two clocks have nothing to do with each other. It counts on for 292 years and then stays at its
/// end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// Moments of a simulation's clock have this bit, and those of the system's have not.
const SIMULATED: u64 = 1 << 63;

impl Instant {
    /// Now.
    pub fn now() -> Instant {
        let simulated = NOW.try_with(Cell::get).ok().flatten();
        simulated.unwrap_or_else(|| Instant(clock::nanos()))
    }

    /// The time since `earlier`; zero if that is later.
    pub fn duration_since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.counted().saturating_sub(earlier.counted()))
    }

    /// The time since then; zero if it is yet to come.
    pub fn elapsed(self) -> Duration {
        Instant::now().duration_since(self)
    }

    /// `duration` later; `None` beyond the end of the clock.
    pub fn checked_add(self, duration: Duration) -> Option<Instant> {
        let nanos = u64::try_from(duration.as_nanos()).ok()?;
        let sum = self.counted().checked_add(nanos)?;
        (sum <= LAST).then_some(Instant(sum | self.0 & SIMULATED))
    }

    /// Since the beginning of its clock.
    fn counted(self) -> u64 {
        self.0 & !SIMULATED
    }

    /// Whether both are moments of the system's clock, or both of a simulation's.
    pub(crate) fn is_comparable(self, other: Instant) -> bool {
        (self.0 ^ other.0) & SIMULATED == 0
    }

    pub(crate) fn nanos(self) -> u64 {
        self.0
    }

    /// What [`nanos`](Instant::nanos) gave.
    pub(crate) fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    /// Where the clock of a simulation begins.
    pub(crate) const ZERO: Instant = Instant(SIMULATED);
}

std::thread_local! {
    static NOW: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Has this thread see another time from now on, the system's for `None`; gives what it saw before.
pub(crate) fn simulate(now: Option<Instant>) -> Option<Instant> {
    NOW.try_with(|seen| seen.replace(now)).ok().flatten()
}

/// Whether this thread sees another time than the system's.
#[inline]
pub(crate) fn is_simulated() -> bool {
    NOW.try_with(|seen| seen.get().is_some()) == Ok(true)
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
    use std::time::Instant;

    use crate::sync::OnceLock;

    pub(super) fn nanos() -> u64 {
        static EPOCH: OnceLock<Instant> = OnceLock::new();
        let since = EPOCH.get_or_init(Instant::now).elapsed();
        // In 64 bits, which are enough for 584 years: this is called at each look at the clock.
        since.as_secs() * 1_000_000_000 + u64::from(since.subsec_nanos())
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

/// The end of either clock, from its beginning: what would come after a simulation's stands for "never"
/// in a table of deadlines.
const LAST: u64 = SIMULATED - 2;

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Instant").field(&self.counted()).finish()
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    /// `duration` later, or the end of the clock.
    fn add(self, duration: Duration) -> Instant {
        self.checked_add(duration)
            .unwrap_or(Instant(LAST | self.0 & SIMULATED))
    }
}

impl Sub for Instant {
    type Output = Duration;

    /// As [`Instant::duration_since`].
    fn sub(self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }
}

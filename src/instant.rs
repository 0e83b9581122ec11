//! Moments in time: the only module that reads the system's clocks, or that of a simulation.
//!
//! A thread that drives a simulation reads its clock; all other threads read the system's.

#[cfg(any(target_os = "linux", target_os = "macos"))]
mod processor;

use std::cell::Cell;
use std::fmt;
use std::ops::{Add, Sub};
use std::time::{Duration, SystemTime};

#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(crate) use processor::processor_time;

/// Returns nothing: this system is not asked.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(crate) fn processor_time() -> Option<Duration> {
    None
}

/// A moment of the system's clock, for use with other crates.
pub(crate) use std::time::Instant as SystemInstant;

/// A moment of the monotonic clock, in nanoseconds since the process first read it.
///
/// In a [simulation](crate::sim) it is a moment of the virtual clock, which begins at zero.
/// Comparing moments of different clocks is meaningless. A clock covers 292 years, and `+` stops at
/// its end.
///
/// Where the clock is the system's, [`from_std`](Instant::from_std) and [`to_std`](Instant::to_std)
/// convert from and to [`std::time::Instant`] without loss:
///
/// ```
/// use greenroom::time::Instant;
/// use std::time::Duration;
///
/// let deadline = Instant::now() + Duration::from_secs(5);
/// let of_std = deadline.to_std().unwrap();
/// assert_eq!(Instant::from_std(of_std), Some(deadline));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// The bit that marks moments of a simulation's clock.
const SIMULATED: u64 = 1 << 63;

impl Instant {
    /// Returns the current time: of the virtual clock in a simulation, otherwise of the system.
    pub fn now() -> Instant {
        let simulated = NOW.try_with(Cell::get).ok().flatten();
        simulated.unwrap_or_else(|| Instant(clock::nanos()))
    }

    /// Returns the time from `earlier` to this moment, or zero if `earlier` is later.
    pub fn duration_since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.counted().saturating_sub(earlier.counted()))
    }

    /// Returns the time since this moment, or zero if it is in the future.
    pub fn elapsed(self) -> Duration {
        Instant::now().duration_since(self)
    }

    /// Returns the moment `duration` later, or `None` if that is beyond the end of the clock.
    pub fn checked_add(self, duration: Duration) -> Option<Instant> {
        let nanos = u64::try_from(duration.as_nanos()).ok()?;
        let sum = self.counted().checked_add(nanos)?;
        (sum <= LAST).then_some(Instant(sum | self.0 & SIMULATED))
    }

    /// Returns the moment of the system's clock, to be compared with [`now`](Instant::now).
    ///
    /// This is `None` in a simulation, whose clock has no relation to the system's. So it is for a
    /// moment before the process first read greenroom's clock, or more than 292 years later.
    pub fn from_std(moment: SystemInstant) -> Option<Instant> {
        if is_simulated() {
            return None;
        }
        let since = moment.checked_duration_since(clock::epoch())?;
        let nanos = u64::try_from(since.as_nanos()).ok()?;
        (nanos <= LAST).then_some(Instant(nanos))
    }

    /// Returns the same moment of the system's clock.
    ///
    /// This is `None` for a moment of a simulation's clock, which the system's clock never shows. So
    /// it is if the other type has no such moment, which may be so for moments far in the future.
    pub fn to_std(self) -> Option<SystemInstant> {
        if self.0 & SIMULATED != 0 {
            return None;
        }
        clock::epoch().checked_add(Duration::from_nanos(self.0))
    }

    /// Returns the nanoseconds since the start of its clock.
    fn counted(self) -> u64 {
        self.0 & !SIMULATED
    }

    /// Returns whether both are moments of the system's clock, or both of a simulation's.
    pub(crate) fn is_comparable(self, other: Instant) -> bool {
        (self.0 ^ other.0) & SIMULATED == 0
    }

    /// Returns the moment as a number, for [`from_nanos`](Instant::from_nanos).
    pub(crate) fn nanos(self) -> u64 {
        self.0
    }

    /// Restores a moment that [`nanos`](Instant::nanos) returned.
    pub(crate) fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    /// The start of a simulation's clock.
    pub(crate) const ZERO: Instant = Instant(SIMULATED);
}

std::thread_local! {
    static NOW: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Sets the time that this thread sees, or the system's for `None`; returns the previous setting.
pub(crate) fn simulate(now: Option<Instant>) -> Option<Instant> {
    NOW.try_with(|seen| seen.replace(now)).ok().flatten()
}

/// Returns whether this thread sees a simulation's clock.
#[inline]
pub(crate) fn is_simulated() -> bool {
    NOW.try_with(|seen| seen.get().is_some()) == Ok(true)
}

/// A guard: while it lives, the thread sees the system's time, even if it drives a simulation.
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

/// Returns the time since 1970: of the system or, in a simulation, that of its clock.
pub(crate) fn since_1970() -> Duration {
    if is_simulated() {
        return Instant::now().duration_since(Instant::ZERO);
    }
    // A clock that is set before 1970 counts as 1970.
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default()
}

#[cfg(not(greenroom_loom))]
mod clock {
    use std::time::Instant;

    use crate::sync::OnceLock;

    static EPOCH: OnceLock<Instant> = OnceLock::new();

    /// Returns the moment when the process first read the clock.
    pub(super) fn epoch() -> Instant {
        *EPOCH.get_or_init(Instant::now)
    }

    pub(super) fn nanos() -> u64 {
        let since = epoch().elapsed();
        // In 64 bits, which suffice for 584 years, since this is called at each look at the clock.
        since.as_secs() * 1_000_000_000 + u64::from(since.subsec_nanos())
    }
}

/// The clock of a model, which only the model advances.
#[cfg(greenroom_loom)]
pub(crate) mod clock {
    use std::cell::Cell;

    // All threads of a model run on one system thread.
    std::thread_local!(static NOW: Cell<u64> = const { Cell::new(1) });

    pub(super) fn nanos() -> u64 {
        NOW.get()
    }

    pub(super) fn epoch() -> super::SystemInstant {
        super::SystemInstant::now()
    }

    #[cfg(test)]
    pub(crate) fn advance(duration: std::time::Duration) {
        NOW.set((super::Instant(NOW.get()) + duration).nanos());
    }
}

/// The end of either clock, from its start. The next moment of a simulation's clock means "never"
/// in a table of deadlines.
const LAST: u64 = SIMULATED - 2;

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Instant").field(&self.counted()).finish()
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    /// Returns the moment `duration` later, or the end of the clock.
    fn add(self, duration: Duration) -> Instant {
        self.checked_add(duration)
            .unwrap_or(Instant(LAST | self.0 & SIMULATED))
    }
}

impl Sub for Instant {
    type Output = Duration;

    /// Returns the same as [`Instant::duration_since`].
    fn sub(self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }
}

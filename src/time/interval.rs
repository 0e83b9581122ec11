//! Periodic ticks.
//!
//! A tick is never early. [`MissedTicks`] decides about ticks that were due while no task waited
//! for them. Only [`MissedTicks::Delay`] lets the ticks drift.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;

use super::{Instant, Sleep};

/// The policy for ticks that were due while no task waited for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MissedTicks {
    /// Missed ticks are left out. The next tick is at the next multiple of the period.
    #[default]
    Skip,
    /// Missed ticks are returned without a pause, until the interval has caught up.
    Burst,
    /// The schedule moves. The next tick is one period after the late tick was taken.
    Delay,
}

/// Creates an interval that ticks every `period`, with the first tick at `start`.
///
/// A start that is over is a tick at once, and the ticks that were due since then are missed ones.
/// Everything else is as for [`Interval::new`].
///
/// # Panics
/// If the period is zero.
///
/// ```
/// use greenroom::time::{Instant, interval_at};
/// use std::time::Duration;
///
/// greenroom::run(async {
///     let start = Instant::now() + Duration::from_millis(2);
///     let mut ticks = interval_at(start, Duration::from_millis(2));
///     assert_eq!(ticks.tick().await, start);
///     assert!(ticks.tick().await > start);
/// });
/// ```
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    Interval::starting(period, Some(start))
}

/// A sequence of periodic ticks. As a stream it never ends.
#[derive(Debug)]
pub struct Interval {
    /// When the next tick is due, or `None` if never.
    next: Option<Instant>,
    sleep: Sleep,
    period: Duration,
    missed: MissedTicks,
}

impl Interval {
    /// Creates an interval that ticks every `period`, with the first tick at once.
    ///
    /// Missed ticks are [skipped](MissedTicks::Skip), unless
    /// [`with_missed_ticks`](Interval::with_missed_ticks) sets another policy. If the period exceeds
    /// the range of the clock, as [`Duration::MAX`] does, only the first tick comes.
    ///
    /// # Panics
    /// If the period is zero.
    ///
    /// ```
    /// use greenroom::time::{Instant, Interval};
    /// use std::time::Duration;
    ///
    /// greenroom::run(async {
    ///     let start = Instant::now();
    ///     let mut ticks = Interval::new(Duration::from_millis(2));
    ///     for _ in 0..3 {
    ///         ticks.tick().await;
    ///     }
    ///     assert!(start.elapsed() >= Duration::from_millis(4));
    /// });
    /// ```
    #[track_caller]
    pub fn new(period: Duration) -> Self {
        Interval::starting(period, Some(Instant::now()))
    }

    #[track_caller]
    fn starting(period: Duration, next: Option<Instant>) -> Self {
        assert!(
            !period.is_zero(),
            "the period is zero, but must be at least 1 nanosecond"
        );
        Interval {
            next,
            sleep: Sleep::until(next),
            period,
            missed: MissedTicks::default(),
        }
    }

    /// Creates an interval whose first tick is due after one period.
    #[track_caller]
    pub(crate) fn after(period: Duration) -> Self {
        let mut interval = Interval::starting(period, None);
        interval.reset();
        interval
    }

    /// Returns the interval with this policy for missed ticks. The default is
    /// [`MissedTicks::Skip`].
    pub fn with_missed_ticks(mut self, policy: MissedTicks) -> Self {
        self.missed = policy;
        self
    }

    /// Makes the next tick due one period from now, also if one is due already.
    ///
    /// ```
    /// use greenroom::time::{Instant, Interval};
    /// use std::time::Duration;
    ///
    /// greenroom::run(async {
    ///     let period = Duration::from_millis(2);
    ///     let mut ticks = Interval::new(period); // the first tick would be at once
    ///     let start = Instant::now();
    ///     ticks.reset();
    ///     assert!(ticks.tick().await >= start + period);
    /// });
    /// ```
    pub fn reset(&mut self) {
        let now = Instant::now();
        self.next = now.checked_add(self.period);
        self.sleep = Sleep::after(now, self.period);
    }

    /// Waits for the next tick, and returns the instant at which it was due.
    ///
    /// # Panics
    /// As [`sleep`](super::sleep).
    ///
    /// # Cancel safety
    /// Cancel safe: a tick that was not returned is left to the next call.
    pub async fn tick(&mut self) -> Instant {
        let tick = &mut Tick(self);
        std::future::poll_fn(|cx| tick.0.poll_tick(cx)).await
    }

    fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        ready!(Pin::new(&mut self.sleep).poll(cx));
        let (due, now) = (self.next, Instant::now());
        let due = due.expect("a tick that is never due does not fire");
        // An interval that was created on another clock (a simulation's or the system's) starts
        // now.
        let due = if due.is_comparable(now) { due } else { now };
        self.next = self.after_tick(due, now);
        self.sleep = Sleep::until(self.next);
        Poll::Ready(due)
    }

    /// Returns when the next tick is due, if the tick due at `due` is taken at `now`.
    fn after_tick(&self, due: Instant, now: Instant) -> Option<Instant> {
        match self.missed {
            MissedTicks::Burst => due.checked_add(self.period),
            MissedTicks::Delay => now.checked_add(self.period),
            MissedTicks::Skip => {
                let (late, period) = (now.duration_since(due).as_nanos(), self.period.as_nanos());
                let left = u64::try_from(period - late % period).ok()?;
                now.checked_add(Duration::from_nanos(left))
            }
        }
    }
}

/// A call of [`Interval::tick`].
struct Tick<'a>(&'a mut Interval);

impl Drop for Tick<'_> {
    fn drop(&mut self) {
        self.0.sleep.disarm();
    }
}

impl Stream for Interval {
    type Item = Instant;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Instant>> {
        self.get_mut().poll_tick(cx).map(Some)
    }
}

//! Ticks at equal distances.
//!
//! A tick is never early. What becomes of ticks that nobody was there to take is a choice, and none
//! of the choices lets the ticks drift but [`MissedTicks::Delay`].

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;

use super::{Instant, Sleep};

/// What becomes of ticks that were due while nobody waited for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MissedTicks {
    /// They are left out: the next tick is the next multiple of the period.
    #[default]
    Skip,
    /// They all come, without a pause, until those due have come.
    Burst,
    /// All later ticks move: the next one is a period after the late one was taken.
    Delay,
}

/// Ticks every `period`, the first one at once.
///
/// Ticks that were missed are [skipped](MissedTicks::Skip), unless
/// [`missed`](Interval::missed) says otherwise. A period beyond the end of the clock, such as
/// [`Duration::MAX`], gives the first tick only.
///
/// # Panics
/// If the period is zero.
///
/// ```
/// use greenroom::time::{Instant, interval};
/// use std::time::Duration;
///
/// greenroom::run(async {
///     let start = Instant::now();
///     let mut ticks = interval(Duration::from_millis(2));
///     for _ in 0..3 {
///         ticks.tick().await;
///     }
///     assert!(start.elapsed() >= Duration::from_millis(4));
/// });
/// ```
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    Interval::new(period, Some(Instant::now()))
}

/// See [`interval()`]. As a stream it never ends.
#[derive(Debug)]
pub struct Interval {
    /// When the next tick is due; `None`: never.
    next: Option<Instant>,
    sleep: Sleep,
    period: Duration,
    missed: MissedTicks,
}

impl Interval {
    #[track_caller]
    fn new(period: Duration, next: Option<Instant>) -> Self {
        assert!(
            !period.is_zero(),
            "a period of zero, but the least is 1 nanosecond"
        );
        Interval {
            next,
            sleep: Sleep::until(next),
            period,
            missed: MissedTicks::default(),
        }
    }

    /// An interval whose first tick is due after one period.
    #[track_caller]
    pub(crate) fn after(period: Duration) -> Self {
        let now = Instant::now();
        Interval {
            sleep: Sleep::after(now, period),
            ..Interval::new(period, now.checked_add(period))
        }
    }

    /// Chooses what becomes of ticks that nobody waited for.
    pub fn missed(mut self, policy: MissedTicks) -> Self {
        self.missed = policy;
        self
    }

    /// Waits for the next tick, and gives the time at which it was due.
    ///
    /// # Panics
    /// As [`sleep`](super::sleep).
    ///
    /// # Cancel safety
    /// A tick that was not given is given to the next call.
    pub async fn tick(&mut self) -> Instant {
        std::future::poll_fn(|cx| self.poll_tick(cx)).await
    }

    fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        ready!(Pin::new(&mut self.sleep).poll(cx));
        let (due, now) = (self.next, Instant::now());
        let due = due.expect("what is never due does not wake");
        // One that was made outside the simulation that it is polled in begins there.
        let due = if due.is_comparable(now) { due } else { now };
        self.next = self.after_tick(due, now);
        self.sleep = Sleep::until(self.next);
        Poll::Ready(due)
    }

    /// When the tick after the one that was due then, and is taken now, is due.
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

impl Stream for Interval {
    type Item = Instant;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Instant>> {
        self.get_mut().poll_tick(cx).map(Some)
    }
}

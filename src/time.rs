//! Timers: [`sleep`], [`timeout`] and [`Interval`], and the same for a moment: [`sleep_until`],
//! [`timeout_at`] and [`interval_at`].
//!
//! Use them in any future, on any executor. An actor that goes on to receive takes
//! [`send_after`](crate::Context::send_after) or [`send_every`](crate::Context::send_every) instead.
//!
//! A timer belongs to the runtime on which it was last polled. On a pinned thread it belongs to that
//! thread if it wakes the task or the `block_on` that polled it. Elsewhere, on another executor or a bare
//! thread, it uses one timer thread of the process. That thread starts on first use, and sleeps
//! while no deadline is due.
//!
//! Timers never fire early. A timer of a runtime fires in time if one of its workers is idle. That
//! holds also if the turn that polled it blocks its thread, as the `block_on` of another crate
//! does. Otherwise the timer is late by the rest of a turn.

mod interval;
mod retry_intervals;

pub use crate::instant::Instant;
pub use interval::{Interval, MissedTicks, interval_at};
pub use retry_intervals::{IntervalsError, RetryIntervals};

use std::fmt;
use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use pin_project_lite::pin_project;

use crate::runtime::context;
use crate::task::{WaitsFor, run};
use crate::timers::{Armed, DeadlineKind, TimerClock, TimerThread};

/// Waits until `duration` has elapsed, measured from this call.
///
/// A duration that exceeds the range of the clock, such as [`Duration::MAX`], never elapses.
///
/// # Panics
/// The future panics outside any runtime, if the operating system does not start the process's
/// timer thread.
///
/// # Cancel safety
/// Cancel safe: dropping the future removes the timer.
///
/// ```
/// use greenroom::time::{Instant, sleep};
/// use std::time::Duration;
///
/// greenroom::run(async {
///     let start = Instant::now();
///     sleep(Duration::from_millis(5)).await;
///     assert!(start.elapsed() >= Duration::from_millis(5));
/// });
/// ```
pub fn sleep(duration: Duration) -> Sleep {
    Sleep::after(Instant::now(), duration)
}

/// Waits until `deadline`. If that is over, it waits for nothing.
///
/// A moment of another clock than the one where the future is polled is taken for the present: one
/// of the system's clock in a simulation, or the other way round.
///
/// # Panics
/// As [`sleep`].
///
/// # Cancel safety
/// As [`sleep`].
///
/// ```
/// use greenroom::time::{Instant, sleep_until};
/// use std::time::Duration;
///
/// greenroom::run(async {
///     let deadline = Instant::now() + Duration::from_millis(5);
///     sleep_until(deadline).await;
///     assert!(Instant::now() >= deadline);
/// });
/// ```
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep::until(Some(deadline))
}

/// The future of [`sleep`] and [`sleep_until`].
#[must_use = "futures do nothing unless polled"]
pub struct Sleep {
    until: Instant,
    /// The duration in nanoseconds, or [`NEVER`].
    length: u64,
    armed: Option<Armed>,
}

/// The length of a sleep that never ends.
const NEVER: u64 = u64::MAX;

// No user code runs during a change of timers, so a panic cannot leave them inconsistent.
impl UnwindSafe for Sleep {}
impl RefUnwindSafe for Sleep {}

impl Sleep {
    fn after(start: Instant, duration: Duration) -> Self {
        let until = start.checked_add(duration);
        Sleep {
            until: until.unwrap_or(start),
            length: until.map_or(NEVER, |until| until.nanos() - start.nanos()),
            armed: None,
        }
    }

    /// Creates a sleep until this instant, or one that never ends.
    fn until(until: Option<Instant>) -> Self {
        match until {
            Some(until) => Sleep::after(until, Duration::ZERO),
            None => Sleep::after(Instant::now(), Duration::MAX),
        }
    }

    /// Returns whether the sleep ever ends.
    pub(crate) fn ends(&self) -> bool {
        self.length != NEVER
    }

    /// Removes the timer, until the next poll.
    fn disarm(&mut self) {
        self.armed = None;
    }

    /// Polls the sleep. If this arms the first deadline, the deadline has this kind.
    pub(crate) fn poll_as(&mut self, kind: DeadlineKind, cx: &Context<'_>) -> Poll<()> {
        if !self.ends() {
            return Poll::Pending;
        }
        loop {
            let now = Instant::now();
            if self.armed.is_none() && !now.is_comparable(self.until) {
                // It was created on another clock (a simulation's or the system's), so it starts
                // now.
                self.until = now + Duration::from_nanos(self.length);
            }
            let until = self.until;
            if now >= until {
                self.armed = None;
                return Poll::Ready(());
            }
            if let Some(armed) = &self.armed
                && armed.wakes(cx.waker())
            {
                run::note_wait_for(cx.waker(), WaitsFor::Other("a timer"), || 0);
                return Poll::Pending;
            }
            // Armed anew also if its clock was closed, or if it wakes something else from now on:
            // another clock may have to fire it then.
            let (clock, kind) = self.clock(kind, cx.waker());
            self.armed = Armed::new(clock, until, kind, cx.waker())
                .or_else(|| Armed::new(TimerThread::clock(), until, kind, cx.waker()));
            if self.armed.is_some() {
                run::note_wait_for(cx.waker(), WaitsFor::Other("a timer"), || 0);
                return Poll::Pending;
            }
        }
    }

    /// Returns the clock for a deadline that wakes what `waker` wakes, and the deadline's kind.
    fn clock(&self, kind: DeadlineKind, waker: &Waker) -> (Arc<dyn TimerClock>, DeadlineKind) {
        // The timeout of a listed ask remains one on the clock of the runtime that lists the ask.
        // Elsewhere it is an event, since no list tells that it only ends an ask.
        if let Some(armed) = self.armed.as_ref().filter(|armed| armed.is_timeout())
            && let Some(clock) = context::clock(DeadlineKind::Timeout, waker)
            && armed.is_on(&clock)
        {
            return (clock, DeadlineKind::Timeout);
        }
        let clock = context::clock(kind, waker).unwrap_or_else(TimerThread::clock);
        (clock, kind)
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.get_mut().poll_as(DeadlineKind::Event, cx)
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = self.ends().then_some(self.until);
        f.debug_struct("Sleep").field("until", &until).finish()
    }
}

/// Waits for `future`, for at most `duration` from this call.
///
/// # Errors
/// [`TimedOut`] if the duration elapses first. `future` is dropped with the [`Timeout`].
///
/// # Panics
/// As [`sleep`].
///
/// # Cancel safety
/// As cancel safe as `future`, which is dropped with the [`Timeout`].
///
/// ```
/// use greenroom::time::{TimedOut, timeout};
/// use std::time::Duration;
///
/// greenroom::run(async {
///     assert_eq!(timeout(Duration::from_secs(60), async { 42 }).await, Ok(42));
///     let never = std::future::pending::<()>();
///     assert_eq!(timeout(Duration::from_millis(1), never).await, Err(TimedOut));
/// });
/// ```
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    Timeout {
        future: future.into_future(),
        sleep: sleep(duration),
    }
}

/// Waits for `future`, until `deadline` at most. A future that is ready at once has its value even
/// if the deadline is over.
///
/// Several waits may have one deadline in common, which a [`timeout`] for each would add up.
///
/// # Errors
/// [`TimedOut`] if the deadline comes first. `future` is dropped with the [`Timeout`].
///
/// # Panics
/// As [`sleep`].
///
/// # Cancel safety
/// As [`timeout`].
///
/// ```
/// use greenroom::time::{Instant, TimedOut, timeout_at};
/// use std::future::pending;
/// use std::time::Duration;
///
/// greenroom::run(async {
///     let deadline = Instant::now() + Duration::from_millis(1);
///     assert_eq!(timeout_at(deadline, pending::<u32>()).await, Err(TimedOut));
///     assert_eq!(timeout_at(deadline, async { 42 }).await, Ok(42));
/// });
/// ```
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    Timeout {
        future: future.into_future(),
        sleep: sleep_until(deadline),
    }
}

pin_project! {
    /// The future of [`timeout`] and [`timeout_at`].
    // It has a name, since the compiler cannot prove that a hidden `F::IntoFuture` is `Send` where
    // `F` has a closure and lifetimes are erased.
    #[must_use = "futures do nothing unless polled"]
    #[derive(Debug)]
    pub struct Timeout<F> {
        #[pin]
        future: F,
        #[pin]
        sleep: Sleep,
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, TimedOut>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        match this.future.poll(cx) {
            Poll::Ready(value) => Poll::Ready(Ok(value)),
            Poll::Pending => this.sleep.poll(cx).map(|()| Err(TimedOut)),
        }
    }
}

/// An error of [`timeout`] and [`timeout_at`]: the time was over first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOut;

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the timeout elapsed")
    }
}

impl std::error::Error for TimedOut {}

#[derive(Default)]
pub(crate) struct Alarm(Option<(Instant, Sleep)>);

impl Alarm {
    /// Waits until this moment, or forever without one.
    pub(crate) fn poll(&mut self, at: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = at else {
            self.0 = None;
            return Poll::Pending;
        };
        if !matches!(&self.0, Some((until, _)) if *until == at) {
            self.0 = Some((at, sleep(at - Instant::now())));
        }
        if let Some((_, sleep)) = &mut self.0 {
            ready!(Pin::new(sleep).poll(cx));
        }
        self.0 = None;
        Poll::Ready(())
    }
}

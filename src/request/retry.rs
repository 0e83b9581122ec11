//! A request that is made again until it succeeds.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::put;
use crate::error::AskError;
use crate::task::run::BATCH;
use crate::time::{RetryIntervals, Sleep, sleep};

/// Calls `attempt` and awaits its future, until it succeeds or the intervals are used up.
///
/// The first attempt begins with the first poll. Before each further attempt it waits for the next
/// interval. So there is one attempt more than there are intervals.
///
/// [`AskError::Closed`] ends it at once, as a closed actor stays closed. That is recognised only if
/// it is the error itself. [`when`](Retry::when) decides otherwise, and for other types of errors.
/// An error that borrows is not supported.
///
/// Every other error is worth another attempt, also a [refusal](crate::Refusal) that is final. With
/// intervals that have no limit, use `when` to end at such an error.
///
/// # Errors
/// The future returns the error of the last attempt.
///
/// # Panics
/// The future panics if an attempt does, if it is polled again after completion, and as [`sleep`].
///
/// # Cancel safety
/// Dropping the future drops the attempt that runs.
///
/// ```
/// use greenroom::time::RetryIntervals;
/// use std::time::Duration;
///
/// let intervals = RetryIntervals::exponential(Duration::from_millis(1), Duration::from_secs(1));
/// let mut attempts = 0;
/// let value = greenroom::run(greenroom::retry(&intervals, || {
///     attempts += 1;
///     let failed = attempts < 3;
///     async move { if failed { Err("not yet") } else { Ok(42) } }
/// }));
/// assert_eq!((value, attempts), (Ok(42), 3));
/// ```
pub fn retry<T, E, F, Fut>(intervals: &RetryIntervals, attempt: F) -> Retry<F, Fut, fn(&E) -> bool>
where
    E: 'static,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    Retry {
        attempt,
        call: |attempt| attempt(),
        intervals: intervals.clone(),
        next: Some(0),
        again: may_succeed_later,
        fails: |again, output| output.as_ref().is_err_and(again),
        attempting: None,
        pausing: None,
    }
}

/// Returns whether a further attempt may succeed: not if an actor that was asked is closed.
fn may_succeed_later<E: 'static>(error: &E) -> bool {
    let error: &dyn Any = error;
    !matches!(error.downcast_ref(), Some(AskError::Closed(_)))
}

pin_project! {
    /// The future of [`retry`].
    #[must_use = "futures do nothing unless polled"]
    pub struct Retry<F, Fut: Future, W> {
        attempt: F,
        // Pointers, so that the bounds on the closures are checked when the future is made. Within
        // an `async fn`, which erases lifetimes, the compiler cannot prove them.
        call: fn(&mut F) -> Fut,
        intervals: RetryIntervals,
        // The position of the next interval; `None` once it is over.
        next: Option<u64>,
        again: W,
        // Whether the output is an error after which a further attempt is made.
        fails: fn(&mut W, &Fut::Output) -> bool,
        #[pin]
        attempting: Option<Fut>,
        #[pin]
        pausing: Option<Sleep>,
    }
}

impl<T, E, F, Fut, W> Retry<F, Fut, W>
where
    Fut: Future<Output = Result<T, E>>,
{
    /// Makes a further attempt only if `again` returns true for the error of the last one.
    ///
    /// Replaces the default, which is true for every error except [`AskError::Closed`].
    pub fn when<N: FnMut(&E) -> bool>(self, again: N) -> Retry<F, Fut, N> {
        Retry {
            attempt: self.attempt,
            call: self.call,
            intervals: self.intervals,
            next: self.next,
            again,
            fails: |again, output| output.as_ref().is_err_and(again),
            attempting: self.attempting,
            pausing: self.pausing,
        }
    }
}

impl<F, Fut: Future, W> Future for Retry<F, Fut, W> {
    type Output = Fut::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        for _ in 0..BATCH {
            if let Some(pausing) = this.pausing.as_mut().as_pin_mut() {
                ready!(pausing.poll(cx));
                this.pausing.set(None);
            }
            let Some(next) = *this.next else {
                panic!("`retry` polled after it was ready")
            };
            if this.attempting.is_none() {
                put(this.attempting.as_mut(), || Some((this.call)(this.attempt)));
            }
            let attempting = this.attempting.as_mut().as_pin_mut();
            let output = ready!(attempting.expect("set above").poll(cx));
            put(this.attempting.as_mut(), || None);
            *this.next = None;
            if !(this.fails)(this.again, &output) {
                return Poll::Ready(output);
            }
            let Some(interval) = this.intervals.interval(next) else {
                return Poll::Ready(output);
            };
            *this.next = Some(next.saturating_add(1));
            this.pausing.set(Some(sleep(interval)));
        }
        // Attempts that fail at once, without pauses, must not occupy the worker.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<F, Fut: Future, W> fmt::Debug for Retry<F, Fut, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry").finish_non_exhaustive()
    }
}

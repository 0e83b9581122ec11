//! A request that is made again until it succeeds.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;

use crate::error::AskError;
use crate::task::run::BATCH;
use crate::time::{RetryIntervals, Sleep, sleep};

/// Calls `attempt` and awaits its future, until it succeeds or the intervals are used up.
///
/// The first attempt begins with the first poll. Before each further attempt it waits for the next
/// interval. So there is one attempt more than there are intervals.
///
/// [`AskError::Closed`] ends it at once, as a closed actor stays closed.
/// [`when`](Retry::when) decides otherwise, and for other types of errors.
///
/// # Errors
/// The future returns the error of the last attempt.
///
/// # Panics
/// As [`sleep`].
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
pub fn retry<T, E, F, Fut>(intervals: &RetryIntervals, attempt: F) -> Retry<E, F, Fut>
where
    E: 'static,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    Retry {
        attempt,
        intervals: Box::new(intervals.iter()),
        again: Box::new(may_succeed_later),
        attempting: None,
        pausing: None,
    }
}

/// Returns whether a further attempt may succeed: not if an actor that was asked is closed.
fn may_succeed_later<E: 'static>(error: &E) -> bool {
    let error: &dyn Any = error;
    error.downcast_ref() != Some(&AskError::Closed)
}

pin_project! {
    /// The future of [`retry`].
    #[must_use = "futures do nothing unless polled"]
    pub struct Retry<E, F, Fut> {
        attempt: F,
        intervals: Box<dyn Iterator<Item = Duration> + Send>,
        again: Box<dyn Fn(&E) -> bool + Send>,
        #[pin]
        attempting: Option<Fut>,
        #[pin]
        pausing: Option<Sleep>,
    }
}

impl<E, F, Fut> Retry<E, F, Fut> {
    /// Makes a further attempt only if `again` returns true for the error of the last one.
    ///
    /// Replaces the default, which is true for every error except [`AskError::Closed`].
    pub fn when(mut self, again: impl Fn(&E) -> bool + Send + 'static) -> Self {
        self.again = Box::new(again);
        self
    }
}

impl<T, E, F, Fut> Future for Retry<E, F, Fut>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        for _ in 0..BATCH {
            if let Some(pausing) = this.pausing.as_mut().as_pin_mut() {
                ready!(pausing.poll(cx));
                this.pausing.set(None);
            }
            if this.attempting.is_none() {
                this.attempting.set(Some((this.attempt)()));
            }
            let attempting = this.attempting.as_mut().as_pin_mut();
            let output = ready!(attempting.expect("set above").poll(cx));
            this.attempting.set(None);
            let Err(error) = output else {
                return Poll::Ready(output);
            };
            if !(this.again)(&error) {
                return Poll::Ready(Err(error));
            }
            match this.intervals.next() {
                Some(interval) => this.pausing.set(Some(sleep(interval))),
                None => return Poll::Ready(Err(error)),
            }
        }
        // Attempts that fail at once, without pauses, must not occupy the worker.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<E, F, Fut> fmt::Debug for Retry<E, F, Fut> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry").finish_non_exhaustive()
    }
}

//! A future that runs until a signal.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

/// Runs `future` until it completes, or until `signal` does, which drops it.
///
/// Returns the output of `future`, or `None` if the signal came first. If both are ready in one
/// poll, the output is returned, so that it is not lost. `signal` is any future, such as
/// [`ctrl_c`](crate::ctrl_c()) or [`closed`](crate::Address::closed). Its output is dropped.
///
/// An actor that goes on to receive until a signal takes
/// [`on_return`](crate::Context::on_return) instead, which makes a message of it.
///
/// # Panics
/// The future panics if one of the two does, or if it is polled again after completion.
///
/// # Cancel safety
/// As cancel safe as `future`, which is dropped with this future, and also by the signal.
///
/// ```
/// use greenroom::request::run_until;
/// use greenroom::time::sleep;
/// use std::future::pending;
/// use std::time::Duration;
///
/// greenroom::run(async {
///     let signal = sleep(Duration::from_millis(1));
///     assert_eq!(run_until(signal, pending::<u32>()).await, None);
///     assert_eq!(run_until(pending::<()>(), async { 42 }).await, Some(42));
/// });
/// ```
pub fn run_until<S, F>(signal: S, future: F) -> RunUntil<S::IntoFuture, F::IntoFuture>
where
    S: IntoFuture,
    F: IntoFuture,
{
    RunUntil {
        signal: Some(signal.into_future()),
        future: Some(future.into_future()),
    }
}

pin_project! {
    /// The future of [`run_until`].
    #[must_use = "futures do nothing unless polled"]
    pub struct RunUntil<S, F> {
        // Both are `None` once it is over.
        #[pin]
        signal: Option<S>,
        #[pin]
        future: Option<F>,
    }
}

impl<S: Future, F: Future> Future for RunUntil<S, F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let both = (
            this.signal.as_mut().as_pin_mut(),
            this.future.as_mut().as_pin_mut(),
        );
        let (Some(signal), Some(future)) = both else {
            panic!("`run_until` polled after it was ready")
        };
        let output = match future.poll(cx) {
            Poll::Ready(output) => Some(output),
            Poll::Pending if signal.poll(cx).is_ready() => None,
            Poll::Pending => return Poll::Pending,
        };
        this.future.set(None);
        this.signal.set(None);
        Poll::Ready(output)
    }
}

impl<S, F> fmt::Debug for RunUntil<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunUntil").finish_non_exhaustive()
    }
}

//! Requests that run one after another.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;

use super::First;
use crate::task::run::BATCH;
use crate::time::{Timeout, timeout};

/// Runs requests one after another, and stops at the first that fails.
///
/// The next request is taken from `requests` when the one before it has succeeded. No requests give
/// an empty `Vec`.
///
/// # Errors
/// The future returns the [`First`] error with the position of its request. Later requests are not
/// taken.
///
/// # Cancel safety
/// Dropping the future drops the request that runs, and its values so far.
///
/// ```
/// use greenroom::{Context, Reply, sequentially, spawn};
///
/// async fn counter(mut cx: Context<Reply<u32>>) {
///     let mut count = 0;
///     while let Some(reply) = cx.recv().await {
///         count += 1;
///         reply.send(count);
///     }
/// }
///
/// greenroom::run(async {
///     let counter = spawn!(counter(_));
///     let three = (0..3).map(|_| counter.ask(|reply| reply));
///     assert_eq!(sequentially(three).await, Ok(vec![1, 2, 3]));
/// });
/// ```
pub fn sequentially<I, T, E>(requests: I) -> Sequentially<I::IntoIter, T>
where
    I: IntoIterator<Item: IntoFuture<Output = Result<T, E>>>,
{
    Sequentially {
        requests: requests.into_iter(),
        running: None,
        values: Vec::new(),
    }
}

pin_project! {
    /// The future of [`sequentially`].
    #[must_use = "futures do nothing unless polled"]
    pub struct Sequentially<I, T>
    where
        I: Iterator,
        I::Item: IntoFuture,
    {
        requests: I,
        #[pin]
        running: Option<<I::Item as IntoFuture>::IntoFuture>,
        values: Vec<T>,
    }
}

impl<I, T> Sequentially<I, T>
where
    I: Iterator,
    I::Item: IntoFuture,
    Self: Future,
{
    /// Limits the wait to `duration`, measured from this call.
    ///
    /// # Errors
    /// The future returns [`TimedOut`](crate::time::TimedOut) if the duration elapses first. The
    /// request that runs is dropped with it.
    pub fn timeout(self, duration: Duration) -> Timeout<Self> {
        timeout(duration, self)
    }
}

impl<I, T, E> Future for Sequentially<I, T>
where
    I: Iterator,
    I::Item: IntoFuture<Output = Result<T, E>>,
{
    type Output = Result<Vec<T>, First<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        for _ in 0..BATCH {
            if let Some(running) = this.running.as_mut().as_pin_mut() {
                let output = ready!(running.poll(cx));
                this.running.set(None);
                match output {
                    Ok(value) => this.values.push(value),
                    Err(error) => {
                        let index = this.values.len();
                        return Poll::Ready(Err(First { index, error }));
                    }
                }
            }
            match this.requests.next() {
                Some(request) => this.running.set(Some(request.into_future())),
                None => return Poll::Ready(Ok(std::mem::take(this.values))),
            }
        }
        // Requests that are ready at once must not occupy the worker.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<I, T> fmt::Debug for Sequentially<I, T>
where
    I: Iterator,
    I::Item: IntoFuture,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sequentially")
            .field("values", &self.values.len())
            .finish_non_exhaustive()
    }
}

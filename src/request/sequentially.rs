//! Requests that run one after another.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::{First, put};
use crate::task::run::BATCH;

/// Runs requests one after another, and stops at the first that fails.
///
/// The next request is taken from `requests` when the one before it has succeeded. No requests give
/// an empty `Vec`.
///
/// # Errors
/// The future returns the [`First`] error with the position of its request. Later requests are not
/// taken.
///
/// # Panics
/// The future panics if a request does, or if it is polled again after completion.
///
/// # Cancel safety
/// Dropping the future drops the request that runs, and the values so far.
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
pub fn sequentially<I, T, E>(
    requests: I,
) -> Sequentially<I::IntoIter, <I::Item as IntoFuture>::IntoFuture, T>
where
    I: IntoIterator<Item: IntoFuture<Output = Result<T, E>>>,
{
    Sequentially {
        requests: Some(requests.into_iter()),
        next: |requests| requests.next().map(I::Item::into_future),
        running: None,
        values: Vec::new(),
    }
}

pin_project! {
    /// The future of [`sequentially`].
    #[must_use = "futures do nothing unless polled"]
    pub struct Sequentially<I, F, T> {
        // `None` once it is over.
        requests: Option<I>,
        // A pointer, so that the bounds are checked when the future is made. Within an `async fn`,
        // which erases lifetimes, the compiler cannot prove them for a borrowed iterator.
        next: fn(&mut I) -> Option<F>,
        #[pin]
        running: Option<F>,
        values: Vec<T>,
    }
}

impl<I, F, T, E> Sequentially<I, F, T> where F: Future<Output = Result<T, E>> {}

impl<I, F, T, E> Future for Sequentially<I, F, T>
where
    F: Future<Output = Result<T, E>>,
{
    type Output = Result<Vec<T>, First<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        for _ in 0..BATCH {
            if let Some(running) = this.running.as_mut().as_pin_mut() {
                let output = ready!(running.poll(cx));
                put(this.running.as_mut(), || None);
                match output {
                    Ok(value) => this.values.push(value),
                    Err(error) => {
                        *this.requests = None;
                        let index = this.values.len();
                        return Poll::Ready(Err(First { index, error }));
                    }
                }
            }
            let Some(requests) = this.requests else {
                panic!("`sequentially` polled after it was ready")
            };
            put(this.running.as_mut(), || (this.next)(requests));
            if this.running.is_none() {
                *this.requests = None;
                return Poll::Ready(Ok(std::mem::take(this.values)));
            }
        }
        // Requests that are ready at once must not occupy the worker.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<I, F, T> fmt::Debug for Sequentially<I, F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sequentially")
            .field("values", &self.values.len())
            .finish_non_exhaustive()
    }
}

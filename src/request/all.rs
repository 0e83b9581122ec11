//! Futures of one type that run at once, in a list.
//!
//! Each is polled only when its own waker was woken. The outputs keep the order of the futures.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::First;
use crate::task::Unordered;

pin_project! {
    /// A future with its position.
    struct Indexed<F> {
        index: usize,
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Indexed<F> {
    type Output = (usize, F::Output);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        this.future.poll(cx).map(|output| (*this.index, output))
    }
}

/// The futures that still run, and the values `V` of those that have completed.
struct Running<F, V> {
    futures: Unordered<Indexed<F>>,
    values: Vec<Option<V>>,
}

impl<F: Future, V> Running<F, V> {
    fn new(futures: impl IntoIterator<Item = F>) -> Self {
        let futures = futures.into_iter().enumerate();
        let futures: Unordered<_> = futures
            .map(|(index, future)| Indexed { index, future })
            .collect();
        Running {
            values: (0..futures.len()).map(|_| None).collect(),
            futures,
        }
    }

    /// Polls until all values are there, or `value` returns an error for an output.
    fn poll<E>(
        &mut self,
        cx: &mut Context<'_>,
        value: impl Fn(F::Output) -> Result<V, E>,
    ) -> Poll<Result<Vec<V>, First<E>>> {
        while let Some((index, output)) = ready!(self.futures.poll_next(cx)) {
            match value(output) {
                Ok(value) => self.values[index] = Some(value),
                Err(error) => {
                    self.futures.clear();
                    return Poll::Ready(Err(First { index, error }));
                }
            }
        }
        let values = std::mem::take(&mut self.values).into_iter();
        let values = values.map(|value| value.expect("each future was polled to its end"));
        Poll::Ready(Ok(values.collect()))
    }
}

/// Waits for all outputs.
pub struct All<F: Future>(Running<F, F::Output>);

impl<F: Future> All<F> {
    pub(super) fn new(futures: impl IntoIterator<Item = F>) -> Self {
        All(Running::new(futures))
    }
}

// The futures are boxed by the list, and the values are never pinned.
impl<F: Future> Unpin for All<F> {}

impl<F: Future> Future for All<F> {
    type Output = Vec<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0
            .poll(cx, Ok::<_, Infallible>)
            .map(|values| match values {
                Ok(values) => values,
                Err(First { error, .. }) => match error {},
            })
    }
}

/// Waits for all values, or for the first error.
pub struct TryAll<F, T>(Running<F, T>);

impl<F: Future<Output = Result<T, E>>, T, E> TryAll<F, T> {
    pub(super) fn new(futures: impl IntoIterator<Item = F>) -> Self {
        TryAll(Running::new(futures))
    }
}

// As for `All`.
impl<F, T> Unpin for TryAll<F, T> {}

impl<F: Future<Output = Result<T, E>>, T, E> Future for TryAll<F, T> {
    type Output = Result<Vec<T>, First<E>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(cx, |output| output)
    }
}

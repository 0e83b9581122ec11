//! The future of a task of a set: that of the user, and its part in the set.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::line::LinePart;
use super::results::SetResults;
use crate::runtime::context;
use crate::task::{WaitsFor, run};

pin_project! {
    /// Whatever happens to it, its fields are dropped in this order: so the future is gone when the
    /// next one begins, and when the set gets the result.
    pub(super) struct SetFuture<T, F> {
        // `None` once it has completed.
        #[pin]
        future: Option<F>,
        part: Option<LinePart>,
        entry: ResultEntry<T>,
    }
}

impl<T, F> SetFuture<T, F> {
    pub(super) fn new(future: F, part: Option<LinePart>, entry: ResultEntry<T>) -> Self {
        SetFuture {
            future: Some(future),
            part,
            entry,
        }
    }
}

impl<T, F: Future<Output = T>> Future for SetFuture<T, F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        if let Some(part) = this.part {
            context::apply_effects();
            if part.poll(cx).is_pending() {
                run::note_wait_for(cx.waker(), WaitsFor::Other("its turn in a set"), || 0);
                return Poll::Pending;
            }
        }
        let future = this.future.as_mut().as_pin_mut();
        let value = ready!(future.expect("a task is not polled after its end").poll(cx));
        this.future.set(None);
        context::apply_effects();
        *this.part = None;
        this.entry.put(value);
        Poll::Ready(())
    }
}

/// The right to put one result of a task into the list of its set.
pub(super) struct ResultEntry<T> {
    key: usize,
    /// `None` once it was used.
    results: Option<Arc<SetResults<T>>>,
}

impl<T> ResultEntry<T> {
    pub(super) fn new(results: &Arc<SetResults<T>>, key: usize) -> Self {
        ResultEntry {
            key,
            results: Some(results.clone()),
        }
    }

    fn put(&mut self, value: T) {
        if let Some(results) = self.results.take() {
            results.put((self.key, Some(value)));
        }
    }
}

impl<T> Drop for ResultEntry<T> {
    fn drop(&mut self) {
        // (SET-1) The task has ended without a value.
        if let Some(results) = self.results.take() {
            results.put((self.key, None));
        }
    }
}

//! Futures that one task runs at once, of which those that were woken are polled.
//!
//! The set keeps the waker of its task in code of another crate, which contains no panic. So that
//! code gets wakers whose functions do not panic: those of this crate's own tasks, and for any
//! other task one that calls a [`KeptWaker`].

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use futures_util::stream::FuturesUnordered;

use super::{header, task_header};
use crate::contain::KeptWaker;

pub(crate) struct Unordered<F> {
    futures: FuturesUnordered<F>,
    /// The waker of a task that is not of this crate, which polled last.
    foreign: Option<Arc<KeptWaker>>,
}

impl<F> Unordered<F> {
    pub(crate) fn new() -> Self {
        Unordered {
            futures: FuturesUnordered::new(),
            foreign: None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.futures.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.futures.len()
    }

    pub(crate) fn push(&mut self, future: F) {
        self.futures.push(future);
    }

    pub(crate) fn clear(&mut self) {
        self.futures.clear();
    }
}

impl<F: Future> Unordered<F> {
    /// Returns the output of a future that has completed, or `None` if none is left.
    #[inline]
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        if header::is_waker(cx.waker()) || task_header::is_waker(cx.waker()) {
            self.foreign = None;
            return Pin::new(&mut self.futures).poll_next(cx);
        }
        self.poll_foreign(cx.waker())
    }

    #[cold]
    fn poll_foreign(&mut self, waker: &Waker) -> Poll<Option<F::Output>> {
        let same = self.foreign.take().filter(|kept| kept.will_wake(waker));
        let kept = same.unwrap_or_else(|| Arc::new(KeptWaker::new(waker)));
        let waker = Waker::from(self.foreign.insert(kept).clone());
        let mut cx = Context::from_waker(&waker);
        Pin::new(&mut self.futures).poll_next(&mut cx)
    }
}

impl<F> FromIterator<F> for Unordered<F> {
    fn from_iter<I: IntoIterator<Item = F>>(futures: I) -> Self {
        Unordered {
            futures: futures.into_iter().collect(),
            foreign: None,
        }
    }
}

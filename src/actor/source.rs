//! One source of an actor, and the set of all sources of an actor.
//!
//! Only the actor's `recv` polls a source. A panic ends it and is reported to the executor.

mod guard;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};

use futures_core::Stream;
use futures_util::StreamExt;
use futures_util::stream::SelectAll;

pub use guard::SourceGuard;
pub(super) use guard::{Standing, Switch};

use crate::actor::address::Address;
use crate::actor::core::At;
use crate::contain::{Panic, attempt_on, contain};
use crate::task::MessageEvent;

/// All sources of one actor.
pub(in crate::actor) struct Sources<M> {
    all: SelectAll<Source<M>>,
    /// Whether the next `recv` starts with the sources, since the last one started with the
    /// mailbox.
    first: bool,
    /// The waker of the last poll that found the sources pending.
    waker: Waker,
}

/// One source.
pub(in crate::actor) struct Source<M> {
    /// `None` once the source has ended.
    stream: Option<Pin<Box<dyn Stream<Item = M> + Send>>>,
    /// The state shared with the guard, if there is one.
    switch: Option<Arc<Switch>>,
    /// An address that keeps the actor open.
    address: Option<Address<M>>,
}

impl<M> Sources<M> {
    pub(super) fn new() -> Self {
        Sources {
            all: SelectAll::new(),
            first: false,
            waker: Waker::noop().clone(),
        }
    }

    pub(super) fn push(&mut self, source: Source<M>) {
        self.all.push(source);
    }

    /// Returns whether this `recv` starts with the sources, which every second one does.
    pub(in crate::actor) fn take_turn(&mut self) -> bool {
        self.first = !self.first;
        !self.first
    }

    /// Returns a message of a source that is ready, or `None` if all sources have ended.
    ///
    /// If none is ready, the sources wake `waker`, or the waker of the last poll if that is `None`.
    pub(in crate::actor) fn poll(
        &mut self,
        core: At<'_, M>,
        waker: Option<&Waker>,
    ) -> Poll<Option<M>> {
        if let Some(waker) = waker {
            self.waker.clone_from(waker);
        }
        let mut cx = TaskContext::from_waker(&self.waker);
        loop {
            match self.all.poll_next_unpin(&mut cx) {
                Poll::Ready(Some(Ok(message))) => {
                    core.trace(|| MessageEvent::FromSource(std::any::type_name::<M>()));
                    return Poll::Ready(Some(message));
                }
                Poll::Ready(Some(Err(panic))) => core.report(panic),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl<M> Source<M> {
    pub(super) fn new(
        stream: impl Stream<Item = M> + Send + 'static,
        switch: Option<Arc<Switch>>,
        address: Option<Address<M>>,
    ) -> Self {
        Source {
            stream: Some(Box::pin(stream)),
            switch,
            address,
        }
    }

    /// Drops the stream and contains a panic of that drop.
    fn end(&mut self) {
        contain(|| self.stream = None);
        self.address = None;
    }
}

impl<M> Stream for Source<M> {
    type Item = Result<M, Panic>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Option<Self::Item>> {
        let standing = self.switch.as_ref().map(|switch| switch.look(cx.waker()));
        match standing {
            None | Some(Standing::Foreground) => {}
            Some(Standing::Background) => self.address = None,
            Some(Standing::Cancelled) => self.end(),
        }
        let polled = attempt_on(
            &mut *self,
            |source| Some(source.stream.as_mut()?.as_mut().poll_next(cx)),
            Source::end,
        );
        match polled {
            Ok(None) => Poll::Ready(None),
            Ok(Some(polled)) => polled.map(|item| item.map(Ok)),
            Err(panic) => Poll::Ready(Some(Err(panic))),
        }
    }
}

impl<M> Drop for Source<M> {
    fn drop(&mut self) {
        self.end();
    }
}

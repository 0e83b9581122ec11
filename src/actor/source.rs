//! One source of an actor, and a set of sources, of which those that were woken are polled.
//!
//! Only the actor's `recv` polls a source. A panic ends it and is reported to the executor. A source
//! that may go on after its message is put back, behind the others that are ready.

mod guard;

use crate::task::Unordered;
use crate::tracer::{MessageSource, SentSpan};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use futures_core::Stream;

pub use guard::SourceGuard;
pub(super) use guard::{Standing, Switch};

use crate::actor::address::Address;
use crate::contain::{Panic, Step, attempt_or_clear, contain};

/// Where the messages of a source come from, and the span in which the source was added.
#[derive(Clone)]
pub(in crate::actor) struct SourceOrigin {
    pub(in crate::actor) kind: MessageSource,
    pub(in crate::actor) span: SentSpan,
}

impl From<MessageSource> for SourceOrigin {
    fn from(kind: MessageSource) -> Self {
        SourceOrigin {
            kind,
            span: SentSpan::NONE,
        }
    }
}

/// One source.
pub(in crate::actor) struct AttachedSource<M> {
    /// `None` once the source has ended.
    feed: Option<Feed<M>>,
    /// The state shared with the guard, if there is one.
    switch: Option<Arc<Switch>>,
    /// An address that keeps the actor open.
    address: Option<Address<M>>,
}

/// Where the messages of a source come from.
pub(in crate::actor) enum Feed<M> {
    /// One message.
    Once(Pin<Box<dyn Future<Output = M> + Send>>),
    Stream(Pin<Box<dyn Stream<Item = M> + Send>>),
}

impl<M> Feed<M> {
    pub(in crate::actor) fn once(future: impl Future<Output = M> + Send + 'static) -> Self {
        Feed::Once(Box::pin(future))
    }
}

impl<M> AttachedSource<M> {
    pub(in crate::actor) fn new(
        feed: Feed<M>,
        switch: Option<Arc<Switch>>,
        address: Option<Address<M>>,
    ) -> Self {
        AttachedSource {
            feed: Some(feed),
            switch,
            address,
        }
    }

    /// Returns the next message, or the panic that ended the source.
    fn poll(&mut self, cx: &mut TaskContext<'_>) -> Poll<Option<Result<M, Panic>>> {
        // The guard may have changed the source since the last poll.
        let standing = self.switch.as_ref().map(|switch| switch.look(cx.waker()));
        match standing {
            None | Some(Standing::Foreground) => {}
            Some(Standing::Background) => self.address = None,
            Some(Standing::Cancelled) => self.end(),
        }
        let mut polled = Poll::Ready(None);
        let attempted = attempt_or_clear(&mut |step| match (step, &mut self.feed) {
            (Step::Clear, _) => self.end(),
            (Step::Run, None) => {}
            (Step::Run, Some(Feed::Once(future))) => polled = future.as_mut().poll(cx).map(Some),
            (Step::Run, Some(Feed::Stream(stream))) => polled = stream.as_mut().poll_next(cx),
        });
        match attempted {
            Ok(()) => polled.map(|item| item.map(Ok)),
            Err(panic) => Poll::Ready(Some(Err(panic))),
        }
    }

    /// Returns whether the source may have another message after this one.
    fn goes_on(&self) -> bool {
        matches!(self.feed, Some(Feed::Stream(_)))
    }

    /// Drops the feed and contains a panic of that drop.
    fn end(&mut self) {
        contain(|| self.feed = None);
        self.address = None;
    }
}

impl<M> Drop for AttachedSource<M> {
    fn drop(&mut self) {
        self.end();
    }
}

/// Sources, each with where its messages come from.
pub(in crate::actor) struct SourceSet<M>(Unordered<NextItem<M>>);

/// The future of the next item of a source.
struct NextItem<M> {
    from: SourceOrigin,
    /// `None` after completion.
    source: Option<AttachedSource<M>>,
}

impl<M> SourceSet<M> {
    pub(in crate::actor) fn new() -> Self {
        SourceSet(Unordered::new())
    }

    pub(in crate::actor) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in crate::actor) fn push(&mut self, from: SourceOrigin, source: AttachedSource<M>) {
        let source = Some(source);
        self.0.push(NextItem { from, source });
    }

    /// Returns the next message of a source, or the panic that ended it, with where it comes from.
    /// Returns `None` if no source is left.
    pub(in crate::actor) fn poll(
        &mut self,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Option<(SourceOrigin, Result<M, Panic>)>> {
        loop {
            let Some((from, item, source)) = std::task::ready!(self.0.poll_next(cx)) else {
                return Poll::Ready(None);
            };
            if source.goes_on() && item.is_some() {
                self.push(from.clone(), source);
            } else {
                drop(source);
            }
            if let Some(item) = item {
                return Poll::Ready(Some((from, item)));
            }
        }
    }
}

// The source is behind a pointer wherever it must not move.
impl<M> Unpin for NextItem<M> {}

impl<M> Future for NextItem<M> {
    type Output = (SourceOrigin, Option<Result<M, Panic>>, AttachedSource<M>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let source = self.source.as_mut().expect("polled until it is ready");
        let item = std::task::ready!(source.poll(cx));
        let source = self.source.take().expect("used just now");
        Poll::Ready((self.from.clone(), item, source))
    }
}

//! A set of sources, of which those that were woken are polled.
//!
//! A source that may go on after its message is put back, behind the others that are ready.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use super::AttachedSource;
use crate::contain::Panic;
use crate::task::Unordered;
use crate::tracer::MessageSource;

/// Sources, each with where its messages come from.
pub(in crate::actor) struct SourceSet<M>(Unordered<NextItem<M>>);

/// The future of the next item of a source.
struct NextItem<M> {
    from: MessageSource,
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

    pub(in crate::actor) fn push(&mut self, from: MessageSource, source: AttachedSource<M>) {
        let source = Some(source);
        self.0.push(NextItem { from, source });
    }

    /// Returns the next message of a source, or the panic that ended it, with where it comes from.
    /// Returns `None` if no source is left.
    pub(in crate::actor) fn poll(
        &mut self,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Option<(MessageSource, Result<M, Panic>)>> {
        loop {
            let Some((from, item, source)) = std::task::ready!(self.0.poll_next(cx)) else {
                return Poll::Ready(None);
            };
            if source.goes_on() && item.is_some() {
                self.push(from, source);
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
    type Output = (MessageSource, Option<Result<M, Panic>>, AttachedSource<M>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let source = self.source.as_mut().expect("polled until it is ready");
        let item = std::task::ready!(source.poll(cx));
        let source = self.source.take().expect("used just now");
        Poll::Ready((self.from, item, source))
    }
}

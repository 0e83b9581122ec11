//! A set of sources, of which those that were woken are polled.
//!
//! A source that may go on after its message is put back, behind the others that are ready.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use super::Source;
use crate::contain::Panic;
use crate::task::Unordered;

/// Sources with the keys that their owner gave them.
pub(in crate::actor) struct SourceSet<K, M>(Unordered<NextItem<K, M>>);

/// The future of the next item of a source.
struct NextItem<K, M> {
    key: K,
    /// `None` after completion.
    source: Option<Source<M>>,
}

impl<K: Copy, M> SourceSet<K, M> {
    pub(in crate::actor) fn new() -> Self {
        SourceSet(Unordered::new())
    }

    pub(in crate::actor) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in crate::actor) fn push(&mut self, key: K, source: Source<M>) {
        let source = Some(source);
        self.0.push(NextItem { key, source });
    }

    /// Returns the next message of a source, or the panic that ended it, with the source's key.
    /// Returns `None` if no source is left.
    pub(in crate::actor) fn poll(
        &mut self,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Option<(K, Result<M, Panic>)>> {
        loop {
            let Some((key, item, source)) = std::task::ready!(self.0.poll_next(cx)) else {
                return Poll::Ready(None);
            };
            if source.goes_on() && item.is_some() {
                self.push(key, source);
            } else {
                drop(source);
            }
            if let Some(item) = item {
                return Poll::Ready(Some((key, item)));
            }
        }
    }
}

// The source is behind a pointer wherever it must not move.
impl<K, M> Unpin for NextItem<K, M> {}

impl<K: Copy, M> Future for NextItem<K, M> {
    type Output = (K, Option<Result<M, Panic>>, Source<M>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let source = self.source.as_mut().expect("polled until it is ready");
        let item = std::task::ready!(source.poll(cx));
        let source = self.source.take().expect("used just now");
        Poll::Ready((self.key, item, source))
    }
}

//! All sources of one actor.
//!
//! They are polled with the waker of the actor's last `recv`. Children and other sources take
//! turns, so neither starves the other.

use std::task::{Context as TaskContext, Poll, Waker};

use super::children::Children;
use super::core::At;
use super::source::{Source, SourceSet};
use crate::contain::Panic;
use crate::error::FaultyPart;
use crate::task::MessageEvent;

pub(super) struct Sources<M> {
    set: SourceSet<M>,
    pub(super) children: Children<M>,
    /// Whether the next `recv` starts with the sources, since the last one started with the
    /// mailbox.
    first: bool,
    /// Whether the next poll starts with the children.
    children_first: bool,
    /// The waker of the last poll that found the sources pending.
    waker: Waker,
}

impl<M> Sources<M> {
    pub(super) fn new() -> Self {
        Sources {
            set: SourceSet::new(),
            children: Children::new(),
            first: false,
            children_first: false,
            waker: Waker::noop().clone(),
        }
    }

    pub(super) fn add(&mut self, source: Source<M>) {
        self.set.push(0, source);
    }

    /// Drops all sources but the children. Returns whether nothing is left.
    pub(super) fn close(&mut self) -> bool {
        self.set = SourceSet::new();
        self.children.is_empty()
    }

    /// Returns whether this `recv` starts with the sources, which every second one does.
    pub(super) fn take_turn(&mut self) -> bool {
        self.first = !self.first;
        !self.first
    }

    /// Returns a message of a source that is ready, or `None` if all sources have ended.
    ///
    /// If none is ready, the sources wake `waker`, or the waker of the last poll if that is `None`.
    pub(super) fn poll(&mut self, core: At<'_, M>, waker: Option<&Waker>) -> Poll<Option<M>> {
        if let Some(waker) = waker {
            self.waker.clone_from(waker);
        }
        loop {
            let item = match self.poll_next() {
                Poll::Ready(Some(item)) => item,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            };
            match item {
                Ok(message) => {
                    core.trace(|| MessageEvent::FromSource(std::any::type_name::<M>()));
                    return Poll::Ready(Some(message));
                }
                Err(panic) => core.report(panic, FaultyPart::Source),
            }
        }
    }

    fn poll_next(&mut self) -> Poll<Option<Result<M, Panic>>> {
        let mut cx = TaskContext::from_waker(&self.waker);
        self.children_first = !self.children_first;
        let mut pending = false;
        for children in [self.children_first, !self.children_first] {
            let polled = match children {
                true => self.children.poll(&mut cx),
                false => self.set.poll(&mut cx).map(|item| Some(item?.1)),
            };
            match polled {
                Poll::Ready(Some(item)) => return Poll::Ready(Some(item)),
                Poll::Ready(None) => {}
                Poll::Pending => pending = true,
            }
        }
        if pending {
            Poll::Pending
        } else {
            Poll::Ready(None)
        }
    }
}

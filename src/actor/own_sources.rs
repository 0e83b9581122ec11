//! All sources of one actor.
//!
//! They are polled with the waker of the actor's last `recv`. Children, requests in flight and other
//! sources take turns, so none starves the others.

use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};

use super::children::Children;
use super::core::CoreRef;
use super::in_flight::InFlight;
use super::source::{AttachedSource, SourceOrigin, SourceSet};
use crate::contain::{KeptWaker, Panic};
use crate::error::FaultyPart;
use crate::task::TaskInfo;
use crate::waiters::{Ticket, Waiters};

/// The [`OwnSources`] of an actor that may have none. The type of an actor that adds none is compiled
/// without them.
pub(super) trait SomeSources<M>: Send {
    /// Returns a message of a source that is ready, or `None` if all sources have ended.
    ///
    /// If none is ready, the sources wake `waker`, or the waker of the last poll if that is `None`.
    fn poll(&mut self, core: CoreRef<'_, M>, waker: Option<&Waker>) -> Poll<Option<M>>;
    /// Drops all sources but the children. Returns whether nothing is left.
    fn close(&mut self) -> bool;
    /// Returns whether this `recv` starts with the sources, which every second one does.
    fn take_turn(&mut self) -> bool;
    /// Returns the waker of the last poll, or that of the list. Once the list has woken a task it
    /// has nothing left to drop.
    fn waker(&self) -> &Waker;
    /// Drops the waker of a task that waited with another one than the actor's own.
    fn forget_other(&mut self);
    fn stop_children(&mut self, at_once: bool);
    fn list_children(&self) -> Vec<TaskInfo>;
    /// Returns the sources themselves, to which others can be added.
    fn all(&mut self) -> &mut OwnSources<M>;
}

pub(super) struct OwnSources<M> {
    set: SourceSet<M>,
    pub(super) children: Children<M>,
    /// `None` before the first request.
    in_flight: Option<InFlight<M>>,
    /// Whether the next `recv` starts with the sources, since the last one started with the
    /// mailbox.
    first: bool,
    /// The number of polls, of which each third one starts with the same kind of source.
    polls: usize,
    /// The waker of the last poll that found the sources pending, or that of `other`.
    waker: KeptWaker,
    /// The task that waits in `recv` with another waker than the actor's own. The sources keep the
    /// list, and not that waker, so a `recv` that is dropped takes it along.
    other: Option<(Arc<Waiters>, Ticket)>,
}

impl<M> OwnSources<M> {
    pub(super) fn new() -> Self {
        OwnSources {
            set: SourceSet::new(),
            children: Children::new(),
            in_flight: None,
            first: false,
            polls: 0,
            waker: KeptWaker::noop(),
            other: None,
        }
    }

    pub(super) fn add(&mut self, from: SourceOrigin, source: AttachedSource<M>) {
        self.set.push(from, source);
    }

    pub(super) fn in_flight(&mut self) -> &mut InFlight<M> {
        self.in_flight.get_or_insert_with(InFlight::new)
    }

    /// Lets the sources wake a task with another waker than the actor's own.
    #[cold]
    fn wake_other(&mut self, waker: &Waker) {
        let (waiters, ticket) = self
            .other
            .get_or_insert_with(|| (Arc::new(Waiters::new()), Ticket::default()));
        let _ = waiters.poll(ticket, &mut TaskContext::from_waker(waker), || false);
        self.waker = Waker::from(waiters.clone()).into();
    }

    /// Returns the message of a source, or its panic, and where it comes from.
    fn poll_next(&mut self) -> Poll<Option<(SourceOrigin, Result<M, Panic>)>> {
        let mut cx = TaskContext::from_waker(self.waker.as_waker());
        self.polls = self.polls.wrapping_add(1);
        let mut pending = false;
        // Another kind is first in each poll, so that none of them starves.
        for kind in 0..3 {
            let polled = match self.polls.wrapping_add(kind) % 3 {
                0 if !self.set.is_empty() => self.set.poll(&mut cx),
                1 if !self.children.is_empty() => self.children.poll(&mut cx),
                0 | 1 => Poll::Ready(None),
                _ => match &mut self.in_flight {
                    Some(in_flight) => in_flight.poll(&mut cx),
                    None => Poll::Ready(None),
                },
            };
            match polled {
                Poll::Ready(Some(next)) => return Poll::Ready(Some(next)),
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

impl<M: Send> SomeSources<M> for OwnSources<M> {
    fn close(&mut self) -> bool {
        if !self.set.is_empty() {
            self.set = SourceSet::new();
        }
        self.in_flight = None;
        self.children.is_empty()
    }

    fn take_turn(&mut self) -> bool {
        self.first = !self.first;
        !self.first
    }

    fn poll(&mut self, core: CoreRef<'_, M>, waker: Option<&Waker>) -> Poll<Option<M>> {
        if let Some(waker) = waker {
            // Outside of the actor's own task each poll may come with another waker.
            match core.is_own(waker) {
                true => {
                    self.forget_other();
                    self.waker.renew(waker);
                }
                false => self.wake_other(waker),
            }
        }
        loop {
            let (from, item) = match self.poll_next() {
                Poll::Ready(Some(next)) => next,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            };
            match item {
                Ok(message) => {
                    core.received_from(&message, from.kind, from.span);
                    return Poll::Ready(Some(message));
                }
                Err(panic) => core.report(panic, FaultyPart::Source),
            }
        }
    }

    fn waker(&self) -> &Waker {
        self.waker.as_waker()
    }

    fn forget_other(&mut self) {
        if let Some((waiters, ticket)) = &mut self.other {
            waiters.leave(ticket);
        }
    }

    fn stop_children(&mut self, at_once: bool) {
        self.children.stop(at_once);
    }

    fn list_children(&self) -> Vec<TaskInfo> {
        self.children.list().collect()
    }

    fn all(&mut self) -> &mut OwnSources<M> {
        self
    }
}

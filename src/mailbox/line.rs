//! Senders that wait for room in a bounded mailbox, in order of arrival.
//!
//! A waiting sender leaves its message in the line, and the mailbox itself takes it when there is
//! room. So a sender that is never polled again holds up nobody, and nothing granted can be lost.
//!
//! # Invariants
//! - LINE-1: a `WaitingSender` is touched only under the lock of its mailbox, except in `new` and `free`.
//! - LINE-2: those in the list are linked both ways and in state `Waiting`; one that is freed is not in the
//!   list.
#![expect(
    unsafe_code,
    reason = "an intrusive list under the mailbox's lock; see LINE-1 and LINE-2"
)]

use std::ptr::NonNull;
use std::task::Waker;

/// A sender in the line, with its message.
pub(crate) struct WaitingSender<M> {
    previous: Option<NonNull<WaitingSender<M>>>,
    next: Option<NonNull<WaitingSender<M>>>,
    message: Option<M>,
    waker: Option<Waker>,
    state: SenderState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SenderState {
    Waiting,
    Accepted,
    Refused,
}

/// A sender's right to its place in the line, which frees the memory of that.
pub(crate) struct PlaceInLine<M>(NonNull<WaitingSender<M>>);

// SAFETY: (LINE-1) what it points to is only touched under the lock; its message and waker are `Send`.
unsafe impl<M: Send> Send for PlaceInLine<M> {}
// SAFETY: (LINE-1) as for `Send`; a shared reference gives no access.
unsafe impl<M: Send> Sync for PlaceInLine<M> {}

/// The line itself; belongs to the mailbox.
pub(crate) struct Line<M> {
    first: Option<NonNull<WaitingSender<M>>>,
    last: Option<NonNull<WaitingSender<M>>>,
}

// SAFETY: (LINE-1) as for `PlaceInLine`.
unsafe impl<M: Send> Send for Line<M> {}

impl<M> PlaceInLine<M> {
    /// What tells it from all others that wait.
    pub(crate) fn key(&self) -> usize {
        self.0.addr().get()
    }

    /// `None`: a place in the queue is waited for, and the message comes later.
    pub(crate) fn new(message: Option<M>, waker: Waker) -> Self {
        let sender = WaitingSender {
            previous: None,
            next: None,
            message,
            waker: Some(waker),
            state: SenderState::Waiting,
        };
        PlaceInLine(NonNull::from(Box::leak(Box::new(sender))))
    }

    /// Frees the place and gives its message back, if the mailbox did not take it.
    pub(crate) fn free(self) -> Option<M> {
        // SAFETY: (LINE-2) the caller has left the line or was taken out of it, so the box is ours.
        let sender = unsafe { Box::from_raw(self.0.as_ptr()) };
        sender.message
    }
}

impl<M> Line<M> {
    pub(crate) const fn new() -> Self {
        Line {
            first: None,
            last: None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Goes to the end of the line.
    pub(crate) fn join(&mut self, place: &PlaceInLine<M>) {
        // SAFETY: (LINE-1) under the lock; (LINE-2) a new place is in no list yet.
        unsafe {
            (*place.0.as_ptr()).previous = self.last;
            match self.last {
                Some(last) => (*last.as_ptr()).next = Some(place.0),
                None => self.first = Some(place.0),
            }
        }
        self.last = Some(place.0);
    }

    /// Takes the sender out of the line, if it still waits; returns how it stood.
    pub(crate) fn leave(&mut self, place: &PlaceInLine<M>) -> SenderState {
        // SAFETY: (LINE-1) under the lock.
        let state = unsafe { (*place.0.as_ptr()).state };
        if state == SenderState::Waiting {
            self.unlink(place.0);
        }
        state
    }

    /// Where the sender stands; while it waits, `waker` takes the place of the one it left, which
    /// is handed back to be dropped outside the lock.
    pub(crate) fn look(
        &mut self,
        place: &PlaceInLine<M>,
        waker: &mut Option<Waker>,
    ) -> SenderState {
        // SAFETY: (LINE-1) under the lock.
        let sender = unsafe { &mut *place.0.as_ptr() };
        if sender.state == SenderState::Waiting {
            std::mem::swap(&mut sender.waker, waker);
        }
        sender.state
    }

    /// The first one's message, to be taken; then call [`Line::settle_first`].
    pub(crate) fn first_message(&mut self) -> Option<&mut Option<M>> {
        // SAFETY: (LINE-1) under the lock; (LINE-2) a place in the list is alive.
        self.first
            .map(|sender| unsafe { &mut (*sender.as_ptr()).message })
    }

    /// Takes the first sender out of the line in its final state; returns its waker.
    pub(crate) fn settle_first(&mut self, state: SenderState) -> Option<Waker> {
        let first = self.first?;
        self.unlink(first);
        // SAFETY: (LINE-1) under the lock; its owner frees it only under or after this section.
        let sender = unsafe { &mut *first.as_ptr() };
        sender.state = state;
        sender.waker.take()
    }

    fn unlink(&mut self, sender: NonNull<WaitingSender<M>>) {
        // SAFETY: (LINE-1) under the lock; (LINE-2) neighbours are alive.
        unsafe {
            let (previous, next) = ((*sender.as_ptr()).previous, (*sender.as_ptr()).next);
            match previous {
                Some(previous) => (*previous.as_ptr()).next = next,
                None => self.first = next,
            }
            match next {
                Some(next) => (*next.as_ptr()).previous = previous,
                None => self.last = previous,
            }
        }
    }
}

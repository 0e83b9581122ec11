//! Senders that wait for room in a bounded mailbox, in order of arrival.
//!
//! A waiting sender leaves its message in the line, and the mailbox itself takes it when there is
//! room. So a sender that is never polled again holds up nobody, and nothing granted can be lost.
//!
//! # Invariants
//! - LINE-1: a place is touched only under the lock of its mailbox, but for `new` and `free`.
//! - LINE-2: places in the list are linked both ways and in state `Waiting`; a place that is freed is
//!   not in the list.
#![expect(
    unsafe_code,
    reason = "an intrusive list under the mailbox's lock; see LINE-1 and LINE-2"
)]

use std::ptr::NonNull;
use std::task::Waker;

/// One sender's place in the line.
pub(crate) struct Place<M> {
    previous: Option<NonNull<Place<M>>>,
    next: Option<NonNull<Place<M>>>,
    message: Option<M>,
    waker: Option<Waker>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Waiting,
    Accepted,
    Refused,
}

/// The sender's hold on its place; it frees it.
pub(crate) struct Ticket<M>(NonNull<Place<M>>);

// SAFETY: (LINE-1) the place is only touched under the lock; its message and waker are `Send`.
unsafe impl<M: Send> Send for Ticket<M> {}
// SAFETY: (LINE-1) as above; a shared ticket gives no access.
unsafe impl<M: Send> Sync for Ticket<M> {}

/// The line itself; belongs to the mailbox.
pub(crate) struct Line<M> {
    first: Option<NonNull<Place<M>>>,
    last: Option<NonNull<Place<M>>>,
}

// SAFETY: (LINE-1) as for `Ticket`.
unsafe impl<M: Send> Send for Line<M> {}

impl<M> Ticket<M> {
    /// What tells it from all others that wait.
    pub(crate) fn key(&self) -> usize {
        self.0.addr().get()
    }

    /// `None`: a place in the queue is waited for, and the message comes later.
    pub(crate) fn new(message: Option<M>, waker: Waker) -> Self {
        let place = Place {
            previous: None,
            next: None,
            message,
            waker: Some(waker),
            state: State::Waiting,
        };
        Ticket(NonNull::from(Box::leak(Box::new(place))))
    }

    /// Frees the place and gives its message back, if the mailbox did not take it.
    pub(crate) fn free(self) -> Option<M> {
        // SAFETY: (LINE-2) the caller has left the line or was taken out of it, so the box is ours.
        let place = unsafe { Box::from_raw(self.0.as_ptr()) };
        place.message
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
    pub(crate) fn join(&mut self, ticket: &Ticket<M>) {
        // SAFETY: (LINE-1) under the lock; (LINE-2) a new place is in no list yet.
        unsafe {
            (*ticket.0.as_ptr()).previous = self.last;
            match self.last {
                Some(last) => (*last.as_ptr()).next = Some(ticket.0),
                None => self.first = Some(ticket.0),
            }
        }
        self.last = Some(ticket.0);
    }

    /// Gives up the place, if it still waits; says how it stood.
    pub(crate) fn leave(&mut self, ticket: &Ticket<M>) -> State {
        // SAFETY: (LINE-1) under the lock.
        let state = unsafe { (*ticket.0.as_ptr()).state };
        if state == State::Waiting {
            self.unlink(ticket.0);
        }
        state
    }

    /// Where the sender stands; while it waits, `waker` takes the place of the one it left, which
    /// is handed back to be dropped outside the lock.
    pub(crate) fn look(&mut self, ticket: &Ticket<M>, waker: &mut Option<Waker>) -> State {
        // SAFETY: (LINE-1) under the lock.
        let place = unsafe { &mut *ticket.0.as_ptr() };
        if place.state == State::Waiting {
            std::mem::swap(&mut place.waker, waker);
        }
        place.state
    }

    /// The first one's message, to be taken; then call [`Line::settle_first`].
    pub(crate) fn first_message(&mut self) -> Option<&mut Option<M>> {
        // SAFETY: (LINE-1) under the lock; (LINE-2) a place in the list is alive.
        self.first
            .map(|place| unsafe { &mut (*place.as_ptr()).message })
    }

    /// Takes the first one out of the line in its final state; gives its waker.
    pub(crate) fn settle_first(&mut self, state: State) -> Option<Waker> {
        let first = self.first?;
        self.unlink(first);
        // SAFETY: (LINE-1) under the lock; its owner frees it only under or after this section.
        let place = unsafe { &mut *first.as_ptr() };
        place.state = state;
        place.waker.take()
    }

    fn unlink(&mut self, place: NonNull<Place<M>>) {
        // SAFETY: (LINE-1) under the lock; (LINE-2) neighbours are alive.
        unsafe {
            let (previous, next) = ((*place.as_ptr()).previous, (*place.as_ptr()).next);
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

//! The line of a bounded mailbox: senders that wait for room, in order of arrival.
//!
//! A waiting sender stores its message in the line, and the mailbox itself takes the message when
//! there is room. So a sender that is never polled again delays no other sender, and no room that
//! was granted is lost.
//!
//! # Invariants
//! - LINE-1: a `WaitingSender` is accessed only under the lock of its mailbox, except in `new` and
//!   `free`.
//! - LINE-2: senders in the list are linked both ways and are in state `Waiting`. A sender is freed
//!   only when it is not in the list.
#![expect(
    unsafe_code,
    reason = "an intrusive list under the mailbox's lock; see LINE-1 and LINE-2"
)]

use crate::contain::KeptWaker;
use crate::tracer::MessageSender;
use std::ptr::NonNull;

/// A sender in the line, with its message.
pub(crate) struct WaitingSender<M> {
    previous: Option<NonNull<WaitingSender<M>>>,
    next: Option<NonNull<WaitingSender<M>>>,
    message: Option<M>,
    /// The actor that sends, for a trace.
    from: MessageSender,
    waker: Option<KeptWaker>,
    state: SenderState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SenderState {
    Waiting,
    Accepted,
    Refused,
}

/// A sender's ownership of its entry in the line, whose memory it frees.
pub(crate) struct LineEntry<M>(NonNull<WaitingSender<M>>);

// SAFETY: (LINE-1) the entry is only accessed under the lock; its message and waker are `Send`.
unsafe impl<M: Send> Send for LineEntry<M> {}
// SAFETY: (LINE-1) as for `Send`; a shared reference gives no access.
unsafe impl<M: Send> Sync for LineEntry<M> {}

/// The line itself; owned by the mailbox.
pub(crate) struct Line<M> {
    first: Option<NonNull<WaitingSender<M>>>,
    last: Option<NonNull<WaitingSender<M>>>,
}

// SAFETY: (LINE-1) as for `LineEntry`.
unsafe impl<M: Send> Send for Line<M> {}

impl<M> LineEntry<M> {
    /// Returns a key that no other waiting sender has.
    pub(crate) fn key(&self) -> usize {
        self.0.addr().get()
    }

    /// Creates a sender that is not in the line yet, and moves the message to it. That is `None` if
    /// the sender waits for a permit, which it uses later. `from` is the actor that sends,
    /// for a trace.
    pub(crate) fn new(message: &mut Option<M>, from: MessageSender, waker: KeptWaker) -> Self {
        let mut memory = Box::<WaitingSender<M>>::new_uninit();
        let sender = memory.as_mut_ptr();
        // Field by field: so a large message is copied once, from its place into the box.
        // SAFETY: the fields are those of the new box. The message is moved: `None` is written over
        // it without a drop.
        unsafe {
            (&raw mut (*sender).previous).write(None);
            (&raw mut (*sender).next).write(None);
            (&raw mut (*sender).message).copy_from_nonoverlapping(message, 1);
            std::ptr::write(message, None);
            (&raw mut (*sender).from).write(from);
            (&raw mut (*sender).waker).write(Some(waker));
            (&raw mut (*sender).state).write(SenderState::Waiting);
        }
        // SAFETY: all fields were written.
        let sender = unsafe { memory.assume_init() };
        LineEntry(NonNull::from(Box::leak(sender)))
    }

    /// Frees the entry, and moves its message to `left` if the mailbox did not take it.
    pub(crate) fn free(self, left: &mut Option<M>) {
        // SAFETY: (LINE-2) the caller has left the line or was removed from it, so it owns the box.
        let mut sender = unsafe { Box::from_raw(self.0.as_ptr()) };
        if sender.message.is_some() {
            *left = sender.message.take();
        }
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

    /// Appends the sender to the line.
    pub(crate) fn join(&mut self, entry: &LineEntry<M>) {
        // SAFETY: (LINE-1) under the lock; (LINE-2) a new entry is in no list yet.
        unsafe {
            (*entry.0.as_ptr()).previous = self.last;
            match self.last {
                Some(last) => (*last.as_ptr()).next = Some(entry.0),
                None => self.first = Some(entry.0),
            }
        }
        self.last = Some(entry.0);
    }

    /// Removes the sender from the line if it still waits. Returns its state before that.
    pub(crate) fn leave(&mut self, entry: &LineEntry<M>) -> SenderState {
        // SAFETY: (LINE-1) under the lock.
        let state = unsafe { (*entry.0.as_ptr()).state };
        if state == SenderState::Waiting {
            self.unlink(entry.0);
        }
        state
    }

    /// Returns the state of the sender. While it waits, swaps `waker` with the stored one, so that
    /// the caller can drop the old waker outside the lock.
    pub(crate) fn look(
        &mut self,
        entry: &LineEntry<M>,
        waker: &mut Option<KeptWaker>,
    ) -> SenderState {
        // SAFETY: (LINE-1) under the lock.
        let sender = unsafe { &mut *entry.0.as_ptr() };
        if sender.state == SenderState::Waiting {
            std::mem::swap(&mut sender.waker, waker);
        }
        sender.state
    }

    /// Returns the message of the first sender, for the caller to take, and the actor that sends.
    /// [`Line::complete_first`] must follow.
    pub(crate) fn first_message(&mut self) -> Option<(&mut Option<M>, &MessageSender)> {
        // SAFETY: (LINE-1) under the lock; (LINE-2) an entry in the list is alive.
        let first = self.first.map(|sender| unsafe { &mut *sender.as_ptr() });
        first.map(|sender| (&mut sender.message, &sender.from))
    }

    /// Removes the first sender from the line, sets its final state and returns its waker.
    pub(crate) fn complete_first(&mut self, state: SenderState) -> Option<KeptWaker> {
        let first = self.first?;
        self.unlink(first);
        // SAFETY: (LINE-1) under the lock; the owner frees the entry only after a critical section
        // of its own.
        let sender = unsafe { &mut *first.as_ptr() };
        sender.state = state;
        sender.waker.take()
    }

    fn unlink(&mut self, sender: NonNull<WaitingSender<M>>) {
        // SAFETY: (LINE-1) under the lock; (LINE-2) the neighbours are alive.
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

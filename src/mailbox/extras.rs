//! The extras of a mailbox and of its actor, which most never need: made at first use.
//!
//! They are behind one pointer, and once made stay until the mailbox is gone.
//!
//! # Invariants
//! - EXTRAS-1: the part `mailbox` is touched only under the lock of the mailbox; `actor` is only ever contents,
//!   and stays as long as the mailbox.
#![expect(unsafe_code, reason = "two halves with different rights; see EXTRAS-1")]

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;

use super::line::Line;
use crate::blocks;
use crate::waiters::Waiters;

pub(super) struct Extras<M> {
    mailbox: MailboxExtras<M>,
    actor: ActorExtras,
}

/// The mailbox's part.
pub(super) struct MailboxExtras<M> {
    /// `None`: unbounded.
    pub(super) bound: Option<Bound<M>>,
    /// Whom a message wakes if `recv` waits in a task that is not the actor's own.
    pub(super) receiver: Option<Waker>,
    /// How many messages were accepted that are still to come.
    pub(super) reserved: usize,
    /// How a message is shown in a trace.
    pub(super) show: Option<fn(&M) -> String>,
}

pub(super) struct Bound<M> {
    pub(super) capacity: usize,
    /// Messages and reserved places.
    pub(super) len: usize,
    pub(super) line: Line<M>,
}

/// The actor's part, which the mailbox only keeps.
pub(super) struct ActorExtras {
    /// One word; who is told of the actor shares it.
    pub(super) name: Option<Arc<Box<str>>>,
    /// Who waits for the end of the actor.
    pub(super) ended: Waiters,
}

/// Extras in memory that threads keep, since a join needs some.
pub(super) struct ExtrasBox<M>(NonNull<Extras<M>>);

impl<M> ExtrasBox<M> {
    pub(super) fn new(capacity: Option<usize>, name: Option<Box<str>>) -> Self {
        let extras = blocks::room::<Extras<M>>();
        let bound = capacity.map(|capacity| Bound {
            capacity,
            len: 0,
            line: Line::new(),
        });
        let mailbox = MailboxExtras {
            bound,
            receiver: None,
            reserved: 0,
            show: None,
        };
        let actor = ActorExtras {
            name: name.map(Arc::new),
            ended: Waiters::new(),
        };
        // SAFETY: memory for it.
        unsafe { extras.write(Extras { mailbox, actor }) };
        ExtrasBox(extras)
    }

    /// What it was made with; nobody has seen it.
    pub(super) fn into_options(self) -> (Option<usize>, Option<Box<str>>) {
        // SAFETY: made by `new`, and not dropped after this.
        let Extras { mailbox, actor } = unsafe { blocks::take_out(ManuallyDrop::new(self).0) };
        let capacity = mailbox.bound.map(|bound| bound.capacity);
        (capacity, actor.name.and_then(Arc::into_inner))
    }
}

impl<M> ExtrasBox<M> {
    /// Returns the mailbox's part.
    pub(super) fn mailbox(&mut self) -> &mut MailboxExtras<M> {
        // SAFETY: (EXTRAS-1) whoever has the box to itself has the lock.
        unsafe { &mut (*self.0.as_ptr()).mailbox }
    }

    pub(super) fn pointer(&self) -> NonNull<Extras<M>> {
        self.0
    }
}

impl<M> Extras<M> {
    /// Returns the actor's part.
    ///
    /// # Safety
    /// The mailbox to which the extras belong is there for as long as `'a`.
    pub(super) unsafe fn actor<'a>(extras: NonNull<Self>) -> &'a ActorExtras {
        // SAFETY: by the caller's promise they are not freed; (EXTRAS-1) this part is only contents.
        unsafe { &(*extras.as_ptr()).actor }
    }
}

impl<M> Drop for ExtrasBox<M> {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and it was never in a mailbox, or that is gone.
        unsafe { blocks::discard(self.0) };
    }
}

impl<M> Bound<M> {
    /// Whether there is room, and nobody was here before.
    pub(super) fn has_room(&self) -> bool {
        self.len < self.capacity && self.line.is_empty()
    }
}

//! What most mailboxes never have, and most actors beside it: made when it is first needed.
//!
//! It is behind one pointer, and once made stays until the mailbox is gone.
//!
//! # Invariants
//! - EXTRAS-1: `rare` is touched only under the lock of the mailbox, `beside` is only ever shared.
#![expect(unsafe_code, reason = "two halves with different rights; see EXTRAS-1")]

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;

use super::line::Line;
use crate::blocks;
use crate::waiters::Waiters;

pub(super) struct Annex<M> {
    rare: Rare<M>,
    beside: Beside,
}

/// The mailbox's part.
pub(super) struct Rare<M> {
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
pub(super) struct Beside {
    /// One word; who is told of the actor shares it.
    pub(super) name: Option<Arc<Box<str>>>,
    /// Who waits for the end of the actor.
    pub(super) ended: Waiters,
}

/// An annex in memory that threads keep, since whoever joins an actor needs one.
pub(super) struct Own<M>(NonNull<Annex<M>>);

impl<M> Own<M> {
    pub(super) fn new(capacity: Option<usize>, name: Option<Box<str>>) -> Self {
        let annex = blocks::room::<Annex<M>>();
        let bound = capacity.map(|capacity| Bound {
            capacity,
            len: 0,
            line: Line::new(),
        });
        let rare = Rare {
            bound,
            receiver: None,
            reserved: 0,
            show: None,
        };
        let beside = Beside {
            name: name.map(Arc::new),
            ended: Waiters::new(),
        };
        // SAFETY: memory for it.
        unsafe { annex.write(Annex { rare, beside }) };
        Own(annex)
    }

    /// What it was made with; nobody has seen it.
    pub(super) fn into_options(self) -> (Option<usize>, Option<Box<str>>) {
        // SAFETY: made by `new`, and not dropped after this.
        let Annex { rare, beside } = unsafe { blocks::take_out(ManuallyDrop::new(self).0) };
        let capacity = rare.bound.map(|bound| bound.capacity);
        (capacity, beside.name.and_then(Arc::into_inner))
    }
}

impl<M> Own<M> {
    /// Returns the mailbox's part.
    pub(super) fn rare(&mut self) -> &mut Rare<M> {
        // SAFETY: (EXTRAS-1) whoever has the box to itself has the lock.
        unsafe { &mut (*self.0.as_ptr()).rare }
    }

    pub(super) fn pointer(&self) -> NonNull<Annex<M>> {
        self.0
    }
}

impl<M> Annex<M> {
    /// Returns the actor's part.
    ///
    /// # Safety
    /// The mailbox to which the annex belongs is there for as long as `'a`.
    pub(super) unsafe fn beside<'a>(annex: NonNull<Self>) -> &'a Beside {
        // SAFETY: by the caller's promise it is not freed; (EXTRAS-1) this part is only shared.
        unsafe { &(*annex.as_ptr()).beside }
    }
}

impl<M> Drop for Own<M> {
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

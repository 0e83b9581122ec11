//! Rarely needed state of a mailbox and of its actor, allocated on first use.
//!
//! The extras are behind one pointer. Once allocated, they live as long as the mailbox.
//!
//! # Invariants
//! - EXTRAS-1: the part `mailbox` is accessed only under the mailbox's lock. The part `actor` is
//!   never borrowed mutably after creation, and lives as long as the mailbox.
#![expect(unsafe_code, reason = "two halves with different rights; see EXTRAS-1")]

use std::ptr::NonNull;
use std::sync::Arc;

use super::hooks::Hooks;
use super::line::Line;
use crate::blocks;
use crate::contain::KeptWaker;
use crate::waiters::Waiters;

pub(super) struct Extras<M> {
    mailbox: MailboxExtras<M>,
    actor: ActorExtras,
}

/// The part that belongs to the mailbox.
pub(super) struct MailboxExtras<M> {
    /// The bound; `None` if the mailbox is unbounded.
    pub(super) bound: Option<Bound<M>>,
    /// The waker for a message if `recv` waits in a task other than the actor's own.
    pub(super) receiver: Option<KeptWaker>,
    /// The number of permits, which are not used yet.
    pub(super) reserved: usize,
    /// Behind one more pointer, since few actors have them.
    pub(super) hooks: Option<Box<Hooks<M>>>,
}

pub(super) struct Bound<M> {
    pub(super) capacity: usize,
    /// The number of messages and permits.
    pub(super) len: usize,
    pub(super) line: Line<M>,
}

/// The part that belongs to the actor; the mailbox only stores it.
pub(super) struct ActorExtras {
    /// The actor's name, one word in size; each `TaskInfo` of the actor shares it.
    pub(super) name: Option<Arc<Box<str>>>,
    /// The tasks that wait for the end of the actor.
    pub(super) ended: Waiters,
}

/// The options of an actor that its mailbox stores.
pub(crate) struct MailboxOptions<M> {
    pub(crate) capacity: Option<usize>,
    /// The name of the actor.
    pub(crate) name: Option<Box<str>>,
    pub(crate) hooks: Option<Box<Hooks<M>>>,
}

impl<M> MailboxOptions<M> {
    pub(crate) fn of(capacity: Option<usize>) -> Self {
        MailboxOptions {
            capacity,
            name: None,
            hooks: None,
        }
    }
}

/// Owner of the extras. Their memory comes from the block cache, since a join needs extras.
pub(super) struct ExtrasBox<M>(NonNull<Extras<M>>);

impl<M> ExtrasBox<M> {
    pub(super) fn new(options: MailboxOptions<M>) -> Self {
        let MailboxOptions {
            capacity,
            name,
            hooks,
        } = options;
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
            hooks,
        };
        let actor = ActorExtras {
            name: name.map(Arc::new),
            ended: Waiters::new(),
        };
        // SAFETY: the block has room for the extras.
        unsafe { extras.write(Extras { mailbox, actor }) };
        ExtrasBox(extras)
    }
}

impl<M> ExtrasBox<M> {
    /// Returns the mailbox's part.
    pub(super) fn mailbox(&mut self) -> &mut MailboxExtras<M> {
        // SAFETY: (EXTRAS-1) a caller with exclusive access to the box holds the lock.
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
    /// The mailbox that owns the extras outlives `'a`.
    pub(super) unsafe fn actor<'a>(extras: NonNull<Self>) -> &'a ActorExtras {
        // SAFETY: by the caller's promise they are not freed; (EXTRAS-1) this part is never
        // borrowed mutably.
        unsafe { &(*extras.as_ptr()).actor }
    }
}

impl<M> Drop for ExtrasBox<M> {
    fn drop(&mut self) {
        // SAFETY: allocated by `new`; the box was never part of a mailbox, or its mailbox is being
        // dropped.
        unsafe { blocks::discard(self.0) };
    }
}

impl<M> Bound<M> {
    /// Returns whether there is room and no sender waits in the line.
    pub(super) fn has_room(&self) -> bool {
        self.len < self.capacity && self.line.is_empty()
    }
}

//! What most mailboxes never have, and most actors beside it: made when it is first needed.
//!
//! It is behind one pointer, and once made stays until the mailbox is gone.
//!
//! # Invariants
//! - N1: `rare` is touched only under the lock of the mailbox, `beside` is only ever shared.
#![expect(unsafe_code, reason = "two halves with different rights; see N1")]

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;

use super::line::Line;
use super::{Flags, Mailbox, Queue, Shared};
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
    show: Option<fn(&M) -> String>,
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
    name: Option<Arc<Box<str>>>,
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
    fn into_options(self) -> (Option<usize>, Option<Box<str>>) {
        // SAFETY: made by `new`, and not dropped after this.
        let Annex { rare, beside } = unsafe { blocks::take_out(ManuallyDrop::new(self).0) };
        let capacity = rare.bound.map(|bound| bound.capacity);
        (capacity, beside.name.and_then(Arc::into_inner))
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

impl<M> Shared<M> {
    /// What it was made with; nobody has seen it.
    pub(super) fn into_options(self) -> (Option<usize>, Option<Box<str>>) {
        self.annex.map_or((None, None), Own::into_options)
    }

    /// The queue, and the rare part if there is one.
    pub(super) fn parts(&mut self) -> (&mut Queue<M>, Option<&mut Rare<M>>) {
        let rare = self.annex.as_ref().map(|annex| {
            // SAFETY: (N1) whoever has this has the lock.
            unsafe { &mut (*annex.0.as_ptr()).rare }
        });
        (&mut self.queue, rare)
    }

    pub(super) fn annex(&self) -> Option<NonNull<Annex<M>>> {
        self.annex.as_ref().map(|annex| annex.0)
    }

    pub(super) fn rare(&mut self) -> Option<&mut Rare<M>> {
        self.parts().1
    }

    pub(super) fn bound(&mut self) -> Option<&mut Bound<M>> {
        self.rare()?.bound.as_mut()
    }
}

impl<M> Mailbox<M> {
    /// A critical section with the rare part, which is made outside the lock.
    pub(super) fn lock_rare<R>(
        &self,
        mut section: impl FnMut(&mut Flags, &mut Queue<M>, &mut Rare<M>) -> R,
    ) -> R {
        let mut made = None;
        loop {
            let result = self.lock(|flags, shared| {
                if shared.annex.is_none() {
                    shared.annex = made.take();
                }
                let (queue, rare) = shared.parts();
                Some(section(flags, queue, rare?))
            });
            match result {
                Some(result) => return result,
                None => made = Some(Own::new(None, None)),
            }
        }
    }

    /// Has messages shown like this in traces.
    #[cold]
    pub(crate) fn show_with(&self, show: fn(&M) -> String) {
        self.lock_rare(|_, _, rare| rare.show = Some(show));
    }

    /// How a message is shown in a trace, if that is wanted.
    pub(crate) fn show(&self) -> Option<fn(&M) -> String> {
        self.lock(|_, shared| shared.rare()?.show)
    }

    /// The name of the actor.
    pub(crate) fn name(&self) -> Option<&Arc<Box<str>>> {
        if !self.peek().has(Flags::NAMED) {
            return None;
        }
        self.beside()?.name.as_ref()
    }

    /// Who waits for the end of the actor, if somebody has.
    pub(crate) fn ended(&self) -> Option<&Waiters> {
        self.beside().map(|beside| &beside.ended)
    }

    /// The same, for those who are to wait.
    pub(crate) fn ended_made(&self) -> &Waiters {
        self.ended().unwrap_or_else(|| {
            self.lock_rare(|_, _, _| ());
            self.ended().expect("it was made just now")
        })
    }

    fn beside(&self) -> Option<&Beside> {
        let annex = self.lock(|_, shared| shared.annex());
        // SAFETY: it is this mailbox's.
        unsafe { self.beside_of(annex) }
    }

    /// # Safety
    /// It is the annex of this mailbox.
    pub(super) unsafe fn beside_of(&self, annex: Option<NonNull<Annex<M>>>) -> Option<&Beside> {
        // SAFETY: it stays as long as the mailbox; (N1).
        annex.map(|annex| unsafe { &(*annex.as_ptr()).beside })
    }
}

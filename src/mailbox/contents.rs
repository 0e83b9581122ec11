//! A mailbox's shared part, and the lock in front of it.
//!
//! Everything shared is behind one word whose lowest bit is a lock (see [`state`](super::state)). A critical
//! section is a few instructions long, does not panic and calls no user code.
//!
//! # Invariants
//! - MAILBOX-1: `shared` is touched only between `Word::lock` and `Word::unlock`.
//! - MAILBOX-2: `FILLED` says that the queue is not empty, `WAITED_FOR` that the line is not, `FOREIGN`
//!   that a receiver's waker is stored, `RESERVED` that places are reserved, `BOUNDED` and
//!   `NAMED` that there is a bound and a name.
//! - MAILBOX-3: a bounded queue holds at most `capacity` messages and reserved places; the line is empty
//!   unless it is full.
#![expect(
    unsafe_code,
    reason = "state behind a lock bit of our own; see MAILBOX-1"
)]

use std::sync::Arc;

use super::annex::{Annex, Beside, Bound, Own, Rare};
use super::queue::{Batch, Queue};
use super::state::{Doom, Flags, Wake, Word};
use crate::sync::UnsafeCell;
use crate::sync::atomic::AtomicU32;
use crate::waiters::Waiters;

/// The reading and the writing end share one of these. What all senders write comes first.
#[repr(C)]
pub(crate) struct Mailbox<M> {
    pub(super) word: Word,
    /// How many can send; as busy as the word.
    pub(super) senders: AtomicU32,
    shared: UnsafeCell<Shared<M>>,
}

pub(super) struct Shared<M> {
    pub(super) queue: Queue<M>,
    /// What most mailboxes never have.
    annex: Option<Own<M>>,
}

// SAFETY: (MAILBOX-1) the lock bit hands `shared` from thread to thread; messages and wakers are `Send`.
unsafe impl<M: Send> Send for Mailbox<M> {}
// SAFETY: (MAILBOX-1) as above.
unsafe impl<M: Send> Sync for Mailbox<M> {}

impl<M> Mailbox<M> {
    /// An open mailbox of an actor that is scheduled for its first run and can be joined; with the name of
    /// the actor, to be kept.
    pub(crate) fn new(capacity: Option<usize>, name: Option<Box<str>>) -> Self {
        let has_annex = capacity.is_some() || name.is_some();
        let mut flags = Flags::ACTIVE.or(Flags::JOINABLE);
        if capacity.is_some() {
            flags.set(Flags::BOUNDED);
        }
        if name.is_some() {
            flags.set(Flags::NAMED);
        }
        Mailbox {
            word: Word::new(flags),
            senders: AtomicU32::new(1),
            shared: UnsafeCell::new(Shared {
                queue: Queue::EMPTY,
                annex: has_annex.then(|| Own::new(capacity, name)),
            }),
        }
    }

    /// What it was made with; nobody has seen it.
    pub(crate) fn into_options(self) -> (Option<usize>, Option<Box<str>>) {
        self.shared.into_inner().into_options()
    }

    /// How many messages were accepted and are still in the queue. What the reader has taken as a
    /// [`Batch`] is not counted, nor are places whose messages are still to be made.
    ///
    /// The blocks are counted under the lock, so this is for those who ask now and then.
    pub(crate) fn len(&self) -> usize {
        if !self.peek().has(Flags::FILLED) {
            return 0;
        }
        self.lock(|_, shared| shared.queue.len())
    }

    /// How many messages and reserved places it has room for; `None` if it is unbounded.
    pub(crate) fn capacity(&self) -> Option<usize> {
        if !self.peek().has(Flags::BOUNDED) {
            return None;
        }
        self.lock(|_, shared| shared.bound().map(|bound| bound.capacity))
    }

    /// The flags as they were a moment ago.
    pub(crate) fn peek(&self) -> Flags {
        self.word.peek()
    }

    /// Runs a critical section; it must not panic and must not call user code.
    #[inline]
    pub(super) fn lock<R>(&self, section: impl FnOnce(&mut Flags, &mut Shared<M>) -> R) -> R {
        let mut flags = self.word.lock();
        // SAFETY: (MAILBOX-1) between lock and unlock.
        let result = self
            .shared
            .with_mut(|shared| section(&mut flags, unsafe { &mut *shared }));
        self.word.unlock(flags);
        result
    }

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
        self.lock_beside(|_| ()).1
    }

    /// Runs a critical section; gives the actor's part of the annex as well, if there is one by then.
    pub(super) fn lock_beside<R>(
        &self,
        section: impl FnOnce(&mut Flags) -> R,
    ) -> (R, Option<&Beside>) {
        let (result, annex) =
            self.lock(|flags, shared| (section(flags), shared.annex.as_ref().map(Own::pointer)));
        // SAFETY: it is the annex of this mailbox, which keeps it.
        (result, annex.map(|annex| unsafe { Annex::beside(annex) }))
    }

    /// Why it is to be dropped, if it is.
    pub(crate) fn doom_of(&self) -> Option<Doom> {
        self.peek().doom()
    }
}

impl<M> Shared<M> {
    /// What it was made with; nobody has seen it.
    pub(super) fn into_options(self) -> (Option<usize>, Option<Box<str>>) {
        self.annex.map_or((None, None), Own::into_options)
    }

    /// The queue, and the rare part if there is one.
    pub(super) fn parts(&mut self) -> (&mut Queue<M>, Option<&mut Rare<M>>) {
        let rare = self.annex.as_mut().map(Own::rare);
        (&mut self.queue, rare)
    }

    pub(super) fn rare(&mut self) -> Option<&mut Rare<M>> {
        self.parts().1
    }

    pub(super) fn bound(&mut self) -> Option<&mut Bound<M>> {
        self.rare()?.bound.as_mut()
    }

    /// Takes all messages; what is put in reserved places from now on is given back.
    pub(super) fn drain(&mut self, flags: &mut Flags) -> Batch<M> {
        flags.clear(Flags::FILLED);
        flags.set(Flags::DEAF);
        if let Some(Rare {
            bound: Some(bound),
            reserved,
            ..
        }) = self.rare()
        {
            bound.len = *reserved;
        }
        self.queue.take()
    }

    /// There is something for the reader: whom that wakes.
    pub(super) fn arrived(&mut self, flags: &mut Flags) -> Wake {
        if !flags.has(Flags::RECEIVING.or(Flags::FOREIGN)) {
            return Wake::Nobody;
        }
        let mut wake = Wake::Nobody;
        if flags.has(Flags::RECEIVING) {
            flags.clear(Flags::RECEIVING);
            wake = flags.wake();
        }
        // One `recv` may have been polled in both tasks, and only the later one polls it again.
        self.and_receiver(flags, wake)
    }

    /// Whoever waits in another task is woken as well.
    pub(super) fn and_receiver(&mut self, flags: &mut Flags, wake: Wake) -> Wake {
        if !flags.has(Flags::FOREIGN) {
            return wake;
        }
        flags.clear(Flags::FOREIGN);
        match (wake, self.rare().and_then(|rare| rare.receiver.take())) {
            (wake, None) => wake,
            (Wake::Actor, Some(receiver)) => Wake::Both(receiver),
            (_, Some(receiver)) => Wake::Foreign(receiver),
        }
    }
}

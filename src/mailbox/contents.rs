//! A mailbox: its word, and behind the lock in that word its contents.
//!
//! The lowest bit of the word is the lock (see [`state`](super::state)). A critical section is a few
//! instructions long, does not panic and calls no user code.
//!
//! # Invariants
//! - MAILBOX-1: `contents` is touched only between `MailboxState::lock` and `MailboxState::unlock`.
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

use super::extras::{ActorExtras, Bound, Extras, ExtrasBox, MailboxExtras};
use super::queue::{Batch, MessageQueue};
use super::state::{Flags, MailboxState, Wake};
use crate::sync::UnsafeCell;
use crate::sync::atomic::AtomicU32;
use crate::waiters::Waiters;

/// The reading and the writing end share one of these. What all senders write comes first.
#[repr(C)]
pub(crate) struct Mailbox<M> {
    pub(crate) state: MailboxState,
    /// How many can send; as busy as the word.
    pub(super) senders: AtomicU32,
    contents: UnsafeCell<Contents<M>>,
}

pub(super) struct Contents<M> {
    pub(super) queue: MessageQueue<M>,
    /// What most mailboxes never have.
    extras: Option<ExtrasBox<M>>,
}

// SAFETY: (MAILBOX-1) the lock bit hands the contents from thread to thread; messages and wakers are `Send`.
unsafe impl<M: Send> Send for Mailbox<M> {}
// SAFETY: (MAILBOX-1) the lock bit hands the contents from thread to thread; messages and wakers are `Send`.
unsafe impl<M: Send> Sync for Mailbox<M> {}

impl<M> Mailbox<M> {
    /// An open mailbox of an actor that is scheduled for its first run and can be joined; with the name of
    /// the actor, to be kept.
    pub(crate) fn new(capacity: Option<usize>, name: Option<Box<str>>) -> Self {
        let has_extras = capacity.is_some() || name.is_some();
        let mut flags = Flags::ACTIVE.or(Flags::JOINABLE);
        if capacity.is_some() {
            flags.set(Flags::BOUNDED);
        }
        if name.is_some() {
            flags.set(Flags::NAMED);
        }
        Mailbox {
            state: MailboxState::new(flags),
            senders: AtomicU32::new(1),
            contents: UnsafeCell::new(Contents {
                queue: MessageQueue::EMPTY,
                extras: has_extras.then(|| ExtrasBox::new(capacity, name)),
            }),
        }
    }

    /// What it was made with; nobody has seen it.
    pub(crate) fn into_options(self) -> (Option<usize>, Option<Box<str>>) {
        self.contents.into_inner().into_options()
    }

    /// How many messages were accepted and are still in the queue. What the reader has taken as a
    /// [`Batch`] is not counted, nor are places whose messages are still to be made.
    ///
    /// The blocks are counted under the lock, so this is for those who ask now and then.
    pub(crate) fn len(&self) -> usize {
        if !self.state.peek().has(Flags::FILLED) {
            return 0;
        }
        self.lock(|_, contents| contents.queue.len())
    }

    /// How many messages and reserved places it has room for; `None` if it is unbounded.
    pub(crate) fn capacity(&self) -> Option<usize> {
        if !self.state.peek().has(Flags::BOUNDED) {
            return None;
        }
        self.lock(|_, contents| contents.bound().map(|bound| bound.capacity))
    }

    /// Runs a critical section; it must not panic and must not call user code.
    #[inline]
    pub(super) fn lock<R>(&self, section: impl FnOnce(&mut Flags, &mut Contents<M>) -> R) -> R {
        let mut flags = self.state.lock();
        // SAFETY: (MAILBOX-1) between lock and unlock.
        let result = self
            .contents
            .with_mut(|contents| section(&mut flags, unsafe { &mut *contents }));
        self.state.unlock(flags);
        result
    }

    /// Runs a critical section with the mailbox's extras, which are made outside the lock.
    pub(super) fn lock_extras<R>(
        &self,
        mut section: impl FnMut(&mut Flags, &mut MessageQueue<M>, &mut MailboxExtras<M>) -> R,
    ) -> R {
        let mut made = None;
        loop {
            let result = self.lock(|flags, contents| {
                if contents.extras.is_none() {
                    contents.extras = made.take();
                }
                let (queue, extras) = contents.parts();
                Some(section(flags, queue, extras?))
            });
            match result {
                Some(result) => return result,
                None => made = Some(ExtrasBox::new(None, None)),
            }
        }
    }

    /// Has messages shown like this in traces.
    #[cold]
    pub(crate) fn show_with(&self, show: fn(&M) -> String) {
        self.lock_extras(|_, _, extras| extras.show = Some(show));
    }

    /// How a message is shown in a trace, if that is wanted.
    pub(crate) fn show(&self) -> Option<fn(&M) -> String> {
        self.lock(|_, contents| contents.extras()?.show)
    }

    /// The name of the actor.
    pub(crate) fn name(&self) -> Option<&Arc<Box<str>>> {
        if !self.state.peek().has(Flags::NAMED) {
            return None;
        }
        self.actor_extras()?.name.as_ref()
    }

    /// Who waits for the end of the actor, if somebody has.
    pub(crate) fn ended(&self) -> Option<&Waiters> {
        self.actor_extras().map(|extras| &extras.ended)
    }

    /// The same, for those who are to wait.
    pub(crate) fn ended_made(&self) -> &Waiters {
        self.ended().unwrap_or_else(|| {
            self.lock_extras(|_, _, _| ());
            self.ended().expect("it was made just now")
        })
    }

    fn actor_extras(&self) -> Option<&ActorExtras> {
        self.lock_actor_extras(|_| ()).1
    }

    /// Runs a critical section; gives the actor's extras as well, if there are any by then.
    pub(super) fn lock_actor_extras<R>(
        &self,
        section: impl FnOnce(&mut Flags) -> R,
    ) -> (R, Option<&ActorExtras>) {
        let (result, extras) = self.lock(|flags, contents| {
            (
                section(flags),
                contents.extras.as_ref().map(ExtrasBox::pointer),
            )
        });
        // SAFETY: (EXTRAS-1) they are the extras of this mailbox, which keeps them.
        (
            result,
            extras.map(|extras| unsafe { Extras::actor(extras) }),
        )
    }
}

impl<M> Contents<M> {
    /// What it was made with; nobody has seen it.
    pub(super) fn into_options(self) -> (Option<usize>, Option<Box<str>>) {
        self.extras.map_or((None, None), ExtrasBox::into_options)
    }

    /// Returns the queue, and the mailbox's extras if there are any.
    pub(super) fn parts(&mut self) -> (&mut MessageQueue<M>, Option<&mut MailboxExtras<M>>) {
        let extras = self.extras.as_mut().map(ExtrasBox::mailbox);
        (&mut self.queue, extras)
    }

    pub(super) fn extras(&mut self) -> Option<&mut MailboxExtras<M>> {
        self.parts().1
    }

    pub(super) fn bound(&mut self) -> Option<&mut Bound<M>> {
        self.extras()?.bound.as_mut()
    }

    /// Takes all messages; what is put in reserved places from now on is given back.
    pub(super) fn drain(&mut self, flags: &mut Flags) -> Batch<M> {
        flags.clear(Flags::FILLED);
        flags.set(Flags::DEAF);
        if let Some(MailboxExtras {
            bound: Some(bound),
            reserved,
            ..
        }) = self.extras()
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

    /// Wakes the task in which `recv` waits as well, if it is another one.
    pub(super) fn and_receiver(&mut self, flags: &mut Flags, wake: Wake) -> Wake {
        if !flags.has(Flags::FOREIGN) {
            return wake;
        }
        flags.clear(Flags::FOREIGN);
        match (
            wake,
            self.extras().and_then(|extras| extras.receiver.take()),
        ) {
            (wake, None) => wake,
            (Wake::Actor, Some(receiver)) => Wake::Both(receiver),
            (_, Some(receiver)) => Wake::Foreign(receiver),
        }
    }
}

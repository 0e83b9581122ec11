//! The mailbox itself: its state word, and its contents behind the lock in that word.
//!
//! The lowest bit of the word is the lock (see [`state`](super::state)). A critical section takes a
//! few instructions, does not panic and calls no user code.
//!
//! A message is copied from the sender's memory into the queue, under the lock. A copy before the lock
//! would read what was written just now, often in parts, and wait for these writes. A message that is
//! refused stays where it was.
//!
//! # Invariants
//! - MAILBOX-1: `contents` is accessed only between `MailboxState::lock` and
//!   `MailboxState::unlock`.
//! - MAILBOX-2: `FILLED` is set exactly if the queue is not empty, `FOREIGN` if a receiver's waker
//!   is stored, `RESERVED` if permits are given, `BOUNDED` if there is a bound or a second queue, and
//!   `NAMED` if there is a name. `WAITED_FOR` is set if the line is not empty, until `refuse_line`
//!   begins.
//! - MAILBOX-3: a bounded queue holds at most `capacity` messages and permits. The line is
//!   empty unless the queue is full. After an operation that frees room, `promote` restores this;
//!   after a close, `refuse_line` does.
#![expect(
    unsafe_code,
    reason = "state behind a lock bit in the state word, see MAILBOX-1; and a message that is moved \
              by its address, see `accept`"
)]

use std::sync::Arc;

use super::bound::Bound;
use super::extras::{ActorExtras, Extras, ExtrasBox, Hooks, MailboxExtras, MailboxOptions};
use super::overflow::{Displacing, Overflow};
use super::queue::{Batch, MessageQueue, Spare};
use super::state::{Flags, MailboxState, Wake};
use crate::sync::atomic::AtomicU32;
use crate::sync::global;
use crate::sync::{UnsafeCell, mutant};
use crate::waiters::Waiters;

/// What the count of turns begins with, so that neither the first turn nor the second one is rare. In a
/// unit test the count soon begins anew.
const TURNS_FROM: u32 = if cfg!(test) {
    2_u32.wrapping_sub(64)
} else {
    2
};

/// The state that the reader and the senders share. The fields that every sender writes come first.
#[repr(C)]
pub(crate) struct Mailbox<M> {
    pub(crate) state: MailboxState,
    /// The number of senders; as contended as the state word.
    pub(super) senders: AtomicU32,
    /// The largest number of messages that the reader has found in the queue. It begins with 1, as if it
    /// had found one, since it soon will.
    pub(super) highest: global::AtomicU32,
    /// The number of turns of the actor and [`TURNS_FROM`], modulo 2³². It is here since there is room.
    pub(crate) turns: global::AtomicU32,
    contents: UnsafeCell<Contents<M>>,
}

pub(super) struct Contents<M> {
    pub(super) queue: MessageQueue<M>,
    /// State that most mailboxes never need.
    extras: Option<ExtrasBox<M>>,
}

/// The reason why a message or a permit was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    Full,
    Closed,
}

// SAFETY: (MAILBOX-1) the lock bit passes the contents between threads; messages and wakers are
// `Send`.
unsafe impl<M: Send> Send for Mailbox<M> {}
// SAFETY: (MAILBOX-1) the lock bit passes the contents between threads; messages and wakers are
// `Send`.
unsafe impl<M: Send> Sync for Mailbox<M> {}

impl<M> Mailbox<M> {
    /// Creates an open mailbox with one sender. Its actor is scheduled for its first turn and has a
    /// handle.
    #[inline(always)]
    pub(crate) fn new(options: MailboxOptions<M>) -> Self {
        let MailboxOptions {
            capacity,
            name,
            hooks,
        } = &options;
        // The flags repeat what the extras have, so that the usual path reads the word alone.
        let has_extras = capacity.is_some() || name.is_some() || hooks.is_some();
        let mut flags = Flags::ACTIVE.or(Flags::JOINABLE);
        if capacity.is_some() {
            flags.set(Flags::BOUNDED);
        }
        if name.is_some() {
            flags.set(Flags::NAMED);
        }
        if hooks
            .as_ref()
            .is_some_and(|hooks| hooks.undelivered.is_some())
        {
            flags.set(Flags::KEEPS);
        }
        let displacing = hooks.as_ref().and_then(|hooks| hooks.displacing.as_ref());
        if displacing.is_some_and(|displacing| displacing.overflow != Overflow::Wait) {
            flags.set(Flags::OVERFLOWS);
        }
        if hooks.as_ref().is_some_and(|hooks| hooks.urgent.is_some()) {
            flags.set(Flags::HAS_URGENT.or(Flags::BOUNDED));
        }
        Mailbox {
            state: MailboxState::new(flags),
            senders: AtomicU32::new(1),
            highest: global::AtomicU32::new(1),
            turns: global::AtomicU32::new(TURNS_FROM),
            contents: UnsafeCell::new(Contents {
                queue: MessageQueue::EMPTY,
                extras: has_extras.then(|| ExtrasBox::new(options)),
            }),
        }
    }

    /// Creates a mailbox as `new` does, with a bound.
    #[cfg(test)]
    pub(super) fn with_capacity(capacity: Option<usize>) -> Self {
        Mailbox::new(MailboxOptions::of(capacity))
    }

    /// Appends the message if there is room now.
    ///
    /// # Safety
    /// After a success the message is the mailbox's, and the caller must forget it.
    #[inline(always)]
    pub(crate) unsafe fn tell_from(&self, message: &M) -> Result<Wake, Refused> {
        // SAFETY: by the caller's promise.
        unsafe { self.accept(message, |_, _| ()) }
    }

    /// Appends the message if there is room now, and calls `accepted` then.
    ///
    /// A block is allocated outside the lock, so the critical section may be run twice.
    ///
    /// # Safety
    /// After a success the message is the mailbox's, and the caller must forget it.
    #[inline(always)]
    pub(super) unsafe fn accept(
        &self,
        message: &M,
        accepted: impl Fn(Flags, &mut Contents<M>),
    ) -> Result<Wake, Refused> {
        let mut spare = Spare::NONE;
        if !self.state.peek().has(Flags::FILLED) {
            spare.provide(false);
        }
        loop {
            let result = self.lock(|flags, contents| {
                if flags.has(Flags::CLOSED) && !mutant("closed_still_accepts") {
                    return Err(Refused::Closed);
                }
                let (queue, extras) = contents.parts();
                let extras = extras.filter(|_| flags.has(Flags::BOUNDED));
                let bound = extras.and_then(|extras| extras.bound.as_mut());
                if bound.as_ref().is_some_and(|bound| !bound.has_room()) {
                    return Err(Refused::Full);
                }
                // SAFETY: by the caller's promise.
                if !unsafe { queue.push_from(message, &mut spare) } {
                    return Ok(None);
                }
                if let Some(bound) = bound {
                    bound.len += 1;
                }
                accepted(*flags, contents);
                flags.set(Flags::FILLED);
                Ok(Some(flags.arrived()))
            });
            match result {
                Ok(Some(wake)) => return Ok(wake),
                Ok(None) => spare.provide(true),
                Err(why) => return Err(why),
            }
        }
    }

    /// Returns the number of accepted messages in the queue. Messages that the reader has taken as
    /// a [`Batch`] are not counted, nor are permits that are not used yet.
    ///
    /// This counts block by block under the lock, so it is not meant for frequent calls.
    pub(crate) fn len(&self) -> usize {
        if !self.state.peek().has(Flags::FILLED) {
            return 0;
        }
        self.lock(|_, contents| contents.len())
    }

    /// Returns the largest number of messages that were in the queue, of an actor that has received
    /// some. So many are in it now.
    pub(crate) fn highest(&self, len: usize) -> usize {
        // Relaxed: a number, which publishes nothing.
        (self.highest.load(global::Ordering::Relaxed) as usize).max(len)
    }

    /// Returns the number of turns that the actor has had, without 2³² for each time that the count has
    /// begun anew.
    pub(crate) fn turns(&self) -> u64 {
        // Relaxed: a number, which publishes nothing.
        let turns = self.turns.load(global::Ordering::Relaxed);
        u64::from(turns).wrapping_sub(TURNS_FROM.into())
    }

    /// Returns how many of these messages are not urgent.
    pub(crate) fn plain_len(&self) -> usize {
        match self.has_urgent() {
            true => self.lock(|_, contents| contents.queue.len()),
            false => self.len(),
        }
    }

    /// Returns how many messages and permits fit at most, or `None` if the mailbox is
    /// unbounded.
    pub(crate) fn capacity(&self) -> Option<usize> {
        let flags = self.state.peek();
        if !flags.has(Flags::BOUNDED) {
            return None;
        }
        let capacity = self.lock(|_, contents| contents.bound().map(|bound| bound.capacity));
        capacity.filter(|capacity| *capacity != usize::MAX || !flags.has(Flags::HAS_URGENT))
    }

    /// Runs a critical section, which must not panic and must not call user code.
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

    /// Runs a critical section with the mailbox's extras, which are allocated outside the lock if
    /// they are missing.
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
                None => made = Some(ExtrasBox::new(MailboxOptions::of(None))),
            }
        }
    }

    /// Returns the name of the actor, if it has one.
    pub(crate) fn name(&self) -> Option<&Arc<Box<str>>> {
        if !self.state.peek().has(Flags::NAMED) {
            return None;
        }
        self.actor_extras()?.name.as_ref()
    }

    /// Returns the waiters for the end of the actor, if the extras exist.
    pub(crate) fn ended(&self) -> Option<&Waiters> {
        self.actor_extras().map(|extras| &extras.ended)
    }

    /// Returns the waiters for the end of the actor, and creates them if necessary.
    pub(crate) fn ended_made(&self) -> &Waiters {
        self.ended().unwrap_or_else(|| {
            self.lock_extras(|_, _, _| ());
            self.ended().expect("it was made just now")
        })
    }

    /// Returns what the mailbox does with displaced messages, if it may displace any.
    pub(crate) fn displacing(&self) -> Option<&Displacing<M>> {
        let pointer = self.lock(|_, contents| {
            let displacing = contents.hooks()?.displacing.as_ref();
            displacing.map(Arc::as_ptr)
        })?;
        // SAFETY: (EXTRAS-1) the hooks of this mailbox keep it, and lend it as shared only.
        Some(unsafe { &*pointer })
    }

    fn actor_extras(&self) -> Option<&ActorExtras> {
        self.lock_actor_extras(|_| ()).1
    }

    /// Runs a critical section on the flags. Also returns the actor's extras if they exist by then.
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
        // SAFETY: (EXTRAS-1) these extras belong to this mailbox, which keeps them as long as it
        // lives.
        (
            result,
            extras.map(|extras| unsafe { Extras::actor(extras) }),
        )
    }
}

impl<M> Contents<M> {
    /// Returns the number of messages, which it counts block by block.
    pub(super) fn len(&mut self) -> usize {
        self.queue.len() + self.urgent().map_or(0, |urgent| urgent.len())
    }

    pub(super) fn hooks(&mut self) -> Option<&mut Hooks<M>> {
        self.extras()?.hooks.as_deref_mut()
    }

    /// Returns the queue, and the mailbox's extras if they exist.
    pub(super) fn parts(&mut self) -> (&mut MessageQueue<M>, Option<&mut MailboxExtras<M>>) {
        let extras = self.extras.as_mut().map(ExtrasBox::mailbox);
        (&mut self.queue, extras)
    }

    pub(super) fn extras(&mut self) -> Option<&mut MailboxExtras<M>> {
        self.parts().1
    }

    pub(super) fn bound(&mut self) -> Option<&mut Bound<M>> {
        self.bound_of::<false>()
    }

    /// Returns the bound of one of the queues, if it has one.
    pub(super) fn bound_of<const URGENT: bool>(&mut self) -> Option<&mut Bound<M>> {
        self.extras()?.bound_of::<URGENT>()
    }

    /// Takes all messages. From now on, a message for a permit is returned to its sender.
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
        match flags.has(Flags::HAS_URGENT) {
            true => self.take_both(flags),
            false => self.queue.take(),
        }
    }
}

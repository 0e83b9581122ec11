//! The sending half of an actor's mailbox.
//!
//! An address usually points to the actor's core. An address that `map` has made points to a
//! function in front of the core.
//!
//! # Invariants
//! - ADDRESS-1: if bit 0 of the pointer is clear, it points to a core, and the address counts as
//!   one of the core's senders. If bit 0 is set, it points to a box with the map. The address owns
//!   that box, and counts as a sender of the actor behind the map. If bit 1 is set, it points to a
//!   core, whose context has made the address, and the executor counts it as such.

#![expect(
    unsafe_code,
    reason = "counted pointers to the actor's core; see ADDRESS-1, and CELL-2 in cell.rs"
)]

use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroUsize;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
use std::sync::Arc;

use super::ask::Ask;
use super::core::{Core, CoreRef};
use super::recipient::{AnyMap, RecipientRef};
use super::reply::Reply;
use super::sending::SendFuture;
#[cfg(doc)]
use crate::error::AskError;
use crate::error::{End, SendError, TellError};
use crate::task::TaskInfo;

/// The sending half of an actor's mailbox.
///
/// An address is cheap to clone and works from any thread. Messages of one sender to one actor
/// arrive in the order in which they were sent. Two addresses are equal if they refer to the same
/// actor.
///
/// An actor closes, as by [`stop`](Address::stop), when it receives and finds no message while no
/// address and no [source](crate::Context::attach) of it is left. An actor that keeps its own
/// address therefore never closes this way. A [`WeakAddress`](crate::WeakAddress) does not keep an
/// actor open.
pub struct Address<M> {
    pointer: NonNull<Core<M>>,
}

const MAPPED: usize = 1;
const OWN: usize = 2;

impl<M> RecipientRef<'_, M> {
    /// Does what [`Address::tell`] does, also for a weak address and for an ask.
    #[inline]
    pub(super) fn tell(self, message: M) -> Result<(), TellError<M>> {
        match self {
            RecipientRef::Actor(core) => core.tell(message),
            RecipientRef::Map(map) => map.tell(message),
        }
    }
}

// SAFETY: (CELL-2) the core is reference-counted and thread-safe; so is a map.
unsafe impl<M: Send> Send for Address<M> {}
// SAFETY: (CELL-2) the core is reference-counted and thread-safe; so is a map.
unsafe impl<M: Send> Sync for Address<M> {}

// As for `CoreArc`. If the function of a `map` panics, its permit is given up.
impl<M> UnwindSafe for Address<M> {}
impl<M> RefUnwindSafe for Address<M> {}

impl<M> Address<M> {
    /// Creates an address from a pointer to a core.
    ///
    /// # Safety
    /// (CELL-1) The pointer is valid for the whole cell. The caller transfers one counted sender of
    /// the mailbox.
    pub(super) unsafe fn from_core(core: NonNull<Core<M>>) -> Self {
        Address { pointer: core }
    }

    /// Creates an address that leads where `recipient` does.
    ///
    /// # Safety
    /// As in `from_core`: the caller transfers one counted sender of the actor behind the recipient.
    pub(super) unsafe fn from_recipient(recipient: RecipientRef<'_, M>) -> Self {
        match recipient {
            RecipientRef::Actor(core) => Address {
                pointer: core.pointer(),
            },
            RecipientRef::Map(map) => {
                let map = NonNull::from(Box::leak(Box::new(map.clone())));
                Address {
                    pointer: map.cast().map_addr(|addr| addr | MAPPED),
                }
            }
        }
    }

    /// Creates an address that leads where `recipient` does, unless the mailbox is closed.
    pub(super) fn revived(recipient: RecipientRef<'_, M>) -> Option<Self> {
        // SAFETY: (ADDRESS-1) the sender was counted just now, at the actor behind the recipient.
        recipient
            .revive_sender()
            .then(|| unsafe { Address::from_recipient(recipient) })
    }

    /// Creates an address for the actor itself, whether its mailbox is open or closed. The caller
    /// is the actor.
    pub(super) fn own(core: CoreRef<'_, M>) -> Self {
        core.revive_sender(true);
        // SAFETY: (CELL-1) as of any `CoreRef`; the sender was counted just now.
        unsafe { Address::from_core(core.pointer()) }.counted()
    }

    /// Makes this address, which has no tag and leads to a core, one that its context has made, if
    /// the executor counts these.
    fn counted(mut self) -> Self {
        // SAFETY: (ADDRESS-1, CELL-2) the addresses hold one reference together.
        let core = unsafe { CoreRef::new(self.pointer) };
        if core.header.is_noted() {
            core.count_own_address(true);
            self.pointer = self.pointer.map_addr(|addr| addr | OWN);
        }
        self
    }

    fn tags(&self) -> usize {
        self.pointer.addr().get() & (MAPPED | OWN)
    }

    /// Returns the pointer without its tags, to a core or a box.
    fn untagged(&self) -> NonNull<Core<M>> {
        // SAFETY: (ADDRESS-1) a core and a box are aligned, so they are not at an address below 4.
        self.pointer
            .map_addr(|addr| unsafe { NonZeroUsize::new_unchecked(addr.get() & !(MAPPED | OWN)) })
    }

    #[inline]
    pub(super) fn recipient(&self) -> RecipientRef<'_, M> {
        match self.tags() {
            // SAFETY: (ADDRESS-1, CELL-2) the addresses hold one reference together.
            0 => RecipientRef::Actor(unsafe { CoreRef::new(self.pointer) }),
            _ => self.tagged_recipient(),
        }
    }

    #[cold]
    #[inline(never)]
    fn tagged_recipient(&self) -> RecipientRef<'_, M> {
        match self.tags() & MAPPED {
            // SAFETY: (ADDRESS-1, CELL-2) as above.
            0 => RecipientRef::Actor(unsafe { CoreRef::new(self.untagged()) }),
            // SAFETY: (ADDRESS-1) this address owns the box.
            _ => RecipientRef::Map(unsafe { self.untagged().cast::<Arc<AnyMap<M>>>().as_ref() }),
        }
    }

    /// Gives up what a mapped address, or one that a context has made, counts.
    #[cold]
    #[inline(never)]
    fn drop_tagged(&self) {
        if self.tags() & MAPPED == 0 {
            // SAFETY: (ADDRESS-1, CELL-2) gives up this address's count, and its share of the
            // common reference.
            return unsafe {
                let core = CoreRef::new(self.untagged());
                core.count_own_address(false);
                core.remove_sender();
            };
        }
        // SAFETY: (ADDRESS-1) this address owns the box, made in `from_recipient`; the box keeps
        // the actor.
        let map = unsafe { Box::from_raw(self.untagged().cast::<Arc<AnyMap<M>>>().as_ptr()) };
        // SAFETY: (ADDRESS-1) gives up this address's count.
        unsafe { map.actor().remove_sender() };
    }

    /// Puts the message in the mailbox without waiting.
    ///
    /// Any thread may call this, inside or outside async code. An accepted message is handled
    /// before every message that is sent to the actor later.
    ///
    /// # Errors
    /// [`TellError`] with the message and the identity of the actor:
    ///
    /// - [full](TellError::is_full) if the mailbox is bounded and has no room, or if other senders
    ///   wait for room;
    /// - [closed](TellError::is_closed) if the actor was stopped or killed, or has ended.
    ///
    /// ```
    /// # use greenroom::{spawn, Context};
    /// # greenroom::run(async {
    /// let one = spawn!(|mut cx: Context<u32>| async move { cx.recv().await }, capacity = 1);
    /// one.tell(1).unwrap();
    /// one.stop();
    /// let refused = one.tell(2).unwrap_err();
    /// assert!(refused.is_closed());
    /// assert_eq!(refused.into_inner(), 2);
    /// assert_eq!(one.join().await.unwrap(), Some(1));
    /// # });
    /// ```
    #[inline]
    pub fn tell(&self, message: M) -> Result<(), TellError<M>> {
        self.recipient().tell(message)
    }

    /// Puts the message in the mailbox, and waits for room if the mailbox is bounded.
    ///
    /// Senders that wait are served in order of arrival.
    ///
    /// # Errors
    /// [`SendError`] with the message if the mailbox is closed, or closes while
    /// this waits. With an [`overflow`](crate::ActorBuilder::overflow) other than `Wait` it does not
    /// wait, and may be refused as [full](SendError::is_full).
    ///
    /// # Panics
    /// The future panics if it is polled again after completion.
    ///
    /// # Cancel safety
    /// Dropping the future while it waits leaves the line and drops the message. Once
    /// the mailbox has taken the message, it is delivered, even if the future is dropped before it
    /// completes.
    ///
    /// A future that is neither polled nor dropped does not hold up other senders, unless the
    /// address was made by [`map`](Address::map).
    pub fn send(&self, message: M) -> impl Future<Output = Result<(), SendError<M>>> + use<'_, M> {
        SendFuture::new(self.recipient(), message)
    }

    /// Sends the message that `question` builds from a [`Reply`], and waits for the answer.
    ///
    /// The message is sent on the first poll, and waits for room as [`send`](Address::send) does.
    /// [`Ask::timeout`] limits the whole wait.
    ///
    /// # Errors
    /// - [`AskError::Closed`] if the message was not delivered, since the
    ///   mailbox is closed.
    /// - [`AskError::NoReply`] if the reply was dropped, for instance
    ///   because the actor panicked, was killed or ended first.
    /// - [`AskError::Refused`] if the request was
    ///   [refused](Reply::refuse), or had no room because of an
    ///   [`overflow`](crate::ActorBuilder::overflow).
    /// - [`AskError::TimedOut`] if a [`timeout`](Ask::timeout) was set
    ///   and has elapsed.
    /// - [`AskError::Deadlock`] if no answer can come any more. For most asks only a runtime that
    ///   [detects deadlocks](crate::Builder::detect_deadlocks) returns it, if they are first polled
    ///   there. Every runtime returns it at once if an actor asks itself in a handler
    ///   [without a context](crate::handlers!#asks-to-the-actor-itself).
    ///
    /// # Panics
    /// The future panics if it is polled again after completion, and if `question` panics.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request. A message that waits for room is dropped. A message
    /// that was delivered is still handled, and its [`Reply::is_wanted`] returns false. The same
    /// holds when the ask ends by its timeout or as a deadlock.
    ///
    /// ```
    /// use greenroom::{Context, Reply, spawn};
    ///
    /// async fn doubler(mut cx: Context<(u32, Reply<u32>)>) {
    ///     while let Some((number, reply)) = cx.recv().await {
    ///         reply.send(number * 2);
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let doubler = spawn!(doubler(_));
    ///     assert_eq!(doubler.ask(|reply| (21, reply)).await, Ok(42));
    /// });
    /// ```
    pub fn ask<T, F>(&self, question: F) -> Ask<'_, M, T, F>
    where
        F: FnOnce(Reply<T>) -> M,
    {
        Ask::new(self.recipient(), question)
    }

    /// Waits until the actor has ended.
    ///
    /// By then the actor's state has been dropped, except the result that its
    /// [`Handle`](crate::Handle) receives.
    ///
    /// This address keeps the actor open meanwhile. If it is the last one, the wait lasts until the
    /// actor ends by itself. [`WeakAddress::closed`](crate::WeakAddress::closed) does not keep the
    /// actor open.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future loses nothing.
    pub async fn closed(&self) {
        self.recipient().closed().await;
    }

    /// Waits until the actor has ended, as [`closed`](Address::closed) does, and returns how.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future loses nothing.
    ///
    /// ```
    /// use greenroom::{Context, End, spawn};
    ///
    /// greenroom::run(async {
    ///     let actor = spawn!(|mut cx: Context<()>| async move { cx.recv().await });
    ///     actor.stop();
    ///     assert_eq!(actor.ended().await, End::Returned);
    /// });
    /// ```
    pub async fn ended(&self) -> End {
        self.recipient().ended().await
    }

    /// Returns whether the mailbox is closed, so that `tell` and `send` refuse messages.
    pub fn is_closed(&self) -> bool {
        self.recipient().view().is_closed()
    }

    /// Returns whether the mailbox is closed, in a simulation without pending effects.
    #[inline]
    pub(crate) fn is_closed_now(&self) -> bool {
        self.recipient().view().is_closed_now()
    }

    /// Returns how many addresses the actor has at this moment, this one included.
    pub(crate) fn addresses(&self) -> usize {
        self.recipient().view().addresses()
    }

    /// Returns whether the threads of the actor's executor are in this process.
    pub(crate) fn is_here(&self) -> bool {
        self.recipient().is_here()
    }

    /// Returns the actor's identity, as errors and traces have it.
    pub(crate) fn info(&self) -> TaskInfo {
        self.recipient().view().info()
    }

    /// Gives messages that the actor does not handle to `function`, if it has no function for them.
    /// Does nothing for a mapped address.
    pub(crate) fn keep_undelivered(&self, function: impl FnMut(M) + Send + 'static) {
        if let RecipientRef::Actor(core) = self.recipient() {
            core.mailbox.keep_undelivered(Box::new(function));
        }
    }

    /// Returns the actor's id, which is unique within this process.
    pub fn id(&self) -> u64 {
        self.recipient().view().id()
    }

    /// Returns the actor's [name](crate::ActorBuilder::name), if it has one.
    pub fn name(&self) -> Option<&str> {
        self.recipient().view().name()
    }

    /// Returns the number of messages in the mailbox.
    ///
    /// Of a mailbox with two queues it is that of the queue to which this address leads, see
    /// [`urgent`](Address::urgent). An actor takes the messages of an unbounded mailbox in batches;
    /// messages that it has taken are not counted. The number may be out of date when it is returned.
    ///
    /// ```
    /// use greenroom::{Context, actor};
    ///
    /// let (address, actor) = actor(async |mut cx: Context<u32>| cx.recv().await)
    ///     .capacity(10)
    ///     .split();
    /// address.tell(1).unwrap();
    /// address.tell(2).unwrap();
    /// assert_eq!((address.len(), address.capacity()), (2, Some(10)));
    /// assert_eq!(futures::executor::block_on(actor).unwrap(), Some(1));
    /// assert!(address.is_empty()); // the second message was dropped with the actor
    /// ```
    pub fn len(&self) -> usize {
        self.recipient().view().len()
    }

    /// Returns whether the mailbox has no messages, as counted by [`len`](Address::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the capacity of the mailbox in messages, or `None` if it is unbounded.
    pub fn capacity(&self) -> Option<usize> {
        self.recipient().view().capacity()
    }

    /// Returns an address of the same actor whose messages go through `map`.
    pub(super) fn mapped_by<N>(&self, map: &Arc<AnyMap<N>>) -> Address<N> {
        self.recipient().view().add_sender();
        // SAFETY: (ADDRESS-1) the sender was counted just now, at the actor behind the map.
        unsafe { Address::from_recipient(RecipientRef::Map(map)) }
    }
}

impl<M> Clone for Address<M> {
    fn clone(&self) -> Self {
        let recipient = self.recipient();
        recipient.view().add_sender();
        // SAFETY: (ADDRESS-1) the sender was counted just now, at the same actor.
        let address = unsafe { Address::from_recipient(recipient) };
        match self.tags() {
            OWN => address.counted(),
            _ => address,
        }
    }
}

impl<M> Drop for Address<M> {
    #[inline]
    fn drop(&mut self) {
        match self.tags() {
            // SAFETY: (ADDRESS-1, CELL-2) gives up this address's count, and its share of the
            // common reference.
            0 => unsafe { CoreRef::new(self.pointer).remove_sender() },
            _ => self.drop_tagged(),
        }
    }
}

/// Implements equality, `Hash` and `Debug` by the actor's id, without bounds on the message type.
macro_rules! identified {
    ($name:ident) => {
        impl<M> PartialEq for $name<M> {
            fn eq(&self, other: &Self) -> bool {
                self.id() == other.id()
            }
        }

        impl<M> Eq for $name<M> {}

        impl<M> Hash for $name<M> {
            fn hash<S: Hasher>(&self, state: &mut S) {
                self.id().hash(state);
            }
        }

        impl<M> fmt::Debug for $name<M> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut text = f.debug_struct(stringify!($name));
                text.field("id", &self.id());
                if let Some(name) = self.name() {
                    text.field("name", &name);
                }
                text.finish()
            }
        }
    };
}

pub(super) use identified;

identified!(Address);

//! An actor's writing end.
//!
//! Nearly always an address leads straight to the actor's core; one that was made by `map` leads to
//! a function before it.
//!
//! # Invariants
//! - ADDRESS-1: bit 0 of the pointer is clear for a core, of which the address is one of the senders, and
//!   set for a box with the way to one, which the address owns and is a sender of as well.

#![expect(
    unsafe_code,
    reason = "counted pointers to the actor's core; see ADDRESS-1 and CELL-2 in cell.rs"
)]

use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
use std::sync::Arc;

use super::core::{At, Core};
use super::lead::{Lead, MessageMap};
use super::map::mapped;
use super::reply::{Ask, Reply};
use super::sending::SendFuture;
use crate::error::TellError;

/// Where to send messages to an actor; a clone is cheap.
///
/// Messages of one sender arrive in the order in which they were sent. Two addresses are equal if they
/// are of the same actor.
///
/// An actor that receives and finds no message, and to which no address and no
/// [source](crate::Context::attach) is left, is closed as by [`stop`](Address::stop). So an actor that keeps its
/// own address does not end for want of senders; a [`WeakAddress`](crate::WeakAddress) keeps nothing open.
pub struct Address<M> {
    lead: NonNull<Core<M>>,
}

const MAPPED: usize = 1;

// SAFETY: (CELL-2) the core is shared by counting, and made for use from any thread; so is a map.
unsafe impl<M: Send> Send for Address<M> {}
// SAFETY: (CELL-2) the core is shared by counting, and made for use from any thread; so is a map.
unsafe impl<M: Send> Sync for Address<M> {}

// As for `Held`; the place is given up for which a function of `map` panics.
impl<M> UnwindSafe for Address<M> {}
impl<M> RefUnwindSafe for Address<M> {}

impl<M> Address<M> {
    /// # Safety
    /// (CELL-1) The pointer is good for the whole cell; the caller gives an address of its own (one of the senders
    /// that the mailbox counts) away.
    pub(super) unsafe fn from_core(core: NonNull<Core<M>>) -> Self {
        Address { lead: core }
    }

    /// # Safety
    /// As in `from_core`; the address is one of the actor behind the lead.
    pub(super) unsafe fn from_lead(lead: Lead<'_, M>) -> Self {
        match lead {
            Lead::Actor(core) => Address {
                lead: core.pointer(),
            },
            Lead::Map(map) => {
                let lead = NonNull::from(Box::leak(Box::new(map.clone())));
                Address {
                    lead: lead.cast().map_addr(|addr| addr | MAPPED),
                }
            }
        }
    }

    /// The actor's own, whether its mailbox is open or closed; called by the actor.
    pub(super) fn own(core: At<'_, M>) -> Self {
        core.revive_sender(true);
        // SAFETY: (CELL-1) as of any `At`; the address that was counted just now.
        unsafe { Address::from_core(core.pointer()) }
    }

    /// The box that a mapped address owns.
    fn map_box(&self) -> Option<NonNull<Arc<dyn MessageMap<M>>>> {
        let addr = self.lead.addr().get();
        let untagged = std::num::NonZeroUsize::new(addr & !MAPPED)?;
        (addr & MAPPED != 0).then(|| self.lead.map_addr(|_| untagged).cast())
    }

    pub(super) fn lead(&self) -> Lead<'_, M> {
        match self.map_box() {
            // SAFETY: (ADDRESS-1, CELL-2) all addresses hold a reference together.
            None => Lead::Actor(unsafe { At::new(self.lead) }),
            // SAFETY: (ADDRESS-1) the box is ours.
            Some(map) => Lead::Map(unsafe { map.as_ref() }),
        }
    }

    /// Puts the message in the mailbox at once; any thread may call this, async or not.
    ///
    /// It waits for nothing. The message of an accepted `tell` is handled before all that is sent
    /// later.
    ///
    /// # Errors
    /// [`TellError::Full`] if the mailbox is bounded and has no room, or if others wait for room;
    /// [`TellError::Closed`] if the actor was stopped or has ended. Both hold the message.
    ///
    /// # Panics
    /// In a child of `fork`, if it wakes an actor whose [runtime](crate::Runtime) is the parent's.
    ///
    /// ```
    /// # use greenroom::{spawn, Context, TellError};
    /// # greenroom::run(async {
    /// let one = spawn!(|mut cx: Context<u32>| async move { cx.recv().await }, capacity = 1);
    /// one.tell(1).unwrap();
    /// one.stop();
    /// assert!(matches!(one.tell(2), Err(TellError::Closed(2))));
    /// assert_eq!(one.join().await.unwrap(), Some(1));
    /// # });
    /// ```
    pub fn tell(&self, message: M) -> Result<(), TellError<M>> {
        self.lead().tell(message)
    }

    /// Puts the message in the mailbox, waiting for room if it is bounded, in order of arrival.
    ///
    /// # Errors
    /// [`SendError`](crate::SendError) with the message if the mailbox is closed, also while this waits.
    ///
    /// # Cancel safety
    /// Dropped while it waits, it gives up its place and drops the message. Once the mailbox has
    /// taken the message it will be delivered, even if the future is dropped before it says so. A
    /// future that is neither polled nor dropped holds up nobody, unless the address was made by
    /// [`map`](Address::map).
    pub fn send(&self, message: M) -> SendFuture<'_, M> {
        SendFuture::new(self.lead(), message)
    }

    /// Sends the message that `question` makes of a [`Reply`], and waits for the answer.
    ///
    /// It is sent when first polled, and waits for room as [`send`](Address::send) does. Bound it
    /// with [`Ask::timeout`].
    ///
    /// # Errors
    /// [`AskError::Closed`](crate::AskError::Closed) if it was not delivered;
    /// [`AskError::NoReply`](crate::AskError::NoReply) if the reply was dropped, for instance
    /// because the actor panicked, was killed or ended first;
    /// [`AskError::Deadlock`](crate::AskError::Deadlock) if nobody is left to answer, where the
    /// runtime on which this is first polled
    /// [detects deadlocks](crate::Builder::detect_deadlocks).
    ///
    /// # Cancel safety
    /// Dropping it cancels the request: a question that waits for room is dropped. One that was
    /// delivered is still handled, and its [`Reply::is_wanted`] is false. The same holds when this ends by
    /// its time-out or as a deadlock.
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
        Ask::new(self.lead(), question)
    }

    /// Closes the mailbox: what was accepted is still delivered, then `recv` gives `None`.
    ///
    /// Closing is final, and closing again does nothing.
    ///
    /// # Panics
    /// In a child of `fork`, if it wakes an actor whose [runtime](crate::Runtime) is the parent's.
    pub fn stop(&self) {
        self.lead().close();
    }

    /// Drops the actor at its next suspension, without handling another message.
    ///
    /// The messages that the actor has not taken are dropped by this call, after the actor was told of its end.
    /// Those that it has taken are dropped with the actor. Every `ask` among them gets
    /// [`NoReply`](crate::AskError::NoReply).
    ///
    /// # Panics
    /// As [`stop`](Address::stop).
    pub fn kill(&self) {
        self.lead().kill();
    }

    /// Waits until the actor has ended: its state is dropped, all but the result.
    ///
    /// The address keeps the actor open meanwhile. So if it is the last one, this waits until the actor ends by
    /// itself; [`WeakAddress::closed`](crate::WeakAddress::closed) keeps nothing open.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn closed(&self) {
        self.lead().closed().await;
    }

    /// Returns whether the mailbox is closed, so that `tell` and `send` refuse.
    pub fn is_closed(&self) -> bool {
        self.lead().view().is_closed()
    }

    /// Returns a number that no other actor of this process has.
    pub fn id(&self) -> u64 {
        self.lead().view().id()
    }

    /// Returns the name that the actor was given.
    pub fn name(&self) -> Option<&str> {
        self.lead().view().name()
    }

    /// Returns how many messages wait in the mailbox.
    ///
    /// The actor takes the messages of an unbounded mailbox several at once; those that it has taken are
    /// not counted. The number may be out of date when it is returned.
    ///
    /// ```
    /// use greenroom::{Context, actor};
    ///
    /// let (address, actor) = actor(async |mut cx: Context<u32>| cx.recv().await).capacity(10).split();
    /// address.tell(1).unwrap();
    /// address.tell(2).unwrap();
    /// assert_eq!((address.len(), address.capacity()), (2, Some(10)));
    /// assert_eq!(futures::executor::block_on(actor).unwrap(), Some(1));
    /// assert!(address.is_empty()); // what an actor did not receive is dropped when it ends
    /// ```
    pub fn len(&self) -> usize {
        self.lead().view().len()
    }

    /// Returns whether no message waits in the mailbox, as [`len`](Address::len) counts them.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many messages the mailbox has room for; `None` if it is unbounded.
    pub fn capacity(&self) -> Option<usize> {
        self.lead().view().capacity()
    }

    /// Returns an address of the same actor for messages of another type, which `map` makes into its own.
    ///
    /// It serves senders that should know one kind of message out of several. A place in the
    /// mailbox is reserved first, so a message that is refused is given back as it was; the place is filled
    /// when `map` returns, on the sender's thread. If `map` panics, so does the `tell` or `send`,
    /// and the place is given up.
    ///
    /// An address may be mapped again, up to 1000 times: each map takes some of the sender's stack.
    ///
    /// # Panics
    /// If the address was mapped 1000 times already.
    ///
    /// # Cancel safety
    /// A `send` through it that came to its place, but is neither polled nor dropped, keeps the
    /// place, and a closed actor waits for it.
    ///
    /// ```
    /// use greenroom::{Address, Context, spawn};
    ///
    /// enum Input {
    ///     Key(char),
    ///     Tick,
    /// }
    ///
    /// async fn typed(mut cx: Context<Input>) -> String {
    ///     let mut text = String::new();
    ///     while let Some(event) = cx.recv().await {
    ///         match event {
    ///             Input::Key(key) => text.push(key),
    ///             Input::Tick => text.push('.'),
    ///         }
    ///     }
    ///     text
    /// }
    ///
    /// greenroom::run(async {
    ///     let typed = spawn!(typed(_));
    ///     let keys: Address<char> = typed.map(Input::Key);
    ///     keys.tell('a').unwrap();
    ///     typed.tell(Input::Tick).unwrap();
    ///     keys.tell('b').unwrap();
    ///     drop(keys);
    ///     assert_eq!(typed.join().await.unwrap(), "a.b");
    /// });
    /// ```
    #[track_caller]
    pub fn map<N, F>(&self, map: F) -> Address<N>
    where
        M: Send + 'static,
        N: Send + 'static,
        F: Fn(N) -> M + Send + Sync + 'static,
    {
        let map = mapped(self.lead(), map);
        self.lead().view().add_sender();
        // SAFETY: (ADDRESS-1) the address that was counted just now, of the actor behind.
        unsafe { Address::from_lead(Lead::Map(&map)) }
    }
}

impl<M> Clone for Address<M> {
    fn clone(&self) -> Self {
        let lead = self.lead();
        lead.view().add_sender();
        // SAFETY: (ADDRESS-1) the address that was counted just now, of the same actor.
        unsafe { Address::from_lead(lead) }
    }
}

impl<M> Drop for Address<M> {
    fn drop(&mut self) {
        match self.map_box() {
            // SAFETY: (ADDRESS-1, CELL-2) this address's count, and its part of the common reference, are given up.
            None => unsafe { At::new(self.lead).remove_sender() },
            Some(map) => {
                // SAFETY: (ADDRESS-1) the box is ours, made in `from_lead`; it holds the actor.
                let map = unsafe { Box::from_raw(map.as_ptr()) };
                // SAFETY: (ADDRESS-1) this address's count is given up.
                unsafe { map.actor().remove_sender() };
            }
        }
    }
}

/// Equality, hash and debug text go by the actor's id, whatever the message type.
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

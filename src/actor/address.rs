//! The sending half of an actor's mailbox.
//!
//! An address usually points to the actor's core. An address that `map` has made points to a
//! function in front of the core.
//!
//! # Invariants
//! - ADDRESS-1: if bit 0 of the pointer is clear, it points to a core, and the address counts as
//!   one of the core's senders. If bit 0 is set, it points to a box with the map. The address owns
//!   that box, and counts as a sender of the actor behind the map.

#![expect(
    unsafe_code,
    reason = "counted pointers to the actor's core; see ADDRESS-1, and CELL-2 in cell.rs"
)]

use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
use std::sync::Arc;

use super::ask::Ask;
use super::core::{Core, CoreRef};
use super::recipient::{AnyMap, RecipientRef};
use super::reply::Reply;
use super::sending::SendFuture;
use crate::error::{AskError, End, SendError, TellError};
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
        unsafe { Address::from_core(core.pointer()) }
    }

    /// Returns the box that a mapped address owns.
    fn map_box(&self) -> Option<NonNull<Arc<AnyMap<M>>>> {
        let addr = self.pointer.addr().get();
        let untagged = std::num::NonZeroUsize::new(addr & !MAPPED)?;
        (addr & MAPPED != 0).then(|| self.pointer.map_addr(|_| untagged).cast())
    }

    pub(super) fn recipient(&self) -> RecipientRef<'_, M> {
        match self.map_box() {
            // SAFETY: (ADDRESS-1, CELL-2) the addresses hold one reference together.
            None => RecipientRef::Actor(unsafe { CoreRef::new(self.pointer) }),
            // SAFETY: (ADDRESS-1) this address owns the box.
            Some(map) => RecipientRef::Map(unsafe { map.as_ref() }),
        }
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
    /// this waits.
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
    ///   [refused](Reply::refuse).
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
    /// An actor takes the messages of an unbounded mailbox in batches; messages that it has taken
    /// are not counted. The number may be out of date when it is returned.
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

    /// Returns an address of the same actor for another message type, which `map` converts.
    ///
    /// It is meant for senders that should know only one kind of the actor's messages, as a
    /// `Recipient` of other crates is. A field `log: Address<Line>` takes any actor that has a message
    /// for a line, and needs no type parameter.
    ///
    /// `tell` and `send` take a permit first, so a refused message is returned as it was. The
    /// permit is used when `map` returns, on the sender's thread. If `map` panics, the `tell` or
    /// `send` panics too, and the permit is given up.
    ///
    /// A mapped address may be mapped again, up to 1000 times. Each map uses some of the sender's
    /// stack.
    ///
    /// # Panics
    /// If the address was mapped 1000 times already.
    ///
    /// # Cancel safety
    /// A `send` through a mapped address may get its permit while it waits. If it is then neither
    /// polled nor dropped, it keeps the permit. A closed actor receives `None` only after that permit
    /// was filled or given up.
    ///
    /// ```
    /// use greenroom::{Address, Context, spawn};
    ///
    /// enum Input {
    ///     Key(char),
    ///     Tick,
    /// }
    ///
    /// struct Keyboard {
    ///     keys: Address<char>,
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
    ///     let keyboard = Keyboard { keys: typed.map(Input::Key) };
    ///     keyboard.keys.tell('a').unwrap();
    ///     typed.tell(Input::Tick).unwrap();
    ///     keyboard.keys.tell('b').unwrap();
    ///     drop(keyboard);
    ///     assert_eq!(typed.join().await.unwrap(), "a.b");
    /// });
    /// ```
    #[doc(alias = "Recipient")]
    #[track_caller]
    pub fn map<N, F>(&self, map: F) -> Address<N>
    where
        M: Send + 'static,
        N: Send + 'static,
        F: Fn(N) -> M + Send + Sync + 'static,
    {
        self.mapped_by(&AnyMap::new(self.recipient(), map))
    }

    /// Returns a proxy: an address of the same actor whose messages go to `take`, on the sender's
    /// thread.
    ///
    /// An ask that finds the actor closed ends with `closed`. A trace shows the messages as those of
    /// the type `traced_as`; without it, it does not show them.
    pub(crate) fn proxy<N: 'static>(
        &self,
        traced_as: Option<&'static str>,
        take: impl Fn(N) + Send + Sync + 'static,
        closed: impl Fn() -> AskError + Send + Sync + 'static,
    ) -> Address<N>
    where
        M: Send + 'static,
    {
        let actor = self.recipient().actor();
        self.mapped_by(&AnyMap::proxy(actor, traced_as, take, closed))
    }

    /// Returns an address of the same actor whose messages go through `map`.
    fn mapped_by<N>(&self, map: &Arc<AnyMap<N>>) -> Address<N> {
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
        unsafe { Address::from_recipient(recipient) }
    }
}

impl<M> Drop for Address<M> {
    fn drop(&mut self) {
        match self.map_box() {
            // SAFETY: (ADDRESS-1, CELL-2) gives up this address's count, and its share of the
            // common reference.
            None => unsafe { CoreRef::new(self.pointer).remove_sender() },
            Some(map) => {
                // SAFETY: (ADDRESS-1) this address owns the box, made in `from_recipient`; the box keeps
                // the actor.
                let map = unsafe { Box::from_raw(map.as_ptr()) };
                // SAFETY: (ADDRESS-1) gives up this address's count.
                unsafe { map.actor().remove_sender() };
            }
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

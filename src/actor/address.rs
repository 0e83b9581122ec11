//! An actor's writing end, and the same that does not keep it open.

#![expect(
    unsafe_code,
    reason = "counted pointers to the actor's core; see A2 in cell.rs"
)]

use std::fmt;
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use super::cell::Core;
use super::reply::{Ask, Reply};
use crate::error::{SendError, TellError};
use crate::mailbox::{Doom, Flags, Ticket};

/// Where to send messages to an actor: cheap to clone, to be given to anybody.
///
/// Messages of one sender arrive in the order in which they were sent. An actor whose last address
/// is dropped is closed, as by [`stop`](Address::stop).
///
/// Two addresses are equal if they are of the same actor.
pub struct Address<M> {
    core: NonNull<Core<M>>,
}

// SAFETY: (A2) the core is shared by counting, and made for use from any thread.
unsafe impl<M: Send> Send for Address<M> {}
// SAFETY: as above.
unsafe impl<M: Send> Sync for Address<M> {}

impl<M> Address<M> {
    /// # Safety
    /// The caller gives an address of its own (one count of `senders`) away.
    pub(super) unsafe fn from_core(core: NonNull<Core<M>>) -> Self {
        Address { core }
    }

    pub(super) fn core(&self) -> &Core<M> {
        // SAFETY: (A2) all addresses hold a reference together.
        unsafe { self.core.as_ref() }
    }

    /// Puts the message in the mailbox at once; any thread may call this, async or not.
    ///
    /// It waits for nothing. The message of an accepted `tell` is handled before all that is
    /// accepted later.
    ///
    /// # Errors
    /// [`TellError::Full`] if the mailbox is bounded and has no room, or if others wait for room;
    /// [`TellError::Closed`] if the actor was stopped or has ended. Both hold the message.
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
        let core = self.core();
        core.mailbox.tell(message).map(|wake| core.pass_on(wake))
    }

    /// Puts the message in the mailbox, waiting for room if it is bounded, in order of arrival.
    ///
    /// # Errors
    /// [`SendError`] with the message if the mailbox is closed, also while this waits.
    ///
    /// # Cancel safety
    /// Dropped while it waits, it gives up its place and drops the message. Once the mailbox has
    /// taken the message it will be delivered, even if the future is dropped before it says so. A
    /// future that is neither polled nor dropped holds up nobody.
    pub fn send(&self, message: M) -> Sending<'_, M> {
        Sending {
            address: self,
            message: Some(message),
            ticket: None,
        }
    }

    /// Sends the message that `question` makes of a [`Reply`], and waits for the answer.
    ///
    /// It is sent when first polled, and waits for room as [`send`](Address::send) does. Bound it
    /// with [`Ask::timeout`].
    ///
    /// # Errors
    /// [`AskError::Closed`](crate::AskError::Closed) if it was not delivered;
    /// [`AskError::NoReply`](crate::AskError::NoReply) if the reply was dropped, for instance
    /// because the actor panicked, was killed or ended first.
    ///
    /// # Cancel safety
    /// Dropped, it asks no longer: a question that is waiting for room is dropped, one that was
    /// delivered is still handled, and its [`Reply::is_wanted`] is false.
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
        Ask::new(self, question)
    }

    /// Closes the mailbox: what was accepted is still delivered, then `recv` gives `None`.
    ///
    /// Closing is final, and closing again does nothing.
    pub fn stop(&self) {
        self.core().close();
    }

    /// Has the actor dropped at its next suspension, without handling another message.
    ///
    /// The messages that it has not taken are dropped at once, those that it has when it is
    /// dropped; every `ask` among them gets [`NoReply`](crate::AskError::NoReply).
    pub fn kill(&self) {
        self.core().doom(Doom::Killed);
    }

    /// Waits until the actor has ended: its state is dropped, all but the result.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn closed(&self) {
        self.core().ended.until(|| self.has_ended()).await;
    }

    fn has_ended(&self) -> bool {
        self.core().mailbox.peek().has(Flags::ENDED)
    }

    /// Whether the mailbox is closed, so that `tell` and `send` refuse.
    pub fn is_closed(&self) -> bool {
        self.core().mailbox.peek().has(Flags::CLOSED)
    }

    /// A number that no other actor of this process has.
    pub fn id(&self) -> u64 {
        self.core().id
    }

    /// The name that the actor was given.
    pub fn name(&self) -> Option<&str> {
        self.core().name()
    }

    /// An address that does not keep the actor open.
    pub fn downgrade(&self) -> WeakAddress<M> {
        WeakAddress::new(self.core())
    }
}

impl<M> Clone for Address<M> {
    fn clone(&self) -> Self {
        self.core().add_sender();
        Address { core: self.core }
    }
}

impl<M> Drop for Address<M> {
    fn drop(&mut self) {
        // SAFETY: this address's count is given up.
        unsafe { Core::drop_sender(self.core) };
    }
}

/// The future of [`Address::send`].
#[must_use = "futures do nothing unless polled"]
pub struct Sending<'a, M> {
    address: &'a Address<M>,
    message: Option<M>,
    ticket: Option<Ticket<M>>,
}

// The message is never pinned: it is moved into the mailbox.
impl<M> Unpin for Sending<'_, M> {}

impl<M> Future for Sending<'_, M> {
    type Output = Result<(), SendError<M>>;

    /// # Panics
    /// If it is polled again after it was ready.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        assert!(
            this.message.is_some() || this.ticket.is_some(),
            "`send` polled after it was ready"
        );
        let core = this.address.core();
        let sent = core
            .mailbox
            .poll_send(&mut this.message, &mut this.ticket, cx);
        sent.map_ok(|wake| core.pass_on(wake))
    }
}

impl<M> Drop for Sending<'_, M> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            drop(self.address.core().mailbox.give_up(ticket));
        }
    }
}

impl<M> fmt::Debug for Sending<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Send")
            .field("to", self.address)
            .finish_non_exhaustive()
    }
}

/// An [`Address`] that does not keep its actor open.
///
/// It may be kept by the actor itself, or by those who only want to tell it something while others
/// still care for it.
pub struct WeakAddress<M> {
    core: NonNull<Core<M>>,
}

// SAFETY: (A2) as for `Address`.
unsafe impl<M: Send> Send for WeakAddress<M> {}
// SAFETY: (A2) as for `Address`.
unsafe impl<M: Send> Sync for WeakAddress<M> {}

impl<M> WeakAddress<M> {
    pub(super) fn new(core: &Core<M>) -> Self {
        core.retain();
        WeakAddress {
            core: NonNull::from(core),
        }
    }

    fn core(&self) -> &Core<M> {
        // SAFETY: (A2) this holds a reference of its own.
        unsafe { self.core.as_ref() }
    }

    /// Puts the message in the mailbox at once, as [`Address::tell`] does.
    ///
    /// # Errors
    /// As [`Address::tell`].
    pub fn tell(&self, message: M) -> Result<(), TellError<M>> {
        let core = self.core();
        core.mailbox.tell(message).map(|wake| core.pass_on(wake))
    }

    /// A full address, unless the mailbox is closed.
    pub fn upgrade(&self) -> Option<Address<M>> {
        self.core()
            .revive_sender()
            // Not `then_some`: an address that is made and dropped would give up a count.
            .then(|| Address { core: self.core })
    }

    /// As [`Address::id`].
    pub fn id(&self) -> u64 {
        self.core().id
    }

    /// As [`Address::name`].
    pub fn name(&self) -> Option<&str> {
        self.core().name()
    }

    /// As [`Address::is_closed`].
    pub fn is_closed(&self) -> bool {
        self.core().mailbox.peek().has(Flags::CLOSED)
    }
}

impl<M> Clone for WeakAddress<M> {
    fn clone(&self) -> Self {
        WeakAddress::new(self.core())
    }
}

impl<M> Drop for WeakAddress<M> {
    fn drop(&mut self) {
        // SAFETY: (A2) its reference is given up.
        unsafe { Core::release(self.core) };
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

identified!(Address);
identified!(WeakAddress);

//! An actor's writing end, and the same that does not keep it open.
//!
//! Nearly always an address leads straight to the actor's core; one that was made by `map` leads to
//! a function before it.
//!
//! # Invariants
//! - D1: bit 0 of the pointer is clear for a core, of which the address is one of the senders, and
//!   set for a box with the way to one, which the address owns and is a sender of as well.

#![expect(
    unsafe_code,
    reason = "counted pointers to the actor's core; see D1 and A2 in cell.rs"
)]

use std::fmt;
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::core::Core;
use super::held::Held;
use super::map::{Live, Places, Wait, mapped};
use super::reply::{Ask, Reply};
use crate::error::{SendError, TellError};
use crate::mailbox::{Refused, Ticket};
use crate::task::Passage;

/// Where to send messages to an actor: cheap to clone, to be given to anybody.
///
/// Messages of one sender arrive in the order in which they were sent. An actor whose last address
/// is dropped, and which has no [source](crate::Context::attach) left, is closed as by
/// [`stop`](Address::stop).
///
/// Two addresses are equal if they are of the same actor.
pub struct Address<M> {
    lead: NonNull<Core<M>>,
}

const MAPPED: usize = 1;

/// Where an address leads.
enum Lead<'a, M> {
    Actor(&'a Core<M>),
    Map(&'a Arc<dyn Places<M>>),
}

// SAFETY: (A2) the core is shared by counting, and made for use from any thread; so is a map.
unsafe impl<M: Send> Send for Address<M> {}
// SAFETY: as above.
unsafe impl<M: Send> Sync for Address<M> {}

impl<M> Address<M> {
    /// # Safety
    /// The caller gives an address of its own (one count of `senders`) away.
    pub(super) unsafe fn from_core(core: NonNull<Core<M>>) -> Self {
        Address { lead: core }
    }

    /// The actor behind has been given a sender more, which is this.
    fn from_places(places: Arc<dyn Places<M>>) -> Self {
        let lead = NonNull::from(Box::leak(Box::new(places)));
        Address {
            lead: lead.cast().map_addr(|addr| addr | MAPPED),
        }
    }

    /// The actor's own, unless its mailbox is closed; called by the actor.
    pub(super) fn own(core: &Core<M>) -> Option<Self> {
        let added = core.add_own_sender();
        // SAFETY: the address that was added.
        added.then(|| unsafe { Address::from_core(NonNull::from(core)) })
    }

    /// The box that a mapped address owns.
    fn map_box(&self) -> Option<NonNull<Arc<dyn Places<M>>>> {
        let addr = self.lead.addr().get();
        let untagged = std::num::NonZeroUsize::new(addr & !MAPPED)?;
        (addr & MAPPED != 0).then(|| self.lead.map_addr(|_| untagged).cast())
    }

    fn lead(&self) -> Lead<'_, M> {
        match self.map_box() {
            // SAFETY: (D1, A2) all addresses hold a reference together.
            None => Lead::Actor(unsafe { self.lead.as_ref() }),
            // SAFETY: (D1) the box is ours.
            Some(map) => Lead::Map(unsafe { map.as_ref() }),
        }
    }

    pub(super) fn actor(&self) -> &dyn Live {
        match self.lead() {
            Lead::Actor(core) => core,
            Lead::Map(places) => places.actor(),
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
        match self.lead() {
            Lead::Actor(core) => core.tell(message),
            Lead::Map(places) => tell_through(&**places, message),
        }
    }

    /// Puts the message in the mailbox, waiting for room if it is bounded, in order of arrival.
    ///
    /// # Errors
    /// [`SendError`] with the message if the mailbox is closed, also while this waits.
    ///
    /// # Cancel safety
    /// Dropped while it waits, it gives up its place and drops the message. Once the mailbox has
    /// taken the message it will be delivered, even if the future is dropped before it says so. A
    /// future that is neither polled nor dropped holds up nobody, unless the address was made by
    /// [`map`](Address::map).
    pub fn send(&self, message: M) -> Sending<'_, M> {
        Sending {
            address: self,
            message: Some(message),
            ticket: None,
            wait: None,
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
    /// because the actor panicked, was killed or ended first;
    /// [`AskError::Deadlock`](crate::AskError::Deadlock) if nobody is left to answer, where the
    /// runtime on which this is first polled
    /// [detects deadlocks](crate::Builder::detect_deadlocks).
    ///
    /// # Cancel safety
    /// Dropped, it asks no longer: a question that is waiting for room is dropped, one that was
    /// delivered is still handled, and its [`Reply::is_wanted`] is false. So it is when this ends by
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
        Ask::new(self, question)
    }

    /// Closes the mailbox: what was accepted is still delivered, then `recv` gives `None`.
    ///
    /// Closing is final, and closing again does nothing.
    pub fn stop(&self) {
        self.actor().close();
    }

    /// Has the actor dropped at its next suspension, without handling another message.
    ///
    /// The messages that it has not taken are dropped at once, those that it has when it is
    /// dropped; every `ask` among them gets [`NoReply`](crate::AskError::NoReply).
    pub fn kill(&self) {
        self.actor().kill();
    }

    /// Waits until the actor has ended: its state is dropped, all but the result.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn closed(&self) {
        if self.actor().has_ended() {
            return;
        }
        let ended = self.actor().ended();
        ended.until(|| self.actor().has_ended()).await;
    }

    /// Whether the mailbox is closed, so that `tell` and `send` refuse.
    pub fn is_closed(&self) -> bool {
        self.actor().is_closed()
    }

    /// A number that no other actor of this process has.
    pub fn id(&self) -> u64 {
        self.actor().id()
    }

    /// The name that the actor was given.
    pub fn name(&self) -> Option<&str> {
        self.actor().name()
    }

    /// An address that does not keep the actor open.
    pub fn downgrade(&self) -> WeakAddress<M> {
        WeakAddress(match self.lead() {
            Lead::Actor(core) => Way::Actor(Held::from(core)),
            Lead::Map(places) => Way::Map(places.clone()),
        })
    }

    /// An address of the same actor for messages of another type, which `map` makes into its own.
    ///
    /// It can be given to those who should know one kind of message out of several. A place in the
    /// mailbox is reserved first, so what is refused is given back as it was; the place is filled
    /// when `map` returns, on the sender's thread. If `map` panics, so does the `tell` or `send`,
    /// and the place is given up.
    ///
    /// # Cancel safety
    /// A `send` through it that came to its place, but is neither polled nor dropped, keeps the
    /// place, and a closed actor waits for it.
    ///
    /// ```
    /// use greenroom::{Address, Context, spawn};
    ///
    /// enum Event {
    ///     Key(char),
    ///     Tick,
    /// }
    ///
    /// async fn typed(mut cx: Context<Event>) -> String {
    ///     let mut text = String::new();
    ///     while let Some(event) = cx.recv().await {
    ///         match event {
    ///             Event::Key(key) => text.push(key),
    ///             Event::Tick => text.push('.'),
    ///         }
    ///     }
    ///     text
    /// }
    ///
    /// greenroom::run(async {
    ///     let typed = spawn!(typed(_));
    ///     let keys: Address<char> = typed.map(Event::Key);
    ///     keys.tell('a').unwrap();
    ///     typed.tell(Event::Tick).unwrap();
    ///     keys.tell('b').unwrap();
    ///     drop(keys);
    ///     assert_eq!(typed.join().await.unwrap(), "a.b");
    /// });
    /// ```
    pub fn map<N, F>(&self, map: F) -> Address<N>
    where
        M: Send + 'static,
        N: Send + 'static,
        F: Fn(N) -> M + Send + Sync + 'static,
    {
        let behind: Arc<dyn Places<M>> = match self.lead() {
            Lead::Actor(core) => Arc::new(Held::from(core)),
            Lead::Map(places) => places.clone(),
        };
        self.actor().add_sender();
        Address::from_places(mapped(behind, map))
    }
}

/// Reserves a place, then makes the message of it.
fn tell_through<M>(places: &dyn Places<M>, message: M) -> Result<(), TellError<M>> {
    match places.reserve() {
        Ok(()) => places.fill(message),
        Err(Refused::Full) => return Err(TellError::Full(message)),
        Err(Refused::Closed) => return Err(TellError::Closed(message)),
    }
    Ok(())
}

impl<M> Clone for Address<M> {
    fn clone(&self) -> Self {
        match self.lead() {
            Lead::Actor(core) => {
                core.add_sender();
                Address { lead: self.lead }
            }
            Lead::Map(places) => {
                places.actor().add_sender();
                Address::from_places(places.clone())
            }
        }
    }
}

impl<M> Drop for Address<M> {
    fn drop(&mut self) {
        match self.map_box() {
            // SAFETY: (D1) this address's count is given up.
            None => unsafe { Core::drop_sender(self.lead) },
            Some(map) => {
                // SAFETY: (D1) the box is ours, made in `from_places`.
                let map = unsafe { Box::from_raw(map.as_ptr()) };
                map.actor().give_up_sender();
            }
        }
    }
}

/// The future of [`Address::send`].
#[must_use = "futures do nothing unless polled"]
pub struct Sending<'a, M> {
    address: &'a Address<M>,
    message: Option<M>,
    ticket: Option<Ticket<M>>,
    /// The same where the address is a mapped one.
    wait: Wait,
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
        match this.address.lead() {
            Lead::Actor(core) => {
                let before = this.ticket.as_ref().map(Ticket::key);
                let mailbox = &core.mailbox;
                let sent = mailbox.poll_send(&mut this.message, &mut this.ticket, cx);
                core.trace_send(before, this.ticket.as_ref().map(Ticket::key), &sent);
                sent.map_ok(|wake| core.pass_on(wake))
            }
            Lead::Map(places) => {
                let reserved = ready!(places.poll_reserve(&mut this.wait, cx));
                let message = this.message.take().expect("looked at just now");
                Poll::Ready(match reserved {
                    Ok(()) => {
                        places.fill(message);
                        Ok(())
                    }
                    Err(_closed) => Err(SendError(message)),
                })
            }
        }
    }
}

impl<M> Drop for Sending<'_, M> {
    fn drop(&mut self) {
        match self.address.lead() {
            Lead::Actor(core) => {
                if let Some(ticket) = self.ticket.take() {
                    let key = ticket.key();
                    let given_up = core.mailbox.give_up(ticket);
                    core.trace(|| match given_up {
                        Some(_) => Passage::GivenUp(key),
                        None => Passage::Accepted(key),
                    });
                    drop(given_up);
                }
            }
            Lead::Map(places) => places.leave_line(self.wait.take()),
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
pub struct WeakAddress<M>(Way<M>);

/// Where a weak address leads, with a reference and without a sender.
enum Way<M> {
    Actor(Held<M>),
    Map(Arc<dyn Places<M>>),
}

impl<M> WeakAddress<M> {
    pub(super) fn new(core: &Core<M>) -> Self {
        WeakAddress(Way::Actor(Held::from(core)))
    }

    fn actor(&self) -> &dyn Live {
        match &self.0 {
            Way::Actor(core) => &**core,
            Way::Map(places) => places.actor(),
        }
    }

    /// Puts the message in the mailbox at once, as [`Address::tell`] does.
    ///
    /// # Errors
    /// As [`Address::tell`].
    pub fn tell(&self, message: M) -> Result<(), TellError<M>> {
        match &self.0 {
            _ if self.is_closed() => Err(TellError::Closed(message)),
            Way::Actor(core) => core.tell(message),
            Way::Map(places) => tell_through(&**places, message),
        }
    }

    /// A full address, unless the mailbox is closed.
    pub fn upgrade(&self) -> Option<Address<M>> {
        if !self.actor().revive_sender() {
            return None;
        }
        Some(match &self.0 {
            // SAFETY: the address that was revived.
            Way::Actor(core) => unsafe { Address::from_core(NonNull::from(&**core)) },
            Way::Map(places) => Address::from_places(places.clone()),
        })
    }

    /// As [`Address::id`].
    pub fn id(&self) -> u64 {
        self.actor().id()
    }

    /// As [`Address::name`].
    pub fn name(&self) -> Option<&str> {
        self.actor().name()
    }

    /// As [`Address::is_closed`].
    ///
    /// An actor without an address is closed, but for one that has not received yet: that can still
    /// open itself by a source, such as [`send_after`](crate::Context::send_after).
    pub fn is_closed(&self) -> bool {
        self.actor().is_closed()
    }
}

impl<M> Clone for WeakAddress<M> {
    fn clone(&self) -> Self {
        WeakAddress(match &self.0 {
            Way::Actor(core) => Way::Actor(Held::from(&**core)),
            Way::Map(places) => Way::Map(places.clone()),
        })
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

//! An address that does not keep its actor open.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::task::{Context, Waker};

use super::address::{Address, identified};
use super::ask::Ask;
use super::recipient::{Recipient, RecipientRef};
use super::reply::Reply;
use super::sending::SendFuture;
use crate::error::{SendError, TellError};
use crate::task::TaskInfo;
use crate::waiters::Ticket;

/// An [`Address`] that does not keep its actor open.
///
/// It sends and asks as an address does. An actor may keep a weak address to itself. So may code
/// that only uses the actor while other code keeps it open.
///
/// The actor closes when it receives and finds no message, while no [`Address`] and no
/// [source](crate::Context::attach) of it is left. Until then a weak address sends and can be
/// upgraded.
///
/// ```
/// use greenroom::{Context, spawn};
///
/// async fn sum(mut cx: Context<u32>) -> u32 {
///     let mut sum = 0;
///     while let Some(number) = cx.recv().await {
///         sum += number;
///     }
///     sum
/// }
///
/// greenroom::run(async {
///     let sum = spawn!(sum(_));
///     let weak = sum.downgrade();
///     weak.send(42).await.unwrap();
///     assert_eq!(sum.join().await.unwrap(), 42); // `weak` did not keep it open
///     assert!(weak.upgrade().is_none());
/// });
/// ```
pub struct WeakAddress<M>(Recipient<M>);

// As for `Address`.
impl<M> UnwindSafe for WeakAddress<M> {}
impl<M> RefUnwindSafe for WeakAddress<M> {}

impl<M> WeakAddress<M> {
    pub(super) fn new(recipient: Recipient<M>) -> Self {
        WeakAddress(recipient)
    }

    fn recipient(&self) -> RecipientRef<'_, M> {
        self.0.recipient()
    }

    /// Puts the message in the mailbox without waiting, as [`Address::tell`] does.
    ///
    /// # Errors
    /// As [`Address::tell`].
    pub fn tell(&self, message: M) -> Result<(), TellError<M>> {
        self.recipient().tell(message)
    }

    /// Puts the message in the mailbox, and waits for room if it is bounded, as [`Address::send`]
    /// does.
    ///
    /// A message that waits for room keeps the actor open.
    ///
    /// # Errors
    /// As [`Address::send`].
    ///
    /// # Panics
    /// As [`Address::send`].
    ///
    /// # Cancel safety
    /// As [`Address::send`].
    pub fn send(&self, message: M) -> impl Future<Output = Result<(), SendError<M>>> + use<'_, M> {
        SendFuture::new(self.recipient(), message)
    }

    /// Sends a question and waits for the answer, as [`Address::ask`] does.
    ///
    /// It does not keep the actor open while it waits for the answer.
    ///
    /// # Errors
    /// As [`Address::ask`].
    ///
    /// # Panics
    /// As [`Address::ask`].
    ///
    /// # Cancel safety
    /// As [`Address::ask`].
    pub fn ask<T, F>(&self, question: F) -> Ask<'_, M, T, F>
    where
        F: FnOnce(Reply<T>) -> M,
    {
        Ask::new(self.recipient(), question)
    }

    /// Waits until the actor has ended, as [`Address::closed`] does, but does not keep it open.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future loses nothing.
    pub async fn closed(&self) {
        self.recipient().closed().await;
    }

    /// Ends the actor as [`Address::stop_now`] does.
    pub(crate) fn stop_now(&self) {
        self.recipient().stop_now();
    }

    /// Returns a strong address, or `None` if the mailbox is closed.
    pub fn upgrade(&self) -> Option<Address<M>> {
        self.recipient().view().observe();
        self.upgrade_now()
    }

    /// Does so, in a simulation without the pending effects of the actor and of this thread.
    #[inline]
    pub(crate) fn upgrade_now(&self) -> Option<Address<M>> {
        Address::revived(self.recipient())
    }

    /// Returns how many addresses the actor has at this moment.
    pub(crate) fn addresses(&self) -> usize {
        self.recipient().view().addresses()
    }

    /// Returns the capacity of the mailbox, as [`Address::capacity`] does.
    pub(crate) fn capacity(&self) -> Option<usize> {
        self.recipient().view().capacity()
    }

    /// Ends the actor as [`Address::stop`] does.
    pub(crate) fn stop(&self) {
        self.recipient().stop();
    }

    /// Ends the actor as [`Address::kill`] does.
    pub(crate) fn kill(&self) {
        self.recipient().kill();
    }

    /// Returns whether the actor has ended, in a simulation without pending effects.
    pub(crate) fn has_ended_now(&self) -> bool {
        self.recipient().view().end().is_some()
    }

    /// Wakes `waker` when the actor ends, until `ticket` is given up with
    /// [`forget_end`](WeakAddress::forget_end). Does nothing if the actor has ended.
    pub(crate) fn wake_at_end(&self, ticket: &mut Ticket, waker: &Waker) {
        let mut cx = Context::from_waker(waker);
        let ended = self.recipient().view().ended();
        let _ = ended.poll(ticket, &mut cx, || self.has_ended_now());
    }

    /// Gives up the ticket, so that its waker is not woken.
    pub(crate) fn forget_end(&self, ticket: &mut Ticket) {
        // A thread of the parent process may have held the lock at a fork.
        if ticket.is_used() && self.recipient().is_here() {
            self.recipient().view().ended().leave(ticket);
        }
    }

    /// Returns the actor's identity, as errors and traces have it.
    pub(crate) fn info(&self) -> TaskInfo {
        self.recipient().view().info()
    }

    /// Returns the actor's id, as [`Address::id`] does.
    pub fn id(&self) -> u64 {
        self.recipient().view().id()
    }

    /// Returns the actor's name, as [`Address::name`] does.
    pub fn name(&self) -> Option<&str> {
        self.recipient().view().name()
    }

    /// Returns whether the mailbox is closed, as [`Address::is_closed`] does.
    pub fn is_closed(&self) -> bool {
        self.recipient().view().is_closed()
    }
}

impl<M> Clone for WeakAddress<M> {
    fn clone(&self) -> Self {
        WeakAddress(Recipient::from(self.recipient()))
    }
}

impl<M> Address<M> {
    /// Returns an address that does not keep the actor open.
    pub fn downgrade(&self) -> WeakAddress<M> {
        WeakAddress::new(Recipient::from(self.recipient()))
    }
}

identified!(WeakAddress);

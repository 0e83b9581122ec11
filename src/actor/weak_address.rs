//! An actor's writing end that does not keep it open.
#![expect(unsafe_code, reason = "an address that was counted is made")]

use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::{RefUnwindSafe, UnwindSafe};

use super::address::{Address, identified};
use super::lead::{Lead, Way};
use super::reply::{Ask, Reply};
use super::sending::SendFuture;
use crate::error::TellError;

/// An [`Address`] that does not keep its actor open.
///
/// It sends and asks as an address does. An actor may keep one of itself, and so may those that only want to tell
/// an actor something while others still keep it open. The actor is closed when it receives and finds no message,
/// no [`Address`] and no [source](crate::Context::attach); until then a weak address sends and upgrades.
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
///     assert_eq!(sum.join().await.unwrap(), 42); // `weak` has not kept it open
///     assert!(weak.upgrade().is_none());
/// });
/// ```
pub struct WeakAddress<M>(Way<M>);

// As for `Address`.
impl<M> UnwindSafe for WeakAddress<M> {}
impl<M> RefUnwindSafe for WeakAddress<M> {}

impl<M> WeakAddress<M> {
    pub(super) fn new(way: Way<M>) -> Self {
        WeakAddress(way)
    }

    fn lead(&self) -> Lead<'_, M> {
        self.0.lead()
    }

    /// Puts the message in the mailbox at once, as [`Address::tell`] does.
    ///
    /// # Errors
    /// As [`Address::tell`].
    ///
    /// # Panics
    /// As [`Address::tell`].
    pub fn tell(&self, message: M) -> Result<(), TellError<M>> {
        self.lead().tell(message)
    }

    /// Puts the message in the mailbox, waiting for room if it is bounded, as [`Address::send`] does.
    ///
    /// A message that waits for room counts as one that the actor finds.
    ///
    /// # Errors
    /// As [`Address::send`].
    ///
    /// # Cancel safety
    /// As [`Address::send`].
    pub fn send(&self, message: M) -> SendFuture<'_, M> {
        SendFuture::new(self.lead(), message)
    }

    /// Sends a question and waits for the answer, as [`Address::ask`] does.
    ///
    /// It keeps nothing open while it waits for the answer.
    ///
    /// # Errors
    /// As [`Address::ask`].
    ///
    /// # Cancel safety
    /// As [`Address::ask`].
    pub fn ask<T, F>(&self, question: F) -> Ask<'_, M, T, F>
    where
        F: FnOnce(Reply<T>) -> M,
    {
        Ask::new(self.lead(), question)
    }

    /// Waits until the actor has ended, as [`Address::closed`] does, and keeps nothing open meanwhile.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn closed(&self) {
        self.lead().closed().await;
    }

    /// Returns a full address, unless the mailbox is closed.
    pub fn upgrade(&self) -> Option<Address<M>> {
        let lead = self.lead();
        // SAFETY: the address that was counted just now, of the actor behind the lead.
        lead.revive_sender()
            .then(|| unsafe { Address::from_lead(lead) })
    }

    /// Returns what [`Address::id`] does.
    pub fn id(&self) -> u64 {
        self.lead().view().id()
    }

    /// Returns what [`Address::name`] does.
    pub fn name(&self) -> Option<&str> {
        self.lead().view().name()
    }

    /// Returns what [`Address::is_closed`] does.
    pub fn is_closed(&self) -> bool {
        self.lead().view().is_closed()
    }
}

impl<M> Clone for WeakAddress<M> {
    fn clone(&self) -> Self {
        WeakAddress(Way::from(self.lead()))
    }
}

impl<M> Address<M> {
    /// Returns an address that does not keep the actor open.
    pub fn downgrade(&self) -> WeakAddress<M> {
        WeakAddress::new(Way::from(self.lead()))
    }
}

identified!(WeakAddress);

//! A message with the address that it is for, not sent yet.
//!
//! The methods of an address that [`handlers!`](crate::handlers!) declares return it for handlers
//! without a result.

use std::fmt;
use std::future::Future;

use super::address::Address;
use crate::error::{SendError, TellError};

/// A message for an actor, not sent yet.
///
/// The address that [`handlers!`](crate::handlers!) declares has a method for each handler. The
/// method of a handler without a result returns this.
///
/// ```
/// use greenroom::spawn;
///
/// struct Tally(u64);
///
/// greenroom::handlers! {
///     impl Tally as TallyAddress, TallyMessage {
///         fn add(&mut self, number: u64) {
///             self.0 += number;
///         }
///     }
/// }
///
/// greenroom::run(async {
///     let handle = spawn!(Tally(0), capacity = 10);
///     let tally = TallyAddress::from(handle.address());
///     tally.add(40).tell().unwrap();
///     tally.add(2).send().await.unwrap();
///     drop(tally);
///     assert_eq!(handle.join().await.unwrap().0, 42);
/// });
/// ```
#[must_use = "a message is sent by `.tell()` or by `.send().await`"]
pub struct Unsent<'a, M> {
    address: &'a Address<M>,
    message: M,
}

impl<'a, M> Unsent<'a, M> {
    /// Creates one. Only `handlers!` calls this.
    #[doc(hidden)]
    pub fn new(address: &'a Address<M>, message: M) -> Self {
        Unsent { address, message }
    }

    /// Puts the message in the mailbox without waiting, as [`Address::tell`] does.
    ///
    /// # Errors
    /// As [`Address::tell`]; both errors return the message.
    pub fn tell(self) -> Result<(), TellError<M>> {
        self.address.tell(self.message)
    }

    /// Puts the message in the mailbox, and waits for room if the mailbox is bounded, as
    /// [`Address::send`] does.
    ///
    /// # Errors
    /// [`SendError`] with the message if the mailbox is closed, or closes while
    /// this waits.
    ///
    /// # Panics
    /// As [`Address::send`].
    ///
    /// # Cancel safety
    /// As [`Address::send`]: dropping the future while it waits drops the message.
    pub fn send(self) -> impl Future<Output = Result<(), SendError<M>>> + use<'a, M> {
        self.address.send(self.message)
    }
}

impl<M> fmt::Debug for Unsent<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unsent")
            .field("to", &self.address.id())
            .finish_non_exhaustive()
    }
}

//! A permit for a message that does not exist yet.
//!
//! A permit is used or given up exactly once. It counts as an accepted message from the time when
//! it was granted.

use std::any::Any;
use std::fmt;
use std::future::poll_fn;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::task::{Context, Poll};

use super::address::Address;
use super::recipient::{MappedActor, Recipient};
use crate::error::SendError;
use crate::mailbox::Refused;
use crate::runtime::deadlock::{WaitListing, WaitsFor};
use crate::runtime::list_wait;
use crate::task::run;

/// The right to put one message into an actor's mailbox.
///
/// [`Address::reserve`] returns a permit. It counts as an accepted message, so it may still be used
/// after [`stop`](Address::stop). Dropping it gives up the room.
///
/// A permit is no address: an actor without addresses closes. But an unused permit delays the end
/// of a closed actor: `recv` returns `None` only when all permits are used or dropped. An actor
/// that is stopped waits for its [children](crate::Context::adopt). If it still has a permit of
/// one, each waits for the other: drop it before the next `recv`.
#[must_use = "dropping a permit gives up its room in the mailbox"]
pub struct Permit<M> {
    /// `None` once it was used.
    to: Option<Recipient<M>>,
}

// As for `Address`.
impl<M> UnwindSafe for Permit<M> {}
impl<M> RefUnwindSafe for Permit<M> {}

impl<M: Send + 'static> Address<M> {
    /// Takes a permit for a message that does not exist yet, and waits for room if
    /// the mailbox is bounded.
    ///
    /// Permits and the messages of [`send`](Address::send) are served in order of arrival.
    ///
    /// # Errors
    /// [`SendError`] if the mailbox is closed, or closes while this waits. It is
    /// [full](SendError::is_full) as for [`send`](Address::send).
    ///
    /// # Cancel safety
    /// Dropping the future leaves the line, or gives up the permit if it was
    /// granted already.
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
    ///     let sum = spawn!(sum(_), capacity = 1);
    ///     let permit = sum.reserve().await.unwrap();
    ///     assert!(sum.tell(1).unwrap_err().is_full());
    ///     sum.stop();
    ///     permit.send(42); // the permit was given before the stop
    ///     assert_eq!(sum.join().await.unwrap(), 42);
    /// });
    /// ```
    pub async fn reserve(&self) -> Result<Permit<M>, SendError<()>> {
        let mut line = InLine {
            to: Some(Recipient::from(self.recipient())),
            wait: None,
            listing: None,
        };
        match poll_fn(|cx| line.poll(cx)).await {
            Ok(()) => Ok(Permit { to: line.to.take() }),
            Err(why) => Err(self.recipient().send_error(why, ())),
        }
    }
}

/// A sender that waits for its permit.
struct InLine<M: Send + 'static> {
    /// `None` once a permit has it.
    to: Option<Recipient<M>>,
    wait: Option<Box<dyn Any + Send + Sync>>,
    /// Its wait, if its runtime detects deadlocks.
    listing: Option<Box<WaitListing>>,
}

impl<M: Send + 'static> InLine<M> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        let to = self.to.as_ref().expect("a permit was not made yet");
        let polled = match to {
            Recipient::Actor(core) => core.poll_reserve(&mut self.wait, cx),
            Recipient::Map(map) => map.poll_reserve(&mut self.wait, cx),
        };
        if polled.is_pending() {
            to.recipient().checked_process();
            run::note_wait_for(cx.waker(), WaitsFor::Room, || to.recipient().view().id());
            if self.listing.is_none() {
                self.listing = list_wait(WaitsFor::Room, || to.recipient().view().info());
            }
        } else {
            self.listing = None;
        }
        polled
    }
}

impl<M: Send + 'static> Drop for InLine<M> {
    fn drop(&mut self) {
        let Some(to) = &self.to else { return };
        let wait = self.wait.take();
        if to.recipient().is_here() {
            match to {
                Recipient::Actor(core) => core.leave_line(wait),
                Recipient::Map(map) => map.actor().leave_line(wait),
            }
        } else {
            // A thread of the parent process may have held the lock at the fork.
            std::mem::forget(wait);
        }
    }
}

impl<M> Permit<M> {
    /// Puts the message into the mailbox, without waiting.
    ///
    /// If the actor was killed or has ended, the message goes to the actor's
    /// [`on_undelivered`](crate::ActorBuilder::on_undelivered), or is dropped.
    ///
    /// # Panics
    /// If the address was made by [`map`](Address::map) and the function panics. The permit is then
    /// given up.
    pub fn send(mut self, message: M) {
        if let Some(to) = self.to.take() {
            to.fill(message);
        }
    }
}

impl<M> Drop for Permit<M> {
    fn drop(&mut self) {
        let Some(to) = &self.to else { return };
        // A thread of the parent process may have held the lock at the fork.
        if !to.recipient().is_here() {
            return;
        }
        match to {
            Recipient::Actor(core) => core.at().give_up_permit::<false>(),
            Recipient::Map(map) => map.give_up_permit(),
        }
    }
}

impl<M> fmt::Debug for Permit<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = self.to.as_ref().map(|to| to.recipient().view().id());
        f.debug_struct("Permit").field("to", &to).finish()
    }
}

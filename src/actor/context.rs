//! The actor's side of its mailbox: what `recv` reads from.
//!
//! A context belongs to one actor and usually lives in its future. Wherever it goes, it holds the
//! reading end alone: dropping it closes the mailbox and drops what was not read.
//!
//! # Invariants
//! - C1: an actor has one context at most, and nothing else touches the reader of its cell.
#![expect(
    unsafe_code,
    reason = "a context is as `Send` as its messages, and has a part of the cell to itself; see C1"
)]

use std::fmt;

use super::address::Address;
use super::core::At;
use super::deferred::{settle, settle_elsewhere};
use super::held::Held;
use super::lead::Way;
use super::reader::Reader;
use super::recv::Recv;
use super::weak_address::WeakAddress;
use crate::mailbox::Received;
use crate::sync::UnsafeCell;
use crate::task::MessageEvent;
use crate::task::run::{self, Run};

/// The reading end of an actor's mailbox, and what the actor can say of itself.
///
/// An actor gets it as its argument. It takes messages in the order in which they were accepted.
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
///     sum.tell(1).unwrap();
///     sum.tell(2).unwrap();
///     // `join` gives up the last address: what was told is read, and then the actor is closed.
///     assert_eq!(sum.join().await.unwrap(), 3);
/// });
/// ```
pub struct Context<M> {
    pub(super) core: Held<M>,
}

// SAFETY: the core is made for sharing; messages and sources are `Send`.
unsafe impl<M: Send> Send for Context<M> {}
// SAFETY: a shared context gives no access to the batch and the sources.
unsafe impl<M: Send> Sync for Context<M> {}

impl<M> Context<M> {
    /// (C1) Made once for a core.
    pub(super) fn new(core: At<'_, M>) -> Self {
        Context {
            core: Held::from(core),
        }
    }

    /// The front of the cell, and the part of it that is this context's alone.
    pub(super) fn parts(&mut self) -> (At<'_, M>, &mut Reader<M>) {
        let core = self.core.at();
        // SAFETY: (C1) this is the one context, and borrowed for as long as the reader is.
        let reader = unsafe { core.reader().as_ref() };
        // SAFETY: as above.
        (core, reader.with_mut(|reader| unsafe { &mut *reader }))
    }

    /// The same if this thread runs the actor, with its run.
    #[inline(always)]
    pub(super) fn in_run<R>(
        &mut self,
        f: impl FnOnce(At<'_, M>, &mut Reader<M>, &Run) -> R,
    ) -> Option<R> {
        let core = self.core.at();
        run::with_own(core.as_run(), |run| {
            // SAFETY: (U3) what this run reads from is the reader of this cell, and so of this type.
            let reader = unsafe { run.reader().cast::<UnsafeCell<Reader<M>>>().as_ref() };
            // SAFETY: (C1) this is the one context, and borrowed meanwhile.
            reader.with_mut(|reader| f(core, unsafe { &mut *reader }, run))
        })
    }

    /// Waits for the next message; `None` once the mailbox is closed and all it had is read.
    ///
    /// The mailbox is closed by [`stop`](crate::Address::stop), or by this when it finds no message, no
    /// address and no [source](Context::attach). Once it has given `None` the actor stays closed. After
    /// [`batch`](crate::Builder::batch) messages in one poll it lets others run first; polled elsewhere than by
    /// its own actor after 32, with those of other contexts there.
    ///
    /// # Cancel safety
    /// A `recv` that is dropped before it is ready has taken no message.
    pub fn recv(&mut self) -> Recv<'_, M> {
        Recv::new(self)
    }

    /// Returns the next message, if there is one now: it does not wait.
    ///
    /// `None` does not tell an empty mailbox from a closed one; [`recv`](Context::recv) does. As that does, it
    /// closes an actor to which no address and no source is left. It does not count against the batch: a loop
    /// over it alone holds the worker.
    pub fn try_recv(&mut self) -> Option<M> {
        if self.core.header.is_traced() {
            settle();
        }
        if self.core.at().is_doomed() {
            self.drop_batch();
            return None;
        }
        let (core, reader) = self.parts();
        match reader.receive(&core.mailbox) {
            Received::Message(message) => {
                core.trace(|| MessageEvent::Received);
                Some(message)
            }
            Received::Empty => {
                self.drop_sources_if_closed();
                self.poll_sources(None)
            }
            Received::Closed => {
                self.drop_sources();
                None
            }
        }
    }

    /// Drops what was taken and not given out.
    pub(super) fn drop_batch(&mut self) {
        let (core, reader) = self.parts();
        core.undelivered(reader.clear());
    }

    /// Returns an address of the actor itself, to be given away.
    ///
    /// While the actor keeps it, the actor does not end for want of senders; keep a
    /// [`downgrade`](Context::downgrade) instead. After [`stop`](Context::stop) the address refuses like any
    /// other.
    ///
    /// ```
    /// use greenroom::{Address, Context, spawn};
    ///
    /// async fn parent(mut cx: Context<u32>) -> Option<u32> {
    ///     spawn!(child(_, cx.address())).detach();
    ///     cx.recv().await
    /// }
    ///
    /// async fn child(_cx: Context<()>, parent: Address<u32>) {
    ///     parent.tell(42).unwrap();
    /// }
    ///
    /// greenroom::run(async {
    ///     assert_eq!(spawn!(parent(_)).join().await.unwrap(), Some(42));
    /// });
    /// ```
    pub fn address(&self) -> Address<M> {
        Address::own(self.core.at())
    }

    /// Returns an address of the actor itself that does not keep it open.
    pub fn downgrade(&self) -> WeakAddress<M> {
        WeakAddress::new(Way::Actor(self.core.clone()))
    }

    /// Closes the mailbox: what was accepted is still read, then `recv` gives `None`.
    ///
    /// Its sources are dropped when the actor receives next.
    pub fn stop(&self) {
        self.core.observe();
        self.core.at().close();
    }
}

impl<M> Drop for Context<M> {
    fn drop(&mut self) {
        if self.core.header.is_traced() {
            settle_elsewhere(self.core.header.id());
        }
        self.core.at().close();
        let (core, reader) = self.parts();
        if reader.has_sources() {
            // Their drop may do anything, but not reach this context.
            drop(reader.take_sources());
        }
        // What was sent to a doomed actor is dropped by its end.
        if core.mailbox.doom_of().is_none() {
            core.undelivered(core.mailbox.drain().clear());
        }
        core.undelivered(reader.clear());
    }
}

impl<M> fmt::Debug for Context<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Context").field(&self.downgrade()).finish()
    }
}

//! A spawned actor's address, together with the right to its result.

#![expect(
    unsafe_code,
    reason = "a counted pointer to the actor's core; see CELL-2 and CELL-3 in cell.rs"
)]

use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::ops::Deref;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use super::address::Address;
use super::core::{Core, CoreArc};
use crate::error::Fault;
use crate::mailbox::Flags;
use crate::runtime::{list_join, unlist_join};
use crate::sync::Mutex;
use crate::task::{WaitsFor, run};
use crate::waiters::Ticket;

/// A spawned actor's [`Address`], together with the right to its result.
///
/// [`spawn!`](crate::spawn!) returns a handle. It dereferences to its address. Awaiting it is the
/// same as [`join`](Handle::join).
///
/// Dropping a handle gives up its address and the actor's result. It does not end the actor, which
/// continues while it has messages, an address or a source. [`detach`](Handle::detach) does the
/// same explicitly.
#[must_use = "dropping a handle gives up its address and the result; `detach` does so explicitly"]
pub struct Handle<M, T> {
    /// Dropped when `join` is called, before the wait.
    address: Address<M>,
    join: Join<M, T>,
}

impl<M, T> Handle<M, T> {
    /// Creates the handle of a new cell.
    ///
    /// # Safety
    /// `core` is new, the caller transfers its address and its right to join, and its result has
    /// type `T`.
    pub(super) unsafe fn new(core: NonNull<Core<M>>) -> Self {
        // SAFETY: guaranteed by the caller.
        let address = unsafe { Address::from_core(core) };
        Handle {
            address,
            join: Join {
                // SAFETY: the reference that comes with the right to join.
                core: Some(unsafe { CoreArc::from_raw(core) }),
                ticket: Ticket::default(),
                _result: PhantomData,
            },
        }
    }

    pub(super) fn core(&self) -> CoreArc<M> {
        let core = self.join.core.as_ref();
        core.expect("it was not joined").clone()
    }

    pub(crate) fn into_parts(self) -> (Address<M>, Join<M, T>) {
        (self.address, self.join)
    }

    /// Gives up the address and the actor's result, as dropping the handle does.
    ///
    /// If the actor panics later, the panic is reported to [`on_fault`](crate::Builder::on_fault).
    ///
    /// ```
    /// use greenroom::{Context, Reply, spawn};
    ///
    /// async fn child(mut cx: Context<Reply<u32>>) {
    ///     while let Some(reply) = cx.recv().await {
    ///         reply.send(42);
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let child = spawn!(child(_));
    ///     let address = child.address();
    ///     child.detach();
    ///     assert_eq!(address.ask(|reply| reply).await, Ok(42));
    /// });
    /// ```
    pub fn detach(self) {
        drop(self);
    }

    /// Returns a clone of the address.
    pub fn address(&self) -> Address<M> {
        self.address.clone()
    }

    /// Waits until the actor has ended, and returns its result.
    ///
    /// This call gives up the handle's address. If that was the last one, the actor closes when it
    /// receives next and finds no message and no source. Keep an [`address`](Handle::address) to
    /// keep the actor open. While others have addresses, it stays open, too, and this waits.
    /// [`stop`](Address::stop) ends it all the same.
    ///
    /// # Errors
    /// - [`Fault::Panicked`] if the actor panicked.
    /// - [`Fault::Killed`] if it was [killed](Address::kill).
    /// - [`Fault::Cancelled`] if it was dropped by the shutdown of its runtime or pinned thread.
    /// - [`Fault::NotStarted`] if that shutdown came before its first poll.
    ///
    /// # Panics
    /// The future panics if it is polled again after completion.
    ///
    /// # Cancel safety
    /// The future holds the right to the result. Dropping it gives up that right, as dropping the
    /// handle does. To wait without that risk, poll the same future by reference.
    ///
    /// ```
    /// use greenroom::{Context, Fault, spawn};
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
    ///     let handle = spawn!(sum(_));
    ///     handle.tell(40).unwrap();
    ///     handle.tell(2).unwrap();
    ///     assert_eq!(handle.join().await.unwrap(), 42);
    ///
    ///     let handle = spawn!(sum(_));
    ///     handle.kill();
    ///     assert!(matches!(handle.join().await, Err(Fault::Killed)));
    /// });
    /// ```
    pub fn join(self) -> Join<M, T> {
        self.join
    }
}

impl<M, T> Deref for Handle<M, T> {
    type Target = Address<M>;

    fn deref(&self) -> &Address<M> {
        &self.address
    }
}

impl<M, T> IntoFuture for Handle<M, T> {
    type Output = Result<T, Fault>;
    type IntoFuture = Join<M, T>;

    /// Does what [`join`](Handle::join) does.
    fn into_future(self) -> Join<M, T> {
        self.join()
    }
}

impl<M, T> fmt::Debug for Handle<M, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&self.address).finish()
    }
}

/// The future of [`Handle::join`].
#[must_use = "futures do nothing unless polled"]
pub struct Join<M, T> {
    /// `None` after completion.
    core: Option<CoreArc<M>>,
    ticket: Ticket,
    /// Makes this `Send` and `Sync` as a lock around the result is.
    _result: PhantomData<Mutex<T>>,
}

impl<M, T> Unpin for Join<M, T> {}

impl<M, T> Future for Join<M, T> {
    type Output = Result<T, Fault>;

    /// Waits for the actor's end.
    ///
    /// # Panics
    /// If it is polled again after completion.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let core = this
            .core
            .as_ref()
            .expect("`join` polled after it was ready");
        let ended = || core.mailbox.state.peek().has(Flags::ENDED);
        if !ended() {
            core.at().process().check();
            core.awaits_end();
            let polled = core.mailbox.ended_made().poll(&mut this.ticket, cx, ended);
            if polled.is_pending() {
                list_join(|| core.info());
                run::note_wait_for(cx.waker(), WaitsFor::End, || core.header.id());
                return Poll::Pending;
            }
        }
        unlist_join(core.header.id());
        core.observe();
        // SAFETY: (CELL-3) the actor has ended; this holds the one right to its result, of this
        // type.
        let result = unsafe { core.at().take_result() };
        this.core = None;
        Poll::Ready(result)
    }
}

impl<M, T> Drop for Join<M, T> {
    fn drop(&mut self) {
        let Some(core) = self
            .core
            .take()
            .filter(|core| core.at().process().is_current())
        else {
            return;
        };
        if self.ticket.is_used()
            && let Some(ended) = core.mailbox.ended()
        {
            ended.leave(&mut self.ticket);
            unlist_join(core.header.id());
        }
        if core.mailbox.state.unjoin() {
            // SAFETY: (CELL-3) the actor has ended; this held the one right to its result.
            unsafe { core.at().drop_result() };
        }
    }
}

impl<M, T> fmt::Debug for Join<M, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Join")
            .field("ready", &self.core.is_none())
            .finish()
    }
}

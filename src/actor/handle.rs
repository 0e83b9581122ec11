//! An actor's address together with the right to its result.

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
use std::task::{Context, Poll, ready};

use super::address::Address;
use super::core::{Core, Held};
use crate::error::Fault;
use crate::mailbox::Flags;
use crate::sync::Mutex;
use crate::waiters::Ticket;

/// What `spawn!` gives: an [`Address`] of the actor, and its result when it has ended.
///
/// It dereferences to its address. Dropping it gives up that address and the result, and nothing
/// else: the actor goes on as long as there are messages for it, an address or a source.
/// [`detach`](Handle::detach) does the same and says that it is meant.
#[must_use = "dropping a handle gives up its address and the actor's result; `detach` does so on purpose"]
pub struct Handle<M, T> {
    /// Dropped before the join, which is what `join` promises.
    address: Address<M>,
    join: Join<M, T>,
}

impl<M, T> Handle<M, T> {
    /// # Safety
    /// `core` is new: its address and its right to join are the caller's to give away, and `T` is
    /// its result's type.
    pub(super) unsafe fn new(core: NonNull<Core<M>>) -> Self {
        // SAFETY: the caller's promise.
        let address = unsafe { Address::from_core(core) };
        Handle {
            address,
            join: Join {
                // SAFETY: the reference that comes with the right to join.
                core: Some(unsafe { Held::from_raw(core) }),
                ticket: Ticket::default(),
                _result: PhantomData,
            },
        }
    }

    /// Gives up its address and the actor's result, as dropping it does.
    ///
    /// If the actor panics after that, [`on_fault`](crate::Builder::on_fault) is told.
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

    /// Gives up its address, then waits until the actor has ended, and gives its result.
    ///
    /// If that was the last address, the actor is closed when it receives next and finds no message and no source.
    /// Keep an [`address`](Handle::address) if it is to go on meanwhile.
    ///
    /// # Errors
    /// A [`Fault`] if the actor panicked, was killed, or was cancelled or never started because of
    /// the shutdown of its runtime or pinned thread.
    ///
    /// # Cancel safety
    /// The future holds the right to the result: dropped, it gives that up, as dropping the handle
    /// does.
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

    /// As [`join`](Handle::join).
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
    /// `None` once it has given the result.
    core: Option<Held<M>>,
    ticket: Ticket,
    /// As `Send` and `Sync` as a lock around the result.
    _result: PhantomData<Mutex<T>>,
}

impl<M, T> Unpin for Join<M, T> {}

impl<M, T> Future for Join<M, T> {
    type Output = Result<T, Fault>;

    /// # Panics
    /// If it is polled again after it was ready, or would wait for the parent process after a `fork`.
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
            ready!(core.mailbox.ended_made().poll(&mut this.ticket, cx, ended));
        }
        core.observe();
        // SAFETY: (CELL-3) ended, and this is the one right to the result, of this type.
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
        }
        if core.mailbox.state.unjoin() {
            // SAFETY: (CELL-3) ended, and nobody else can ask for the result.
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

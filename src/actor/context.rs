//! The actor's side of its mailbox: what `recv` reads from.
//!
//! A context belongs to one actor and usually lives in its future. Wherever it goes, it holds the
//! reading end alone: dropping it closes the mailbox and drops what was not read.

#![expect(
    unsafe_code,
    reason = "a counted pointer to the actor's core; see A2 in cell.rs"
)]

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::Poll;

use super::address::WeakAddress;
use super::cell::Core;
use crate::mailbox::{Queue, Received};

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
///     // `join` gives up the last address: the mailbox is closed, and what is in it still read.
///     assert_eq!(sum.join().await.unwrap(), 3);
/// });
/// ```
pub struct Context<M> {
    core: NonNull<Core<M>>,
    /// Messages taken from the mailbox and not yet given out.
    batch: Queue<M>,
    /// How many more messages this turn may handle.
    left: u32,
    turn: u32,
}

// SAFETY: the core is made for sharing; the batch is messages, which are `Send`.
unsafe impl<M: Send> Send for Context<M> {}
// SAFETY: a shared context gives no access to the batch.
unsafe impl<M: Send> Sync for Context<M> {}

impl<M> Context<M> {
    pub(super) fn new(core: &Core<M>) -> Self {
        core.retain();
        let (left, turn) = (core.mailbox.batch(), core.turn());
        Context {
            core: NonNull::from(core),
            batch: Queue::EMPTY,
            left,
            turn,
        }
    }

    fn core(&self) -> &Core<M> {
        // SAFETY: (A2) the context holds a reference.
        unsafe { self.core.as_ref() }
    }

    /// Waits for the next message; `None` once the mailbox is closed and all it had is read.
    ///
    /// The mailbox is closed by [`stop`](crate::Address::stop), or when no address is left. After
    /// [`batch`](crate::Builder::batch) messages in one poll it lets others run first.
    ///
    /// # Cancel safety
    /// A `recv` that is dropped before it is ready has taken no message.
    pub fn recv(&mut self) -> Recv<'_, M> {
        Recv {
            context: self,
            waiting: false,
        }
    }

    /// The next message, if there is one now: it does not wait.
    ///
    /// `None` does not tell an empty mailbox from a closed one; [`recv`](Context::recv) does. It
    /// does not count against the batch: a loop over it alone holds the worker.
    pub fn try_recv(&mut self) -> Option<M> {
        // SAFETY: (A2) the context holds a reference.
        let core = unsafe { self.core.as_ref() };
        if core.mailbox.batch() == 0 {
            self.drop_batch();
            return None;
        }
        match core.mailbox.receive(&mut self.batch) {
            Received::Message(message) => Some(message),
            Received::Closed | Received::Empty => None,
        }
    }

    /// Drops what was taken and not given out.
    fn drop_batch(&mut self) {
        let unread = self.batch.clear();
        self.core().undelivered(unread);
    }

    /// An address of the actor itself that does not keep it open.
    pub fn address(&self) -> WeakAddress<M> {
        WeakAddress::new(self.core())
    }

    /// Closes the mailbox: what was accepted is still read, then `recv` gives `None`.
    pub fn stop(&self) {
        self.core().close();
    }
}

impl<M> Context<M> {
    /// A killed or cancelled actor is dropped when it next suspends, so that is what this does.
    fn poll_doomed(&mut self, cx: &mut std::task::Context<'_>) -> Poll<Option<M>> {
        self.drop_batch();
        if self.core().receive_in_run(cx.waker()) {
            Poll::Pending
        } else {
            Poll::Ready(None)
        }
    }
}

impl<M> Drop for Context<M> {
    fn drop(&mut self) {
        let core = self.core();
        core.close();
        core.undelivered(core.mailbox.drain());
        self.drop_batch();
        // SAFETY: (A2) the context's reference, given up last.
        unsafe { Core::release(self.core) };
    }
}

impl<M> fmt::Debug for Context<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Context").field(&self.address()).finish()
    }
}

/// The future of [`Context::recv`].
#[must_use = "futures do nothing unless polled"]
pub struct Recv<'a, M> {
    context: &'a mut Context<M>,
    waiting: bool,
}

impl<M> Future for Recv<'_, M> {
    type Output = Option<M>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Option<M>> {
        let this = &mut *self;
        let context = &mut *this.context;
        // SAFETY: (A2) the context holds a reference.
        let core = unsafe { context.core.as_ref() };
        let batch = core.mailbox.batch();
        if batch == 0 {
            return context.poll_doomed(cx);
        }
        if context.turn != core.turn() {
            context.turn = core.turn();
            context.left = batch;
        }
        if context.left == 0 {
            context.left = batch;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        loop {
            match core.mailbox.receive(&mut context.batch) {
                Received::Message(message) => {
                    context.left -= 1;
                    this.done(core);
                    return Poll::Ready(Some(message));
                }
                Received::Closed => {
                    this.done(core);
                    // What it had may have been dropped, so this is no end of messages.
                    if core.mailbox.doom_of().is_some() {
                        return this.context.poll_doomed(cx);
                    }
                    return Poll::Ready(None);
                }
                Received::Empty => {}
            }
            if core.receive_in_run(cx.waker()) || core.mailbox.wait(cx.waker()) {
                this.waiting = true;
                return Poll::Pending;
            }
        }
    }
}

impl<M> Recv<'_, M> {
    /// Nothing is waited for any more, so the next message need wake nobody.
    fn done(&mut self, core: &Core<M>) {
        if std::mem::take(&mut self.waiting) {
            core.stop_receiving();
        }
    }
}

impl<M> Drop for Recv<'_, M> {
    fn drop(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting {
            self.context.core().stop_receiving();
        }
    }
}

impl<M> fmt::Debug for Recv<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recv")
            .field("waiting", &self.waiting)
            .finish()
    }
}

//! The actor's side of its mailbox: what `recv` reads from.
//!
//! A context belongs to one actor and usually lives in its future. Wherever it goes, it holds the
//! reading end alone: dropping it closes the mailbox and drops what was not read.
//!
//! # Invariants
//! - CONTEXT-1: an actor has one context at most, and nothing else touches the reader of its cell.
#![expect(
    unsafe_code,
    reason = "a context is as `Send` as its messages, and has a part of the cell to itself; see CONTEXT-1"
)]

use std::fmt;
use std::future::Future;
use std::panic::UnwindSafe;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Poll, Waker};

use futures_core::Stream;

use super::address::Address;
use super::core::{At, Held};
use super::deferred::{await_message, is_pending, settle, settle_elsewhere};
use super::lead::Way;
use super::reader::Reader;
use super::source::Sources;
use super::weak_address::WeakAddress;
use crate::mailbox::{Flags, Received};
use crate::runtime::context;
use crate::sync::UnsafeCell;
use crate::task::MessageEvent;
use crate::task::run::{self, CurrentRun};

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
    core: Held<M>,
}

// SAFETY: the core is made for sharing; messages and sources are `Send`.
unsafe impl<M: Send> Send for Context<M> {}
// SAFETY: a shared context gives no access to the batch and the sources.
unsafe impl<M: Send> Sync for Context<M> {}

impl<M> Context<M> {
    /// (CONTEXT-1) Made once for a core.
    pub(super) fn new(core: At<'_, M>) -> Self {
        Context {
            core: Held::from(core),
        }
    }

    /// The front of the cell, and the part of it that is this context's alone.
    pub(super) fn parts(&mut self) -> (At<'_, M>, &mut Reader<M>) {
        let core = self.core.at();
        // SAFETY: (CONTEXT-1) this is the one context, and borrowed for as long as the reader is.
        let reader = unsafe { reader_of(core).as_ref() };
        // SAFETY: (CONTEXT-1) this is the one context, and borrowed for as long as the reader is.
        (core, reader.with_mut(|reader| unsafe { &mut *reader }))
    }

    /// The same if this thread runs the actor, with its run.
    #[inline(always)]
    fn in_run<R>(
        &mut self,
        f: impl FnOnce(At<'_, M>, &mut Reader<M>, &CurrentRun) -> R,
    ) -> Option<R> {
        let core = self.core.at();
        run::with_own(core.as_run(), |run| {
            // SAFETY: (RUN-3) what this run reads from is the reader of this cell, and so of this type.
            let reader = unsafe { run.reader().cast::<UnsafeCell<Reader<M>>>().as_ref() };
            // SAFETY: (CONTEXT-1) this is the one context, and borrowed meanwhile.
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
        Recv { context: self }
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
        if self.core.at().is_terminated() {
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
    fn drop_batch(&mut self) {
        let (core, reader) = self.parts();
        core.undelivered(reader.clear());
    }

    /// Gives a message of a source, if one has any now. Otherwise that wakes `waker` or, if that is
    /// `None`, the waker of the last poll.
    fn poll_sources(&mut self, waker: Option<&Waker>) -> Option<M> {
        let (core, reader) = self.parts();
        match reader.sources()?.poll(core, waker) {
            Poll::Ready(None) => {
                self.drop_sources();
                None
            }
            Poll::Ready(message) => message,
            Poll::Pending => None,
        }
    }

    fn drop_sources(&mut self) {
        // Their drop may do anything, but not reach this context.
        drop(self.parts().1.take_sources());
    }

    pub(super) fn drop_sources_if_closed(&mut self) {
        if self.core.mailbox.state.peek().has(Flags::CLOSED) {
            self.drop_sources();
        }
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
        // What was sent to a terminated actor is dropped by its end.
        if core.mailbox.state.termination().is_none() {
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

/// The future of [`Context::recv`].
#[must_use = "futures do nothing unless polled"]
pub struct Recv<'a, M> {
    context: &'a mut Context<M>,
}

// As for `Held`; a source that panics is dropped.
impl<M> UnwindSafe for Recv<'_, M> {}

impl<M> Future for Recv<'_, M> {
    type Output = Option<M>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Option<M>> {
        self.context.poll_recv(cx.waker())
    }
}

impl<M> Drop for Recv<'_, M> {
    #[inline]
    fn drop(&mut self) {
        let (core, reader) = self.context.parts();
        done(core, reader);
    }
}

impl<M> fmt::Debug for Recv<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Recv").field(&self.context).finish()
    }
}

/// The messages as a stream, which ends where [`recv`](Context::recv) gives `None`.
///
/// ```
/// use futures::StreamExt;
/// use greenroom::{Context, spawn};
///
/// async fn longest(cx: Context<String>) -> usize {
///     cx.map(|text| text.len()).fold(0, |longest, len| async move { longest.max(len) }).await
/// }
///
/// greenroom::run(async {
///     let longest = spawn!(longest(_));
///     longest.tell("green".into()).unwrap();
///     longest.tell("room".into()).unwrap();
///     assert_eq!(longest.join().await.unwrap(), 5);
/// });
/// ```
impl<M> Stream for Context<M> {
    type Item = M;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Option<M>> {
        // It may have been left waiting by the last poll, with nobody to say so; a `recv` that is dropped
        // without having been polled leaves that as it is.
        self.parts().1.set_waits();
        let polled = self.poll_recv(cx.waker());
        if polled.is_pending() {
            self.parts().1.take_waits();
        }
        polled
    }
}

/// What the context of this actor reads from; the caller is that context.
#[inline]
fn reader_of<M>(core: At<'_, M>) -> NonNull<UnsafeCell<Reader<M>>> {
    let reader = run::reader_of(core.as_run()).unwrap_or_else(|| {
        // SAFETY: (CELL-2) a reference is held; the context calls.
        unsafe { (core.header.vtable.reader)(core.header()) }
    });
    reader.cast()
}

/// Nothing is waited for any more, so the next message need wake nobody.
#[inline]
fn done<M>(core: At<'_, M>, reader: &mut Reader<M>) {
    if reader.take_waits() {
        core.stop_receiving();
    }
}

impl<M> Context<M> {
    #[inline]
    fn poll_recv(&mut self, waker: &Waker) -> Poll<Option<M>> {
        let polled = self.in_run(|core, reader, run| {
            if !run.may_handle() || reader.has_sources() {
                return None;
            }
            match reader.receive_alone(&core.mailbox) {
                Received::Message(message) => {
                    run.spend();
                    done(core, reader);
                    Some(Poll::Ready(Some(message)))
                }
                Received::Empty if core.is_own(waker) => {
                    run.note(run::RECEIVING);
                    reader.set_waits();
                    Some(Poll::Pending)
                }
                Received::Closed if core.mailbox.state.termination().is_none() => {
                    done(core, reader);
                    Some(Poll::Ready(None))
                }
                Received::Empty | Received::Closed => None,
            }
        });
        polled
            .flatten()
            .unwrap_or_else(|| self.poll_recv_anyhow(waker))
    }

    /// The same wherever this is, and with sources.
    #[cold]
    #[inline(never)]
    fn poll_recv_anyhow(&mut self, waker: &Waker) -> Poll<Option<M>> {
        self.drop_sources_if_closed();
        if self.core.at().is_terminated() {
            return self.poll_terminated(waker);
        }
        // What a turn did before takes effect before it sees what has come meanwhile: in its own time, unless this is
        // only a look.
        let mut is_over = self.core.header.is_traced() && is_pending();
        if is_over && !self.core.at().is_own(waker) {
            settle();
            is_over = false;
        }
        if is_over || run::is_spent(context::is_alone) {
            waker.wake_by_ref();
            return Poll::Pending;
        }
        let mut message = None;
        if self.parts().1.sources().is_some_and(Sources::take_turn) {
            message = self.poll_sources(Some(waker));
        }
        loop {
            if message.is_none() {
                let (core, reader) = self.parts();
                match reader.receive(&core.mailbox) {
                    Received::Message(received) => {
                        core.trace(|| MessageEvent::Received);
                        message = Some(received);
                    }
                    Received::Closed => return self.poll_closed(waker),
                    Received::Empty => message = self.poll_sources(Some(waker)),
                }
            }
            let (core, reader) = self.parts();
            if message.is_some() {
                run::spend();
                done(core, reader);
                return Poll::Ready(message);
            }
            if core.receive_in_run(waker) || core.mailbox.wait(waker) {
                if core.header.is_traced() {
                    await_message();
                }
                reader.set_waits();
                return Poll::Pending;
            }
        }
    }

    fn poll_closed(&mut self, waker: &Waker) -> Poll<Option<M>> {
        self.drop_sources();
        let (core, reader) = self.parts();
        done(core, reader);
        // What it had may have been dropped, so this is no end of messages.
        match core.mailbox.state.termination() {
            Some(_) => self.poll_terminated(waker),
            None => Poll::Ready(None),
        }
    }

    /// A killed or cancelled actor is dropped when it next suspends, so that is what this does.
    fn poll_terminated(&mut self, waker: &Waker) -> Poll<Option<M>> {
        self.drop_batch();
        if self.core.at().receive_in_run(waker) {
            Poll::Pending
        } else {
            Poll::Ready(None)
        }
    }
}

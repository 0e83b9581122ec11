//! The receiving half of an actor's mailbox.
//!
//! A context belongs to one actor and usually lives in the actor's future. It may be moved
//! elsewhere. It is the only receiver, so dropping it closes the mailbox and drops the messages
//! that were not received. A lent context goes back to its lender instead.
//!
//! # Invariants
//! - CONTEXT-1: an actor has at most one context, and only the context touches the reader of its
//!   cell. The drop of a lent context passes that right to its loan.
#![expect(
    unsafe_code,
    reason = "a context is as `Send` as its messages, and owns the cell's reader; see CONTEXT-1"
)]

mod recv;
mod replay;

use std::fmt;
use std::ptr::NonNull;
use std::task::{Poll, Waker};

use super::address::Address;
use super::core::{CoreArc, CoreRef};
use super::deferred::apply_effects_elsewhere;
use super::reader::Reader;
use super::recipient::Recipient;
use super::weak_address::WeakAddress;
use crate::error::End;
use crate::mailbox::Flags;
use crate::runtime::context;
use crate::sync::UnsafeCell;
use crate::task::TaskInfo;
use crate::task::run::{self, CurrentTurn};

/// The receiving half of an actor's mailbox, with access to the actor's own address and sources.
///
/// An actor gets its context as an argument. It receives messages in the order in which they were
/// accepted. Dropping the context closes the mailbox.
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
///     // `join` gives up the last address, so the actor closes after both messages.
///     assert_eq!(sum.join().await.unwrap(), 3);
/// });
/// ```
pub struct Context<M> {
    core: CoreArc<M>,
}

// SAFETY: the core is thread-safe; messages and sources are `Send`.
unsafe impl<M: Send> Send for Context<M> {}
// SAFETY: of batch and sources, a shared context reaches the list of children alone, which is `Sync`.
unsafe impl<M: Send> Sync for Context<M> {}

impl<M> Context<M> {
    /// Creates the context of a core. (CONTEXT-1) It is called once for each core, and again when a
    /// loan has come back.
    pub(super) fn new(core: CoreArc<M>) -> Self {
        Context { core }
    }

    pub(super) fn core(&self) -> &CoreArc<M> {
        &self.core
    }

    /// Returns the core, and the reader, which belongs to this context.
    pub(super) fn parts(&mut self) -> (CoreRef<'_, M>, &mut Reader<M>) {
        let core = self.core.at();
        // SAFETY: (CONTEXT-1) this is the one context, borrowed as long as the reader.
        let reader = unsafe { reader_of(core).as_ref() };
        // SAFETY: (CONTEXT-1) this is the one context, borrowed as long as the reader.
        (core, reader.with_mut(|reader| unsafe { &mut *reader }))
    }

    /// Calls `f` with core, reader and run, if this thread runs the actor.
    #[inline(always)]
    fn in_turn<R>(
        &mut self,
        f: impl FnOnce(CoreRef<'_, M>, &mut Reader<M>, &CurrentTurn) -> R,
    ) -> Option<R> {
        let core = self.core.at();
        run::with_own(core.as_run(), |run| {
            // SAFETY: (RUN-3) the run's reader is the reader of this cell, and so has this type.
            let reader = unsafe { run.reader().cast::<UnsafeCell<Reader<M>>>().as_ref() };
            // SAFETY: (CONTEXT-1) this is the one context, borrowed during the call.
            reader.with_mut(|reader| f(core, unsafe { &mut *reader }, run))
        })
    }

    /// Receives the next message; returns `None` when the mailbox is closed and empty.
    ///
    /// The mailbox is closed by [`stop`](crate::Address::stop) and by a shutdown. `recv` itself
    /// closes it when it finds no message, while no address and no [source](Context::attach) is
    /// left. After it has returned `None`, the actor stays closed. A killed actor is dropped while
    /// it waits here, instead of receiving `None`. After a [`stop_now`](crate::Address::stop_now) it
    /// returns `None` although messages are left.
    ///
    /// A closed actor first receives what was accepted. Then `recv` stops its
    /// [children](Context::adopt) and returns their results, and only then `None`.
    ///
    /// `recv` yields after [`batch`](crate::Builder::batch) messages in one poll of the actor, so
    /// that other tasks can run. If another task or thread polls it, it yields after 32 messages,
    /// counted together with the other contexts that are polled there.
    ///
    /// # Cancel safety
    /// Cancel safe: if the future is dropped before it completes, no message was taken. So a
    /// [`timeout`](crate::time::timeout()) may limit the wait:
    ///
    /// ```
    /// use greenroom::time::{TimedOut, timeout};
    /// use greenroom::{Context, spawn};
    /// use std::time::Duration;
    ///
    /// async fn session(mut cx: Context<&'static str>) -> &'static str {
    ///     loop {
    ///         match timeout(Duration::from_millis(1), cx.recv()).await {
    ///             Ok(Some(text)) => println!("{text}"),
    ///             Ok(None) => return "closed",
    ///             Err(TimedOut) => return "idle",
    ///         }
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let session = spawn!(session(_));
    ///     let _keeps_open = session.address();
    ///     assert_eq!(session.join().await.unwrap(), "idle");
    /// });
    /// ```
    ///
    /// A `select!` of `futures` or tokio loses no message either:
    ///
    /// ```
    /// use futures::{FutureExt, SinkExt, StreamExt, channel::mpsc, select};
    /// use greenroom::{Context, spawn};
    /// async fn add(mut cx: Context<u64>, mut more: mpsc::Receiver<u64>, mut sum: u64) -> u64 {
    ///     loop {
    ///         sum += select! {
    ///             message = cx.recv().fuse() => match message {
    ///                 Some(number) => number,
    ///                 None => return sum,
    ///             },
    ///             number = more.select_next_some() => number,
    ///         };
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let (mut other, more) = mpsc::channel(0);
    ///     let total = spawn!(add(_, more, 0), capacity = 1);
    ///     for number in 1..=1000 {
    ///         other.send(number).await.unwrap();
    ///         total.send(number).await.unwrap();
    ///     }
    ///     other.flush().await.unwrap(); // the last one was received
    ///     assert_eq!(total.join().await.unwrap(), 1_001_000);
    /// });
    /// ```
    #[must_use = "nothing is received before it is awaited: `cx.recv().await`"]
    pub fn recv(&mut self) -> impl Future<Output = Option<M>> + use<'_, M> {
        recv::Recv { context: self }
    }

    /// Receives the next message if there is one now, without waiting.
    ///
    /// `None` does not tell an empty mailbox from a closed one; [`recv`](Context::recv) does. Like
    /// `recv`, this closes an actor to which no address and no source is left. It does not count
    /// against the [batch](crate::Builder::batch), so a loop over `try_recv` alone occupies the
    /// worker.
    pub fn try_recv(&mut self) -> Option<M> {
        if self.core.header.is_traced() {
            context::apply_effects();
            self.core.at().handled();
        }
        if self.core.at().is_terminated() {
            self.give_up();
            return None;
        }
        self.lose_if_stopped_now();
        let (core, reader) = self.parts();
        match reader.receive(&core.mailbox) {
            Poll::Ready(Some(message)) => {
                core.received(&message);
                Some(message)
            }
            // The mailbox is open, or closed with a permit left: sources come after messages.
            Poll::Pending => {
                self.close_sources_if_closed();
                self.poll_sources(None)
            }
            Poll::Ready(None) => {
                self.close_sources();
                self.end_children();
                self.poll_sources(None)
            }
        }
    }

    /// Returns a message of a source that is ready. If none is, the sources wake `waker`, or the
    /// waker of the last poll if that is `None`.
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
        // The drop of a source may run any code, but cannot reach this context.
        drop(self.parts().1.take_sources());
    }

    /// Drops all sources but the results of children. The mailbox is closed.
    fn close_sources(&mut self) {
        // The drop of a source may run any code, but cannot reach this context.
        if (self.parts().1.sources()).is_some_and(|sources| sources.close()) {
            self.drop_sources();
        }
    }

    pub(super) fn close_sources_if_closed(&mut self) {
        if self.core.mailbox.state.peek().has(Flags::CLOSED) {
            self.close_sources();
        }
    }

    pub(super) fn list_children(&self) -> Vec<TaskInfo> {
        let reader = reader_of(self.core.at());
        let list = |reader: *mut Reader<M>| {
            // SAFETY: (CONTEXT-1) this is the one context, which is not borrowed mutably.
            let sources = unsafe { &*reader }.sources_seen();
            sources.map_or_else(Vec::new, |sources| sources.list_children())
        };
        // SAFETY: (CELL-2) the reader is in the cell, of which a reference is held.
        unsafe { reader.as_ref() }.with_mut(list)
    }

    /// Returns an address of this actor, for example to give it to another actor.
    ///
    /// While the actor keeps this address, it does not close for lack of senders; keep a
    /// [`downgrade`](Context::downgrade) instead. After [`stop`](Context::stop) the address refuses
    /// messages like any other.
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

    /// Returns an address of this actor that does not keep it open.
    pub fn downgrade(&self) -> WeakAddress<M> {
        WeakAddress::new(Recipient::Actor(self.core.clone()))
    }
}

impl<M> Drop for Context<M> {
    fn drop(&mut self) {
        if self.core.header.is_traced() {
            apply_effects_elsewhere(self.core.header.id());
        }
        let lent = Flags::LENT.or(Flags::RELENT);
        if self.core.mailbox.state.peek().has(lent) && self.give_back() {
            return;
        }
        self.core.at().close();
        let (core, reader) = self.parts();
        end_sources(core, reader);
        let flags = core.mailbox.state.peek();
        // If a panic unwinds, `lose_some` names no cause: the askers get it when the turn has ended.
        let end = flags.termination().map_or(End::Returned, End::from);
        if !reader.is_empty() {
            core.lose_taken(end, reader.take_batch());
        }
        // The end of a terminated actor drops the messages that were sent to it.
        if flags.termination().is_none() {
            core.lose(end, core.mailbox.drain_seen(flags));
        }
        if flags.has(Flags::KEEPS) {
            core.mailbox.forget_context();
            core.pass_undelivered();
        }
    }
}

impl<M> fmt::Debug for Context<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Context").field(&self.downgrade()).finish()
    }
}

/// Returns the reader of the actor. The caller is the actor's context.
#[inline]
fn reader_of<M>(core: CoreRef<'_, M>) -> NonNull<UnsafeCell<Reader<M>>> {
    let reader = run::reader_of(core.as_run()).unwrap_or_else(|| {
        // SAFETY: (CELL-2) a reference is held; the caller is the context.
        unsafe { (core.header.vtable.reader)(core.header()) }
    });
    reader.cast()
}

/// Ends the wait, so that the next message wakes no task.
///
/// A pending `recv` has left up to three marks: WAITS in the reader; in its own turn RECEIVING as a
/// note; and from the end of that turn on, or with another waker at once, RECEIVING or FOREIGN in the
/// word. A sender that woke the actor has cleared that. So the lock is taken only if something else
/// has woken it.
#[inline]
pub(super) fn end_wait<M>(core: CoreRef<'_, M>, reader: &mut Reader<M>) {
    if reader.take_waits() && core.stop_receiving() {
        wait_no_more(core, reader);
    }
}

/// Drops the sources of a context that ends, and stops the children as the actor was stopped.
#[inline]
pub(super) fn end_sources<M>(core: CoreRef<'_, M>, reader: &mut Reader<M>) {
    if let Some(mut sources) = reader.take_sources() {
        sources.stop_children(core.is_stopped_now());
        // The drop of a source may run any code, but cannot reach this context.
        drop(sources);
    }
}

#[cold]
#[inline(never)]
fn wait_no_more<M>(core: CoreRef<'_, M>, reader: &mut Reader<M>) {
    core.mailbox.wait_no_more();
    reader.forget_other();
}

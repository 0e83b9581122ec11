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
use super::deferred::{apply_effects_elsewhere, await_message};
use super::ending::end_sources;
use super::reader::Reader;
use super::recipient::Recipient;
use super::weak_address::WeakAddress;
use crate::error::End;
use crate::mailbox::{Batch, Flags, Mailbox, TakenMessage};
use crate::runtime::context;
use crate::sync::UnsafeCell;
use crate::task::TaskInfo;
use crate::task::run::{self, CurrentRun};

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
    fn in_run<R>(
        &mut self,
        f: impl FnOnce(CoreRef<'_, M>, &mut Reader<M>, &CurrentRun) -> R,
    ) -> Option<R> {
        let core = self.core.at();
        run::with_own(core.as_run(), |run| {
            // SAFETY: (RUN-3) the run's reader is the reader of this cell, and so has this type.
            let reader = unsafe { run.reader().cast::<UnsafeCell<Reader<M>>>().as_ref() };
            // SAFETY: (CONTEXT-1) this is the one context, borrowed during the call.
            reader.with_mut(|reader| f(core, unsafe { &mut *reader }, run))
        })
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
#[inline]
pub(super) fn end_wait<M>(core: CoreRef<'_, M>, reader: &mut Reader<M>) {
    if reader.take_waits() && core.stop_receiving() {
        wait_no_more(core, reader);
    }
}

#[cold]
#[inline(never)]
fn wait_no_more<M>(core: CoreRef<'_, M>, reader: &mut Reader<M>) {
    core.mailbox.wait_no_more();
    reader.forget_other();
}

impl<M> Context<M> {
    #[inline]
    fn poll_recv(&mut self, waker: &Waker) -> Poll<Option<M>> {
        // A large message stays in its batch while the steps return. So it is copied once.
        let polled = match TakenMessage::<M>::IS_LARGE {
            true => self
                .poll_in_run(waker, Mailbox::receive_of_batch)
                .map(|polled| polled.map(|taken| taken.map(TakenMessage::read))),
            false => self.poll_in_run(waker, |mailbox, batch| Some(mailbox.receive(batch))),
        };
        polled.unwrap_or_else(|| self.poll_recv_anyhow(waker))
    }

    /// Polls in the usual case: in the actor's own run, without sources, and within a batch.
    ///
    /// Returns `None` in every other case, before a message was taken: then `poll_recv_anyhow` does
    /// all of it. `receive` returns `None` if there is news that does not come in a batch.
    #[inline(always)]
    fn poll_in_run<T>(
        &mut self,
        waker: &Waker,
        receive: impl FnOnce(&Mailbox<M>, &mut Batch<M>) -> Option<Poll<Option<T>>>,
    ) -> Option<Poll<Option<T>>> {
        let polled = self.in_run(|core, reader, run| {
            if !run.may_handle() || reader.has_sources() {
                return None;
            }
            match reader.receive_alone(|batch| receive(&core.mailbox, batch))? {
                Poll::Ready(Some(message)) => {
                    run.spend();
                    end_wait(core, reader);
                    Some(Poll::Ready(Some(message)))
                }
                // The end of the turn makes the actor dormant and receiving in one step.
                Poll::Pending if core.is_own(waker) => {
                    run.note(run::RECEIVING);
                    reader.set_waits();
                    Some(Poll::Pending)
                }
                Poll::Ready(None) if core.mailbox.state.termination().is_none() => {
                    end_wait(core, reader);
                    Some(Poll::Ready(None))
                }
                // Polled with another waker, or terminated: `poll_recv_anyhow` decides.
                Poll::Pending | Poll::Ready(None) => None,
            }
        });
        polled.flatten()
    }

    /// Polls in every other case: outside the actor's run, with sources, or at the end of a batch.
    #[cold]
    #[inline(never)]
    fn poll_recv_anyhow(&mut self, waker: &Waker) -> Poll<Option<M>> {
        let polled = self.poll_recv_fully(waker);
        if polled.is_ready() {
            self.parts().1.forget_other();
        }
        polled
    }

    fn poll_recv_fully(&mut self, waker: &Waker) -> Poll<Option<M>> {
        self.close_sources_if_closed();
        if self.core.at().is_terminated() {
            return self.poll_terminated(waker);
        }
        self.lose_if_stopped_now();
        // In a simulation the earlier actions of a turn take effect before the turn sees newer
        // messages. A poll in the actor's own task ends the turn for that; any other applies them.
        let mut is_over = self.core.header.is_traced() && context::has_effects();
        if is_over && !self.core.at().is_own(waker) {
            context::apply_effects();
            is_over = false;
        }
        if is_over || run::is_spent(context::is_alone) {
            waker.wake_by_ref();
            return Poll::Pending;
        }
        let mut message = None;
        if (self.parts().1.sources()).is_some_and(|sources| sources.take_turn()) {
            message = self.poll_sources(Some(waker));
        }
        loop {
            if message.is_none() {
                let (core, reader) = self.parts();
                match reader.receive(&core.mailbox) {
                    Poll::Ready(Some(received)) => {
                        core.received(&received);
                        message = Some(received);
                    }
                    Poll::Ready(None) => return self.poll_closed(waker),
                    Poll::Pending => message = self.poll_sources(Some(waker)),
                }
            }
            let (core, reader) = self.parts();
            if message.is_some() {
                run::spend();
                end_wait(core, reader);
                return Poll::Ready(message);
            }
            if core.receive_in_run(waker) || core.mailbox.wait(reader.waker_or(waker)) {
                if core.header.is_traced() {
                    await_message();
                }
                reader.set_waits();
                return Poll::Pending;
            }
        }
    }

    /// Receives the results of the children, then `None`.
    fn poll_closed(&mut self, waker: &Waker) -> Poll<Option<M>> {
        self.close_sources();
        let (core, reader) = self.parts();
        end_wait(core, reader);
        // A termination may have dropped messages, so `None` would be wrong.
        if core.mailbox.state.termination().is_some() {
            return self.poll_terminated(waker);
        }
        if !reader.has_sources() {
            return Poll::Ready(None);
        }
        self.end_children();
        let message = self.poll_sources(Some(waker));
        let (core, reader) = self.parts();
        if message.is_some() || !reader.has_sources() {
            run::spend();
            return Poll::Ready(message);
        }
        if core.header.is_traced() {
            await_message();
        }
        // The actor itself is woken by a kill in any case.
        if !core.is_own(waker) {
            if !core.mailbox.wait_for_termination(reader.waker_or(waker)) {
                return self.poll_terminated(waker);
            }
            reader.set_waits();
        }
        Poll::Pending
    }

    /// Stays pending in the actor's own run, at whose end a killed or cancelled actor is dropped.
    /// Elsewhere it returns `None`.
    fn poll_terminated(&mut self, waker: &Waker) -> Poll<Option<M>> {
        self.give_up();
        if self.core.at().receive_in_run(waker) {
            Poll::Pending
        } else {
            Poll::Ready(None)
        }
    }
}

//! The next message of a context as a future, and all messages as a stream; how both are polled.
//!
//! When the future of `recv` ends or is dropped, nothing wakes its task for the actor any more.

use futures_core::Stream;
use std::future::Future;
use std::panic::UnwindSafe;
use std::pin::Pin;
use std::task::{Poll, Waker};

use super::{Context, end_wait};
use crate::actor::deferred::await_message;
use crate::mailbox::{Batch, Mailbox, TakenMessage};
use crate::runtime::context;
use crate::task::run;

/// The future of [`Context::recv`].
pub struct Recv<'a, M> {
    pub(super) context: &'a mut Context<M>,
}

// As for `CoreArc`; a source that panics is dropped.
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
        end_wait(core, reader);
    }
}

/// A stream of the messages, which ends when [`recv`](Context::recv) returns `None`.
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
        // The last poll of the stream may have left a wait in the mailbox, without a note here. The
        // note lets this poll end that wait. It is cleared again while the stream is pending, so
        // that dropping an unpolled `recv` does not end the stream's wait.
        self.parts().1.set_waits();
        let polled = self.poll_recv(cx.waker());
        if polled.is_pending() {
            self.parts().1.take_waits();
        }
        polled
    }
}

impl<M> Context<M> {
    #[inline]
    fn poll_recv(&mut self, waker: &Waker) -> Poll<Option<M>> {
        // A large message stays in its batch while the steps return. So it is copied once.
        let polled = match TakenMessage::<M>::IS_LARGE {
            true => self
                .poll_in_turn(waker, Mailbox::receive_of_batch)
                .map(|polled| polled.map(|taken| taken.map(TakenMessage::read))),
            false => self.poll_in_turn(waker, |mailbox, batch| Some(mailbox.receive(batch))),
        };
        polled.unwrap_or_else(|| self.poll_recv_anyhow(waker))
    }

    /// Polls in the usual case: in the actor's own run, without sources, and within a batch.
    ///
    /// Returns `None` in every other case, before a message was taken: then `poll_recv_anyhow` does
    /// all of it. `receive` returns `None` if there is news that does not come in a batch.
    #[inline(always)]
    fn poll_in_turn<T>(
        &mut self,
        waker: &Waker,
        receive: impl FnOnce(&Mailbox<M>, &mut Batch<M>) -> Option<Poll<Option<T>>>,
    ) -> Option<Poll<Option<T>>> {
        let polled = self.in_turn(|core, reader, run| {
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
        let mut is_over = self.core.header.is_traced() && {
            self.core.at().handled();
            context::has_effects()
        };
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
            if core.receive_in_turn(waker) || core.mailbox.wait(reader.waker_or(waker)) {
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
    pub(super) fn poll_terminated(&mut self, waker: &Waker) -> Poll<Option<M>> {
        self.give_up();
        if self.core.at().receive_in_turn(waker) {
            Poll::Pending
        } else {
            Poll::Ready(None)
        }
    }
}

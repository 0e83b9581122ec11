//! The future of `recv`: the next message from the mailbox, or from a source beside it.
//!
//! While it is pending, and only then, a message wakes the actor; so does whatever a source waits
//! for.

use std::fmt;
use std::future::Future;
use std::panic::UnwindSafe;
use std::pin::Pin;
use std::task::{Poll, Waker};

use futures_core::Stream;

use super::context::Context;
use super::core::At;
use super::deferred::{await_message, is_pending, settle};
use super::reader::Reader;
use crate::mailbox::Received;
use crate::runtime::context;
use crate::task::{MessageEvent, run};

/// The future of [`Context::recv`].
#[must_use = "futures do nothing unless polled"]
pub struct Recv<'a, M> {
    context: &'a mut Context<M>,
}

impl<'a, M> Recv<'a, M> {
    pub(super) fn new(context: &'a mut Context<M>) -> Self {
        Recv { context }
    }
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
                Received::Closed if core.mailbox.doom_of().is_none() => {
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
        if self.core.at().is_doomed() {
            return self.poll_doomed(waker);
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
        if self.take_turn() {
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
        match core.mailbox.doom_of() {
            Some(_) => self.poll_doomed(waker),
            None => Poll::Ready(None),
        }
    }

    /// A killed or cancelled actor is dropped when it next suspends, so that is what this does.
    fn poll_doomed(&mut self, waker: &Waker) -> Poll<Option<M>> {
        self.drop_batch();
        if self.core.at().receive_in_run(waker) {
            Poll::Pending
        } else {
            Poll::Ready(None)
        }
    }
}

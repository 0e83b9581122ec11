//! The future of `recv`: the next message from the mailbox, or from a source beside it.
//!
//! While it is pending, and only then, a message wakes the actor; so does whatever a source waits
//! for.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Poll, Waker};

use futures_core::Stream;

use super::context::Context;
use super::core::Core;
use crate::mailbox::Received;
use crate::task::Passage;

/// The future of [`Context::recv`].
#[must_use = "futures do nothing unless polled"]
pub struct Recv<'a, M> {
    context: &'a mut Context<M>,
    waiting: bool,
}

impl<'a, M> Recv<'a, M> {
    pub(super) fn new(context: &'a mut Context<M>) -> Self {
        Recv {
            context,
            waiting: false,
        }
    }
}

impl<M> Future for Recv<'_, M> {
    type Output = Option<M>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Option<M>> {
        let this = &mut *self;
        this.context.poll_recv(cx.waker(), &mut this.waiting)
    }
}

impl<M> Drop for Recv<'_, M> {
    fn drop(&mut self) {
        done(&self.context.core, &mut self.waiting);
    }
}

impl<M> fmt::Debug for Recv<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recv")
            .field("waiting", &self.waiting)
            .finish()
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
        // It may have been left waiting by the last poll, with nobody to say so.
        self.poll_recv(cx.waker(), &mut true)
    }
}

/// Nothing is waited for any more, so the next message need wake nobody.
fn done<M>(core: &Core<M>, waiting: &mut bool) {
    if std::mem::take(waiting) {
        core.stop_receiving();
    }
}

impl<M> Context<M> {
    /// The next message; `waiting` says whether a message wakes somebody for this already.
    fn poll_recv(&mut self, waker: &Waker, waiting: &mut bool) -> Poll<Option<M>> {
        let has_sources = self.has_sources();
        if has_sources {
            self.drop_sources_if_closed();
        }
        let batch = self.core.batch();
        if batch == 0 {
            return self.poll_doomed(waker);
        }
        if self.core.left() == 0 {
            self.core.set_left(batch);
            waker.wake_by_ref();
            return Poll::Pending;
        }
        if has_sources
            && self.take_turn()
            && let Some(message) = self.poll_sources(Some(waker))
        {
            return self.give(message, waiting);
        }
        loop {
            let (core, reader) = self.parts();
            match core.mailbox.receive(&mut reader.batch) {
                Received::Message(message) => {
                    self.core.trace(|| Passage::Received);
                    return self.give(message, waiting);
                }
                Received::Closed => {
                    done(&self.core, waiting);
                    // What it had may have been dropped, so this is no end of messages.
                    if self.core.mailbox.doom_of().is_some() {
                        return self.poll_doomed(waker);
                    }
                    return Poll::Ready(None);
                }
                Received::Empty => {}
            }
            if has_sources && let Some(message) = self.poll_sources(Some(waker)) {
                return self.give(message, waiting);
            }
            if self.core.receive_in_run(waker) || self.core.mailbox.wait(waker) {
                *waiting = true;
                return Poll::Pending;
            }
        }
    }

    fn give(&mut self, message: M, waiting: &mut bool) -> Poll<Option<M>> {
        self.core.set_left(self.core.left().saturating_sub(1));
        done(&self.core, waiting);
        Poll::Ready(Some(message))
    }

    /// A killed or cancelled actor is dropped when it next suspends, so that is what this does.
    fn poll_doomed(&mut self, waker: &Waker) -> Poll<Option<M>> {
        self.drop_batch();
        if self.core.receive_in_run(waker) {
            Poll::Pending
        } else {
            Poll::Ready(None)
        }
    }
}

//! A message on its way into a mailbox, which may have no room yet.
//!
//! While it waits the message is in the line of the mailbox, which takes it when there is room. Through a map a
//! place is waited for instead, since the message is made only then.

use std::fmt;
use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::core::At;
use super::lead::{Lead, PlaceBehindMap};
use crate::error::SendError;
use crate::mailbox::PlaceInLine;
use crate::task::MessageEvent;

/// The future of [`Address::send`](crate::Address::send).
#[must_use = "futures do nothing unless polled"]
pub struct SendFuture<'a, M> {
    lead: Lead<'a, M>,
    message: Option<M>,
    place: Option<PlaceInLine<M>>,
    /// The same where the lead is a map.
    wait: PlaceBehindMap,
}

impl<'a, M> SendFuture<'a, M> {
    pub(super) fn new(lead: Lead<'a, M>, message: M) -> Self {
        SendFuture {
            lead,
            message: Some(message),
            place: None,
            wait: None,
        }
    }

    fn poll_now(
        &mut self,
        core: At<'_, M>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), SendError<M>>> {
        let before = self.place.as_ref().map(PlaceInLine::key);
        let traced = self.message.as_ref().filter(|_| core.header.is_traced());
        let info = traced.map(|message| core.message_info(message));
        let mailbox = &core.mailbox;
        let sent = mailbox.poll_send(&mut self.message, &mut self.place, cx);
        core.trace_send(
            info,
            before,
            self.place.as_ref().map(PlaceInLine::key),
            &sent,
        );
        sent.map_ok(|wake| core.pass_on(wake))
    }
}

// The message is never pinned: it is moved into the mailbox.
impl<M> Unpin for SendFuture<'_, M> {}

// As for `Address`; nothing but its drop is called of the message.
impl<M> UnwindSafe for SendFuture<'_, M> {}
impl<M> RefUnwindSafe for SendFuture<'_, M> {}

impl<M> Future for SendFuture<'_, M> {
    type Output = Result<(), SendError<M>>;

    /// # Panics
    /// If it is polled again after it was ready; in a child of `fork`, if it would wait for the parent's runtime.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        assert!(
            this.message.is_some() || this.place.is_some(),
            "`send` polled after it was ready"
        );
        let polled = match this.lead {
            Lead::Actor(core) if core.header.is_traced() && this.place.is_none() => {
                match core.send_deferred(&mut this.message) {
                    Some(sent) => Poll::Ready(sent),
                    None => this.poll_now(core, cx),
                }
            }
            Lead::Actor(core) => this.poll_now(core, cx),
            Lead::Map(map) => map
                .actor()
                .poll_reserve(&mut this.wait, cx)
                .map(|reserved| {
                    let message = this.message.take().expect("looked at just now");
                    match reserved {
                        Ok(()) => {
                            map.fill(message);
                            Ok(())
                        }
                        Err(_closed) => Err(SendError(message)),
                    }
                }),
        };
        if polled.is_pending() {
            this.lead.checked_process();
        }
        polled
    }
}

impl<M> Drop for SendFuture<'_, M> {
    fn drop(&mut self) {
        if (self.place.is_some() || self.wait.is_some()) && !self.lead.is_here() {
            // A thread of the parent process may have the lock.
            std::mem::forget((self.place.take(), self.wait.take()));
            return;
        }
        match self.lead {
            Lead::Actor(core) => {
                if let Some(place) = self.place.take() {
                    let key = place.key();
                    let given_up = core.mailbox.give_up(place);
                    core.trace(|| match given_up {
                        Some(_) => MessageEvent::GivenUp(key),
                        None => MessageEvent::Accepted(key),
                    });
                    drop(given_up);
                }
            }
            Lead::Map(map) => map.actor().leave_line(self.wait.take()),
        }
    }
}

impl<M> fmt::Debug for SendFuture<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Send")
            .field("to", &self.lead.view().id())
            .finish_non_exhaustive()
    }
}

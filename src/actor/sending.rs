//! The future of `send`: a message that may wait for room in a mailbox.
//!
//! While it waits, the message is in the mailbox's line, and the mailbox takes it when there is
//! room. Through a map only the sender waits, since the message is made after the permit was given.

use std::any::Any;
use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::core::CoreRef;
use super::recipient::RecipientRef;
use crate::error::SendError;
use crate::mailbox::{LineEntry, Refused};
use crate::runtime::deadlock::{WaitListing, WaitsFor};
use crate::runtime::{context, list_wait};
use crate::task::{MessageEvent, run};
use crate::tracer::MessageSender;

/// The future of [`Address::send`](crate::Address::send).
#[must_use = "futures do nothing unless polled"]
pub struct SendFuture<'a, M> {
    recipient: RecipientRef<'a, M>,
    message: Option<M>,
    entry: Option<LineEntry<M>>,
    /// The entry in the line, if the recipient is a map.
    wait: Option<Box<dyn Any + Send + Sync>>,
    /// Its wait, if its runtime detects deadlocks.
    listing: Option<Box<WaitListing>>,
}

impl<'a, M> SendFuture<'a, M> {
    pub(super) fn new(recipient: RecipientRef<'a, M>, message: M) -> Self {
        SendFuture {
            recipient,
            message: Some(message),
            entry: None,
            wait: None,
            listing: None,
        }
    }

    /// Returns the error of the message, which the mailbox refused.
    #[cold]
    #[inline(never)]
    fn refuse(&mut self, why: Refused) -> SendError<M> {
        let message = self.message.take().expect("it was refused");
        self.recipient.send_error(why, message)
    }

    /// Sends the message that `poll` could not send, or waits for room. A refused message stays in
    /// `message`.
    fn poll_actor(
        &mut self,
        core: CoreRef<'_, M>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Refused>> {
        if core.header.is_traced_or_conflates() {
            return match core.header.conflates() {
                true => core.poll_conflating(&mut self.message, &mut self.entry, cx),
                false => self.poll_traced(core, cx),
            };
        }
        let mailbox = &core.mailbox;
        let sent = mailbox.poll_wait(&mut self.message, &mut self.entry, &MessageSender::NONE, cx);
        if let Poll::Ready(Err(Refused::Full)) = sent {
            return Poll::Ready(core.send_displacing(&mut self.message));
        }
        sent.map_ok(|wake| core.pass_on(wake))
    }

    /// Does all that [`poll`](Future::poll) does, but for a message that is accepted at once.
    #[inline(never)]
    fn poll_wait(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SendError<M>>> {
        assert!(
            self.message.is_some() || self.entry.is_some(),
            "`send` polled after it was ready"
        );
        let polled = match self.recipient {
            RecipientRef::Actor(core) => self.poll_actor(core, cx),
            RecipientRef::Map(map) => map
                .poll_reserve(&mut self.wait, cx)
                .map_ok(|()| map.fill(self.message.take().expect("checked above"))),
        };
        // A wait is listed from its first poll to its end, so that deadlocks are found.
        if polled.is_pending() {
            self.recipient.checked_process();
            run::note_wait_for(cx.waker(), WaitsFor::Room, || self.recipient.view().id());
            if self.listing.is_none() {
                self.listing = list_wait(WaitsFor::Room, || self.recipient.view().info());
            }
        } else if self.listing.is_some() {
            self.listing = None;
        }
        polled.map(|sent| sent.map_err(|why| self.refuse(why)))
    }

    /// Sends the message, or waits for room, and reports it.
    #[cold]
    #[inline(never)]
    fn poll_traced(
        &mut self,
        core: CoreRef<'_, M>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Refused>> {
        if self.entry.is_none()
            && let Some(sent) = core.send_deferred(&mut self.message)
        {
            return Poll::Ready(sent);
        }
        let before = self.entry.as_ref().map(LineEntry::key);
        let message = self.message.as_ref();
        let info = message.and_then(|message| core.info_if_simulated(message));
        // Traced before a receiver can have it.
        let open = message.filter(|_| !core.is_closed());
        let from = open.and_then(|message| core.sent(message));
        let from = from.unwrap_or_default();
        let mailbox = &core.mailbox;
        let mut sent = mailbox.poll_send(&mut self.message, &mut self.entry, &from, cx);
        let mut displaced = None;
        if let Poll::Ready(Err(Refused::Full)) = sent {
            let displacing = mailbox.send_displacing(&mut self.message, &from);
            sent = Poll::Ready(displacing.map(|(wake, oldest)| {
                displaced = oldest;
                wake
            }));
            core.trace_displaced(displaced.as_ref(), false);
        }
        core.trace_send(info, before, self.entry.as_ref().map(LineEntry::key), &sent);
        let sent = sent.map_ok(|wake| core.pass_on(wake));
        core.give_displaced(displaced);
        sent
    }
}

// The message is never pinned, since it moves into the mailbox.
impl<M> Unpin for SendFuture<'_, M> {}

// As for `Address`. The only user code called on the message is its drop.
impl<M> UnwindSafe for SendFuture<'_, M> {}
impl<M> RefUnwindSafe for SendFuture<'_, M> {}

impl<M> Future for SendFuture<'_, M> {
    type Output = Result<(), SendError<M>>;

    /// Sends the message, or waits for room.
    ///
    /// # Panics
    /// If it is polled again after completion.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let RecipientRef::Actor(core) = this.recipient
            && this.message.is_some()
            && !core.header.is_traced_or_conflates()
        {
            // By itself: a wait needs registers that would have to be saved here.
            let mailbox = &core.mailbox;
            match mailbox.send_now(&mut this.message, &MessageSender::NONE) {
                Poll::Ready(Ok(wake)) => {
                    core.pass_on(wake);
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(Err(why)) => return Poll::Ready(Err(this.refuse(why))),
                Poll::Pending => {}
            }
        }
        this.poll_wait(cx)
    }
}

impl<M> Drop for SendFuture<'_, M> {
    fn drop(&mut self) {
        if (self.entry.is_some() || self.wait.is_some()) && !self.recipient.is_here() {
            // A thread of the parent process may have held the lock at the fork.
            std::mem::forget((self.entry.take(), self.wait.take()));
            return;
        }
        match self.recipient {
            RecipientRef::Actor(core) => {
                if let Some(entry) = self.entry.take() {
                    if core.header.conflates() {
                        return core.leave_line::<false>(entry);
                    }
                    context::apply_effects();
                    let key = entry.key();
                    let given_up = core.mailbox.give_up(entry);
                    core.trace(|| match given_up {
                        Some(_) => MessageEvent::GivenUp(key),
                        None => MessageEvent::Accepted(key),
                    });
                    drop(given_up);
                }
            }
            RecipientRef::Map(map) => map.actor().leave_line(self.wait.take()),
        }
    }
}

//! What a machine needs of a context to handle messages again that it has received.

use std::collections::VecDeque;
use std::task::{Poll, Waker};

use super::Context;
use crate::runtime::context;
use crate::task::run;
use crate::tracer::MessageSender;

impl<M> Context<M> {
    /// Waits until the actor may handle a message again, which counts like a received one. Returns
    /// false where `recv` would return `None` to an actor that was killed or stopped at once.
    pub(crate) fn poll_turn(&mut self, waker: &Waker) -> Poll<bool> {
        if self.core.at().is_terminated() {
            return self.poll_terminated(waker).map(|_| false);
        }
        if self.is_stopped_now() {
            return Poll::Ready(false);
        }
        if run::is_spent(context::is_alone) {
            waker.wake_by_ref();
            return Poll::Pending;
        }
        if self.core.header.is_traced() {
            self.core.at().handled();
        }
        run::spend();
        Poll::Ready(true)
    }

    /// Returns whether a tracer traces the actor.
    pub(crate) fn is_traced(&self) -> bool {
        self.core().mailbox.is_traced()
    }

    /// Returns the sender of the message that is handled now, for a trace.
    #[inline]
    pub(crate) fn last_sender(&self) -> MessageSender {
        self.core().mailbox.last_sender()
    }

    /// Sets the sender of the message that is handled again now, for a trace.
    pub(crate) fn handles_again(&self, message: &M, from: MessageSender) {
        self.core.at().handles(message, &from.span);
        self.core().mailbox.set_last_sender(from);
    }

    /// Puts messages that were received back, in front of all others, with their senders if the
    /// mailbox is traced.
    #[cold]
    pub(crate) fn put_back(&mut self, messages: VecDeque<M>, senders: VecDeque<MessageSender>) {
        let (core, reader) = self.parts();
        reader.put_front(messages);
        core.mailbox.put_senders_back(senders.into_iter().rev());
    }
}

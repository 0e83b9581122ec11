//! What a machine needs of a context to handle messages again that it has received.

use std::task::{Poll, Waker};

use super::Context;
use crate::runtime::context;
use crate::task::run;

impl<M> Context<M> {
    /// Waits until the actor may handle a message again, which counts like a received one. Returns
    /// false where `recv` would return `None` to a killed actor.
    pub(crate) fn poll_turn(&mut self, waker: &Waker) -> Poll<bool> {
        if self.core.at().is_terminated() {
            return self.poll_terminated(waker).map(|_| false);
        }
        if run::is_spent(context::is_alone) {
            waker.wake_by_ref();
            return Poll::Pending;
        }
        run::spend();
        Poll::Ready(true)
    }

    /// Puts messages that were received back, in front of all others.
    #[cold]
    pub(crate) fn put_back(&mut self, messages: impl IntoIterator<Item = M>) {
        let (core, reader) = self.parts();
        let mut count = 0;
        reader.put_front(messages.into_iter().inspect(|_| count += 1));
        core.mailbox.forget_senders(count);
    }
}

//! What a mailbox keeps for a tracer of the user: the sender of each message, in the same order.
//!
//! A sender is noted in the critical section that puts its message into the queue. So the senders
//! are those of the messages that the reader has taken, and then those of the queue. A mailbox that
//! is not traced has none. A sender may have a span, whose drop is code of others, so a sender is
//! dropped outside of the lock.

use std::mem;

use super::contents::{Contents, Mailbox};
use super::extras::{Hooks, LabelFn};
use super::queue::Batch;
use super::state::Flags;
use crate::tracer::MessageSender;

/// Stands for a source of the actor, instead of a sender.
pub(crate) const SOURCE: u64 = u64::MAX;

impl<M> Mailbox<M> {
    /// Begins to note the senders. The mailbox was not shared yet.
    #[cold]
    pub(crate) fn trace(&self) {
        self.lock_hooks(|flags, _| flags.set(Flags::TRACED));
    }

    /// Returns whether a tracer of the user traces the messages.
    pub(crate) fn is_traced(&self) -> bool {
        self.state.peek().has(Flags::TRACED)
    }

    /// Takes the sender of the message that is received.
    pub(crate) fn take_sender(&self) -> MessageSender {
        // The one before it is dropped outside of the lock, since it may have a span.
        let mut last = MessageSender::NONE;
        self.lock_hooks(|_, hooks| {
            let traced = &mut hooks.traced;
            let sender = traced.senders.pop_front().unwrap_or_default();
            last = mem::replace(&mut traced.last, sender);
            traced.last.clone()
        })
    }

    /// Sets the sender of the message that is handled now, if the mailbox is traced.
    pub(crate) fn set_last_sender(&self, mut from: MessageSender) {
        if self.is_traced() {
            self.lock_hooks(|_, hooks| mem::swap(&mut hooks.traced.last, &mut from));
        }
    }

    /// Returns the sender of the message that is handled now, or none if the mailbox is not traced.
    pub(crate) fn last_sender(&self) -> MessageSender {
        match self.is_traced() {
            true => self.lock_hooks(|_, hooks| hooks.traced.last.clone()),
            false => MessageSender::NONE,
        }
    }

    /// Notes the senders of messages that were put in front of all others, newest first.
    #[cold]
    pub(crate) fn put_senders_back(&self, senders: impl Iterator<Item = MessageSender>) {
        if self.is_traced() {
            let mut back = Some(senders);
            self.lock_hooks(|_, hooks| {
                let senders = back.take().into_iter().flatten();
                senders.for_each(|from| hooks.traced.senders.push_front(from));
            });
        }
    }

    /// Takes the senders of a batch that is lost: of the oldest messages if the reader had `taken`
    /// it, or else of the newest.
    pub(crate) fn take_senders(&self, batch: &Batch<M>, taken: bool) -> Vec<MessageSender> {
        let len = batch.len();
        self.lock_hooks(|_, hooks| {
            let senders = &mut hooks.traced.senders;
            let len = len.min(senders.len());
            match taken {
                true => senders.drain(..len).collect(),
                false => senders.drain(senders.len() - len..).collect(),
            }
        })
    }

    /// Sets the name of the actor's state, which may be empty for none, if the mailbox is traced.
    pub(crate) fn trace_state_name(&self, name: &'static str) {
        if self.is_traced() {
            self.set_state_name(name);
        }
    }

    /// Sets the name of the actor's state.
    pub(crate) fn set_state_name(&self, name: &'static str) {
        let state = (!name.is_empty()).then_some(name);
        self.lock_hooks(|_, hooks| hooks.traced.state = state);
    }

    /// Returns the name of the actor's state, if it was set.
    pub(crate) fn state_name(&self) -> Option<&'static str> {
        self.lock(|_, contents| contents.hooks()?.traced.state)
    }

    /// Records that the end of the actor was traced.
    pub(crate) fn end_trace(&self) {
        self.lock_hooks(|_, hooks| hooks.traced.is_over = true);
    }

    /// Returns whether the end of the actor was traced.
    pub(crate) fn is_trace_over(&self) -> bool {
        self.lock_hooks(|_, hooks| hooks.traced.is_over)
    }

    /// Sets the function that names a message in a trace. The mailbox was not shared yet.
    #[cold]
    pub(crate) fn set_label(&self, label: LabelFn<M>) {
        self.lock_hooks(|_, hooks| hooks.label = Some(label));
    }

    /// Returns the function that names a message in a trace, if that was set.
    pub(crate) fn label(&self) -> Option<LabelFn<M>> {
        self.lock(|_, contents| contents.hooks()?.label)
    }
}

impl<M> Contents<M> {
    /// Notes the sender of the message that was put into the queue.
    #[cold]
    pub(super) fn note_sender(&mut self, from: &MessageSender) {
        if let Some(extras) = self.extras() {
            note_sender(&mut extras.hooks, from);
        }
    }
}

/// Does the same, given the hooks.
pub(super) fn note_sender<M>(hooks: &mut Option<Box<Hooks<M>>>, from: &MessageSender) {
    if let Some(hooks) = hooks {
        hooks.traced.senders.push_back(from.clone());
    }
}

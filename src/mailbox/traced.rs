//! What a mailbox keeps for a tracer of the user: the sender of each message, in the same order.
//!
//! A sender is noted in the critical section that puts its message into the queue. So the senders
//! are those of the messages that the reader has taken, and then those of the queue. A mailbox that
//! is not traced has none.

use super::contents::{Contents, Mailbox};
use super::hooks::{Hooks, Label};
use super::queue::Batch;
use super::state::Flags;

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
    pub(crate) fn take_sender(&self) -> u64 {
        let sender = self.lock(|_, contents| contents.hooks()?.traced.senders.pop_front());
        sender.unwrap_or(0)
    }

    /// Notes that messages whose senders are not known any more are in front of all others.
    #[cold]
    pub(crate) fn forget_senders(&self, messages: usize) {
        if self.is_traced() {
            self.lock_hooks(|_, hooks| {
                let senders = &mut hooks.traced.senders;
                (0..messages).for_each(|_| senders.push_front(0));
            });
        }
    }

    /// Takes the senders of a batch that is lost: of the oldest messages if the reader had `taken`
    /// it, or else of the newest.
    pub(crate) fn take_senders(&self, batch: &Batch<M>, taken: bool) -> Vec<u64> {
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

    /// Sets the name of the actor's state, if the mailbox is traced.
    pub(crate) fn set_state_name(&self, name: &'static str) {
        if self.is_traced() {
            self.lock_hooks(|_, hooks| hooks.traced.state = Some(name));
        }
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

    /// Returns the function that names a message in a trace, if that was set.
    pub(crate) fn label(&self) -> Option<Label<M>> {
        self.lock(|_, contents| contents.hooks()?.label)
    }
}

impl<M> Contents<M> {
    /// Notes the sender of the message that was put into the queue.
    #[cold]
    pub(super) fn note_sender(&mut self, from: u64) {
        if let Some(extras) = self.extras() {
            note_sender(&mut extras.hooks, from);
        }
    }
}

/// Does the same, given the hooks.
pub(super) fn note_sender<M>(hooks: &mut Option<Box<Hooks<M>>>, from: u64) {
    if let Some(hooks) = hooks {
        hooks.traced.senders.push_back(from);
    }
}

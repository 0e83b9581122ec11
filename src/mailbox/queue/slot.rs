//! What few mailboxes do with a queue: they replace a message in its slot, or take two queues as one.
//!
//! The invariants are those of [`queue`](super).
#![expect(unsafe_code, reason = "a pointer into a block; see QUEUE-4")]

use std::ptr::NonNull;

use super::{Batch, Block, MessageQueue};

/// The slot of a message in a queue.
pub(in crate::mailbox) struct MessageSlot<M>(NonNull<M>);

// SAFETY: (QUEUE-4) it gives access only to a caller that has the queue.
unsafe impl<M> Send for MessageSlot<M> {}

impl<M> MessageSlot<M> {
    /// Moves a message into the slot, and returns the one that was there.
    ///
    /// # Safety
    /// (QUEUE-4) The message that was put there is still in its queue, of which the caller has the
    /// exclusive use.
    pub(in crate::mailbox) unsafe fn replace(&self, message: &mut Option<M>) -> Option<M> {
        let message = message.take()?;
        // SAFETY: by the caller's promise there is a message.
        Some(unsafe { self.0.replace(message) })
    }
}

impl<M> MessageQueue<M> {
    /// Takes all messages, and behind them those of another queue.
    pub(in crate::mailbox) fn take_before(&mut self, other: &mut Self) -> Batch<M> {
        let last = self.last;
        let (own, others) = (self.take(), other.take());
        let (Some(mut last), Some(first)) = (last, others.first) else {
            return if own.is_empty() { others } else { own };
        };
        // SAFETY: (QUEUE-1) the last block of `own`, to which the others now belong.
        unsafe { last.as_mut() }.next = first;
        std::mem::forget(others);
        own
    }

    /// Returns the slot of the newest message.
    pub(in crate::mailbox) fn newest(&self) -> Option<MessageSlot<M>> {
        let last = self.last?;
        // SAFETY: (QUEUE-1, QUEUE-2) the last block is the queue's and contains a message.
        Some(MessageSlot(unsafe {
            Block::slot(last, last.as_ref().written - 1)
        }))
    }
}

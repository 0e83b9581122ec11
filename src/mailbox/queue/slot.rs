//! The slot of a message in a queue, in which another message can replace it.
//!
//! The invariants are those of [`queue`](super).
#![expect(unsafe_code, reason = "a pointer into a block; see QUEUE-4")]

use std::ptr::NonNull;

use super::{Block, MessageQueue};

/// The slot of a message in a queue.
pub(in crate::mailbox) struct MessageSlot<M>(NonNull<M>);

// SAFETY: (QUEUE-4) it gives access only to a caller that has the queue.
unsafe impl<M: Send> Send for MessageSlot<M> {}

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
    /// Returns the slot of the newest message.
    pub(in crate::mailbox) fn newest(&self) -> Option<MessageSlot<M>> {
        let last = self.last?;
        // SAFETY: (QUEUE-1, QUEUE-2) the last block is the queue's and contains a message.
        Some(MessageSlot(unsafe {
            Block::slot(last, last.as_ref().written - 1)
        }))
    }
}

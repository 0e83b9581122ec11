//! Messages to a late member of a group, which wait until it was told the history.
//!
//! The call that tells the history takes them one by one. Once there is none, there are none any
//! more: a broadcast tells the member its message itself.

use std::collections::VecDeque;

use crate::sync::Mutex;
use crate::waiters::Waiters;

pub(super) struct LateMessages<M> {
    /// What is broadcast to a member while it is told the history; `None` afterwards.
    queue: Mutex<Option<VecDeque<M>>>,
    /// The tasks that wait until it was told the history.
    waits: Waiters,
}

impl<M> LateMessages<M> {
    pub(super) fn new() -> Self {
        LateMessages {
            queue: Mutex::new(Some(VecDeque::new())),
            waits: Waiters::new(),
        }
    }

    /// Queues a message, if fewer than `room` are in the queue.
    ///
    /// # Errors
    /// The message, and whether it is to be told now, since the member was told the history.
    pub(super) fn push(&self, message: M, room: usize) -> Result<(), (M, bool)> {
        match &mut *self.queue.lock() {
            Some(queue) if queue.len() >= room => Err((message, false)),
            Some(queue) => {
                queue.push_back(message);
                Ok(())
            }
            None => Err((message, true)),
        }
    }

    /// Returns the next message, or none from then on.
    pub(super) fn pop(&self) -> Option<M> {
        let mut queue = self.queue.lock();
        let next = queue.as_mut()?.pop_front();
        if next.is_none() {
            *queue = None;
            drop(queue);
            self.waits.wake_all();
        }
        next
    }

    /// Waits until the member was told the history, and what has come meanwhile.
    pub(super) async fn until_told(&self) {
        self.waits.until(|| self.queue.lock().is_none()).await;
    }
}

//! The queue of urgent messages, with its room, its line and its permits.

use std::collections::VecDeque;

use super::bound::Bound;
use super::line::Line;
use super::queue::MessageQueue;
use crate::tracer::MessageSender;

/// How many urgent messages the actor receives in a row by default, while plain ones wait. A control
/// message is rare, and a flood of them still leaves one message of 17 to the others.
pub(super) const IN_A_ROW: u32 = 16;

pub(super) struct UrgentQueue<M> {
    pub(super) queue: MessageQueue<M>,
    pub(super) bound: Bound<M>,
    /// The number of permits, which are not used yet.
    pub(super) reserved: usize,
    /// How many urgent messages may come before a plain one that waits.
    pub(super) left_in_row: u32,
    pub(super) in_a_row: u32,
    /// Whether the last message that was received was urgent.
    pub(super) was_received: bool,
    /// The senders of the messages, if the mailbox is traced.
    pub(super) senders: VecDeque<MessageSender>,
}

impl<M> UrgentQueue<M> {
    /// Creates a queue of this capacity. `in_a_row` is the maximum number of its messages in a row.
    pub(super) fn new(capacity: usize, in_a_row: u32) -> Self {
        UrgentQueue {
            queue: MessageQueue::EMPTY,
            bound: Bound {
                capacity,
                len: 0,
                line: Line::new(),
            },
            reserved: 0,
            left_in_row: in_a_row,
            in_a_row,
            was_received: false,
            senders: VecDeque::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }
}

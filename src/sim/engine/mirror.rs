//! The mirror of a mailbox: the messages in flight to one actor.
//!
//! The mailbox does not know of it. The mirror has the same messages in the same order.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::trace::TracedMessage;
use crate::runtime::deadlock::Who;
use crate::task::TaskInfo;

/// The messages in flight to one actor.
pub(super) struct MailboxMirror {
    pub(super) to: TaskInfo,
    /// The messages in the mailbox.
    pub(super) accepted: VecDeque<SentMessage>,
    /// The position of the next accepted message, if it is not the last one.
    replaced: Option<usize>,
    /// The messages that wait for room, in order of arrival. Some may have been accepted unnoticed.
    pub(super) line: BTreeMap<u64, SentMessage>,
    /// The number of the message that waits with each key.
    pub(super) keys: HashMap<usize, u64>,
}

#[derive(Clone)]
pub(super) struct SentMessage {
    pub(super) message: TracedMessage,
    pub(super) from: Who,
    /// The key of its wait, if it has waited for room.
    pub(super) key: Option<usize>,
}

impl MailboxMirror {
    pub(super) fn new(to: TaskInfo) -> Self {
        MailboxMirror {
            to,
            accepted: VecDeque::new(),
            replaced: None,
            line: BTreeMap::new(),
            keys: HashMap::new(),
        }
    }

    /// Lets the first waiting message in if a message is received and none is accepted; returns how
    /// many.
    pub(super) fn let_first_in(&mut self) -> usize {
        match self.line.first_key_value() {
            Some((&first, _)) if self.accepted.is_empty() => self.let_in(first),
            _ => 0,
        }
    }

    /// Moves all messages up to this number to the accepted ones; returns how many.
    pub(super) fn let_in(&mut self, number: u64) -> usize {
        let before = self.line.len();
        while let Some(first) = self.line.first_entry()
            && *first.key() <= number
        {
            let sent = first.remove();
            if let Some(key) = sent.key {
                self.keys.remove(&key);
            }
            self.accepted.push_back(sent);
        }
        before - self.line.len()
    }

    /// Removes the waiting message with this key, which was not accepted; returns how many that
    /// are.
    pub(super) fn leave(&mut self, key: usize) -> usize {
        let number = self.keys.remove(&key);
        let left = number.and_then(|number| self.line.remove(&number));
        usize::from(left.is_some())
    }

    /// Adds an accepted message.
    pub(super) fn accept(&mut self, sent: SentMessage) {
        let index = self.replaced.take().unwrap_or(self.accepted.len());
        self.accepted.insert(index, sent);
    }

    /// Removes the accepted message with this number of newer ones. If it `is_replaced`, the next one
    /// has its position.
    pub(super) fn displace(&mut self, newer: usize, is_replaced: bool) -> Option<SentMessage> {
        let index = self.accepted.len().checked_sub(newer + 1)?;
        self.replaced = is_replaced.then_some(index);
        self.accepted.remove(index)
    }

    /// Returns whether the message with this number is unread: in the mailbox, or waiting for room
    /// there.
    pub(super) fn has(&self, number: u64) -> bool {
        let mut sent = self.accepted.iter().chain(self.line.values());
        sent.any(|sent| sent.message.number == number)
    }

    /// Returns how many messages wait for room.
    pub(super) fn waiting(&self) -> usize {
        self.line.len()
    }
}

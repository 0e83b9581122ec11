//! The messages on their way to one actor.
//!
//! A lane goes beside a mailbox, which knows nothing of it: the same messages in the same order.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::trace::TracedMessage;
use crate::runtime::deadlock::Who;
use crate::task::TaskInfo;

/// What is on its way to one actor.
pub(super) struct Lane {
    pub(super) to: TaskInfo,
    /// In its mailbox.
    pub(super) accepted: VecDeque<Sent>,
    /// Waiting for room in it, in order of arrival. Whoever has got it has not always noticed.
    pub(super) line: BTreeMap<u64, Sent>,
    /// Which of them has this key.
    pub(super) keys: HashMap<usize, u64>,
}

#[derive(Clone)]
pub(super) struct Sent {
    pub(super) message: TracedMessage,
    pub(super) from: Who,
    /// If it has waited: the key of its place.
    pub(super) key: Option<usize>,
}

impl Lane {
    pub(super) fn new(to: TaskInfo) -> Self {
        Lane {
            to,
            accepted: VecDeque::new(),
            line: BTreeMap::new(),
            keys: HashMap::new(),
        }
    }

    /// If none is accepted but is received, the first that waits was let in; says how many.
    pub(super) fn let_first_in(&mut self) -> usize {
        match self.line.first_key_value() {
            Some((&first, _)) if self.accepted.is_empty() => self.let_in(first),
            _ => 0,
        }
    }

    /// All up to the one of this number were accepted; says how many.
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

    /// The one with this key waits no more, and was not accepted; says how many that is.
    pub(super) fn leave(&mut self, key: usize) -> usize {
        let number = self.keys.remove(&key);
        let left = number.and_then(|number| self.line.remove(&number));
        usize::from(left.is_some())
    }

    /// Returns whether the message of this number is unread: in the mailbox, or waiting for room there.
    pub(super) fn has(&self, number: u64) -> bool {
        let mut sent = self.accepted.iter().chain(self.line.values());
        sent.any(|sent| sent.message.number == number)
    }

    /// How many wait for room.
    pub(super) fn waiting(&self) -> usize {
        self.line.len()
    }
}

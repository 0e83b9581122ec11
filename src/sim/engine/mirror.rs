//! The mirror of a mailbox: the messages in flight to one actor.
//!
//! The mailbox does not know of it. The mirror has the same messages in the same order.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::trace::{TracedMessage, What};
use crate::runtime::deadlock::Who;
use crate::task::{MessageEvent, TaskInfo};

/// Returns the number of the mirror of an actor's urgent messages. The ids of actors are smaller.
pub(super) fn urgent_mirror(actor: u64) -> u64 {
    actor | 1 << 63
}

/// The messages in flight to one actor, or the urgent ones among them.
pub(super) struct MailboxMirror {
    pub(super) to: TaskInfo,
    /// The messages in the mailbox.
    accepted: VecDeque<SentMessage>,
    /// The position of the next accepted message, if it is not the last one.
    replaced: Option<usize>,
    /// The messages that wait for room, in order of arrival. Some may have been accepted unnoticed.
    line: BTreeMap<u64, SentMessage>,
    /// Those that wait for a permit, with which they are sent.
    permits: BTreeMap<u64, SentMessage>,
    /// The number of the message that waits with each key.
    keys: HashMap<usize, u64>,
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
            permits: BTreeMap::new(),
            keys: HashMap::new(),
        }
    }

    /// Adds a message that waits for room or for a permit, and has a key.
    pub(super) fn wait(&mut self, sent: SentMessage, for_permit: bool) -> TracedMessage {
        let message = sent.message.clone();
        self.keys.extend(sent.key.map(|key| (key, message.number)));
        match for_permit {
            true => self.permits.insert(message.number, sent),
            false => self.line.insert(message.number, sent),
        };
        message
    }

    /// Follows what becomes of a message that was sent, or waits. Returns how many do not wait any
    /// more, and what the trace shows.
    pub(super) fn follow(&mut self, event: MessageEvent, to: Who) -> (usize, Option<What>) {
        match event {
            // The line is first in, first out, so all messages before it were accepted, too.
            MessageEvent::Accepted(key) => match self.keys.get(&key) {
                Some(&number) => (self.let_in(number), None),
                None => (0, None),
            },
            MessageEvent::HasPermit(key) => (self.leave(key), None),
            MessageEvent::GivenUp(key) => (self.leave(key), Some(What::GivesUp(to))),
            MessageEvent::Received => {
                let waited = self.let_first_in();
                let received = self.accepted.pop_front();
                (
                    waited,
                    received.map(|sent| What::Receives(sent.message, sent.from)),
                )
            }
            MessageEvent::Displaced { newer, is_replaced } => {
                let displaced = self.displace(newer, is_replaced);
                (0, displaced.map(|sent| What::Displaces(sent.message, to)))
            }
            _ => (0, None),
        }
    }

    /// Lets all waiting messages in when another one is sent; returns how many. While a sender waits,
    /// no message is accepted but one that replaces another. So all waiting ones were.
    pub(super) fn let_all_in(&mut self) -> usize {
        match self.replaced {
            Some(_) => 0,
            None => self.let_in(u64::MAX),
        }
    }

    /// Lets the first waiting message in if a message is received and none is accepted; returns how
    /// many.
    fn let_first_in(&mut self) -> usize {
        match self.line.first_key_value() {
            Some((&first, _)) if self.accepted.is_empty() => self.let_in(first),
            _ => 0,
        }
    }

    /// Moves all messages up to this number to the accepted ones; returns how many.
    fn let_in(&mut self, number: u64) -> usize {
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
    fn leave(&mut self, key: usize) -> usize {
        let number = self.keys.remove(&key);
        let left = number.and_then(|number| {
            (self.permits.remove(&number)).or_else(|| self.line.remove(&number))
        });
        usize::from(left.is_some())
    }

    /// Adds an accepted message.
    pub(super) fn accept(&mut self, sent: SentMessage) {
        let index = self.replaced.take().unwrap_or(self.accepted.len());
        self.accepted.insert(index, sent);
    }

    /// Removes the accepted message with this number of newer ones. If it `is_replaced`, the next one
    /// has its position.
    fn displace(&mut self, newer: usize, is_replaced: bool) -> Option<SentMessage> {
        let index = self.accepted.len().checked_sub(newer + 1)?;
        self.replaced = is_replaced.then_some(index);
        self.accepted.remove(index)
    }

    /// Returns whether the message with this number is unread: in the mailbox, or waiting for room
    /// there.
    pub(super) fn has(&self, number: u64) -> bool {
        let waiting = self.all_waiting().map(|(_, sent)| sent);
        let mut sent = self.accepted.iter().chain(waiting);
        sent.any(|sent| sent.message.number == number)
    }

    /// Returns how many messages wait for room.
    pub(super) fn waiting(&self) -> usize {
        self.line.len() + self.permits.len()
    }

    /// Returns the messages that wait, with their numbers.
    pub(super) fn all_waiting(&self) -> impl Iterator<Item = (&u64, &SentMessage)> {
        self.line.iter().chain(&self.permits)
    }
}

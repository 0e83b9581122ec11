//! The last message of each key in a mailbox that conflates.
//!
//! The lock of this table is taken around the critical section that puts a message into the queue.
//! The reader does not use the table: what it has taken is known from the number of messages that
//! were put in and that wait.
//!
//! A key is a hash of 128 bits, under keys of the mailbox that are drawn at random. So no code of the
//! user compares, clones or drops keys here.
//!
//! # Invariants
//! - CONFLATION-1: only a holder of the table's lock puts a message into the queue of a mailbox that
//!   conflates. `accepted` is the number of messages that were ever put there.
//! - CONFLATION-2: the messages that wait have the numbers below `accepted`, in order. So if the
//!   number of an entry is one of these, its message is in the queue, in the slot of the entry.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::queue::MessageSlot;
use crate::sync::Mutex;

/// The key of a message, as a hash.
type KeyFn<M> = Box<dyn Fn(&M) -> u128 + Send + Sync>;

pub(crate) struct Conflation<M> {
    key: KeyFn<M>,
    pub(super) table: Mutex<LastMessages<M>>,
}

/// The last message of each key.
pub(super) struct LastMessages<M> {
    pub(super) entries: HashMap<u128, LastMessage<M>, BuildHasherDefault<HashOfKey>>,
    pub(super) accepted: u64,
    /// From how many entries on those of messages that were taken are removed.
    purge_at: usize,
}

pub(super) struct LastMessage<M> {
    pub(super) number: u64,
    pub(super) slot: MessageSlot<M>,
}

/// The least number of entries at which a table is searched for outdated ones.
const PURGE_MIN: usize = 64;

impl<M> Conflation<M> {
    pub(crate) fn new(key: KeyFn<M>) -> Self {
        let table = LastMessages {
            entries: HashMap::default(),
            accepted: 0,
            purge_at: PURGE_MIN,
        };
        Conflation {
            key,
            table: Mutex::new(table),
        }
    }

    /// Returns the number of keys in the table.
    #[cfg(all(test, not(greenroom_loom)))]
    pub(super) fn entries(&self) -> usize {
        self.table.lock().entries.len()
    }

    /// Returns the key of the message. This calls code of the user, which may panic.
    pub(crate) fn key(&self, message: &M) -> u128 {
        (self.key)(message)
    }
}

impl<M> LastMessages<M> {
    /// Notes the message that was just put behind the others. Those before `oldest` were taken.
    pub(super) fn add(&mut self, key: u128, slot: MessageSlot<M>, oldest: u64) {
        if self.entries.len() >= self.purge_at {
            self.entries.retain(|_, last| last.number >= oldest);
            self.purge_at = PURGE_MIN.max(2 * self.entries.len());
        }
        let number = self.accepted;
        self.entries.insert(key, LastMessage { number, slot });
        self.accepted += 1;
    }
}

/// A part of a key, which is a hash already.
#[derive(Default)]
pub(super) struct HashOfKey(u64);

impl Hasher for HashOfKey {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}

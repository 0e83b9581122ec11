//! Mailboxes that conflate: a message replaces the waiting one of its key, in its position.
//!
//! A table knows the last message of each key. Its lock is taken around the critical section that
//! puts a message into the queue. The reader does not use the table: what it has taken is known from
//! the number of messages that were put in and that wait.
//!
//! A key is a hash of 128 bits, under keys of the mailbox that are drawn at random. So no code of the
//! user compares, clones or drops keys here.
//!
//! # Invariants
//! - CONFLATION-1: only a holder of the table's lock puts a message into the queue of a mailbox that
//!   conflates. `accepted` is the number of messages that were ever put there.
//! - CONFLATION-2: the messages that wait have the numbers below `accepted`, in order. So if the
//!   number of an entry is one of these, its message is in the queue, in the slot of the entry.
#![expect(
    unsafe_code,
    reason = "a message is replaced in its slot; see CONFLATION-2 and QUEUE-4"
)]

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::contents::{Mailbox, Refused};
use super::displacing::{Appended, DisplacedMessage};
use super::queue::{MessageSlot, Spare};
use super::state::{Flags, Wake};
use crate::sync::Mutex;

/// The key of a message, as a hash.
type KeyFn<M> = Box<dyn Fn(&M) -> u128 + Send + Sync>;

pub(crate) struct Conflation<M> {
    key: KeyFn<M>,
    table: Mutex<LastMessages<M>>,
}

/// The last message of each key.
struct LastMessages<M> {
    entries: HashMap<u128, LastMessage<M>, BuildHasherDefault<HashOfKey>>,
    accepted: u64,
    /// From how many entries on those of messages that were taken are removed.
    purge_at: usize,
}

struct LastMessage<M> {
    number: u64,
    slot: MessageSlot<M>,
}

/// The least number of entries at which a table is searched for outdated ones.
const PURGE_MIN: usize = 64;

/// What has become of a message for a mailbox that conflates.
pub(crate) struct Conflated<M> {
    pub(crate) wake: Wake,
    pub(crate) displaced: Option<DisplacedMessage<M>>,
    /// It is in the position of the one that it displaces, and has not used its permit.
    pub(crate) is_in_place: bool,
}

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

    /// Returns the key of the message. This calls code of the user, which may panic.
    pub(crate) fn key(&self, message: &M) -> u128 {
        (self.key)(message)
    }
}

impl<M> Mailbox<M> {
    /// Puts the message, of this key, in the position of the one that waits, or else behind the
    /// others. It has a permit, or needs room.
    ///
    /// `from` is the actor that sends, if the mailbox is traced. A refused message stays in
    /// `message`.
    #[cold]
    pub(crate) fn conflate(
        &self,
        conflation: &Conflation<M>,
        key: u128,
        message: &mut Option<M>,
        has_permit: bool,
        from: u64,
    ) -> Result<Conflated<M>, Refused> {
        let mut spare = Spare::NONE;
        let mut table = conflation.table.lock();
        loop {
            let put = self.lock(|flags, contents| {
                let waiting = contents.waiting();
                let oldest = table.accepted - waiting as u64;
                let last = table.entries.get(&key);
                let Some(last) = last.filter(|last| last.number >= oldest) else {
                    let put = contents.append(flags, message, &mut spare, has_permit, from)?;
                    let slot = contents.queue.newest();
                    return Ok(put.zip(slot).map(|put| Put::Behind(put, oldest)));
                };
                if has_permit && flags.has(Flags::DEAF) || !has_permit && flags.has(Flags::CLOSED) {
                    return Err(Refused::Closed);
                }
                // SAFETY: (CONFLATION-2) the message is in the queue, and waits there.
                let old = unsafe { last.slot.replace(message) };
                let newer = (table.accepted - last.number - 1) as usize;
                Ok(Some(Put::InPlace(
                    old.map(|old| contents.replaced(*flags, old, newer, from)),
                )))
            })?;
            match put {
                None => spare.provide(true),
                Some(Put::InPlace(displaced)) => {
                    return Ok(Conflated {
                        wake: Wake::Nobody,
                        displaced,
                        is_in_place: true,
                    });
                }
                Some(Put::Behind(((wake, displaced), slot), oldest)) => {
                    table.add(key, slot, oldest);
                    return Ok(Conflated {
                        wake,
                        displaced,
                        is_in_place: false,
                    });
                }
            }
        }
    }
}

/// What a critical section has done with a message.
enum Put<M> {
    /// It has replaced this one, so the reader was woken before.
    InPlace(Option<DisplacedMessage<M>>),
    /// It is in this slot. The second number is that of the message that was the oldest.
    Behind((Appended<M>, MessageSlot<M>), u64),
}

impl<M> LastMessages<M> {
    /// Notes the message that was just put behind the others. Those before `oldest` were taken.
    fn add(&mut self, key: u128, slot: MessageSlot<M>, oldest: u64) {
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
struct HashOfKey(u64);

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

//! The waiting jobs of a market: the highest priority first, then the oldest, one for each key.
//!
//! A key is known while a job of it waits or is served. `ready` has each job without a key, and the
//! first job of each known key that is not served; `behind` has all other jobs. So the first entry
//! of `ready` is the next job, and a key has a job in `ready` or is served, never both or neither.
//! A key counts its jobs in `behind`. No number is given twice, so the ticket of a job that is gone
//! is in no map. User code runs only in [`Board::find`], which changes nothing: `K: Eq`. No key and
//! no job is dropped here: each goes back to the caller.

#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::collections::BTreeMap;
use std::mem::replace;

use crate::directory::{HashedKey, KeySlot, Keys};

/// Names a job that waits, or has waited. Tickets are sorted as the jobs are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JobTicket {
    /// What is missing to the highest priority.
    below: u32,
    number: u64,
    slot: Option<KeySlot>,
}

/// The index of a job that is not the first of its key: next to the others of the key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Behind {
    slot: KeySlot,
    below: u32,
    number: u64,
}

impl Behind {
    fn ticket(self) -> JobTicket {
        JobTicket {
            below: self.below,
            number: self.number,
            slot: Some(self.slot),
        }
    }
}

impl JobTicket {
    /// Returns the index of the job among those behind, if it has a key.
    fn behind(self) -> Option<Behind> {
        Some(Behind {
            slot: self.slot?,
            below: self.below,
            number: self.number,
        })
    }
}

/// What is known of a key.
struct KnownKey {
    /// The number of its jobs in `behind`.
    behind: usize,
    /// Its first job, which is in `ready`. `None` while a job of it is served, which is not on the
    /// board any more.
    first: Option<Behind>,
}

pub(super) struct Board<K, J> {
    capacity_per_key: usize,
    keys: Keys<K, KnownKey>,
    ready: BTreeMap<JobTicket, J>,
    behind: BTreeMap<Behind, J>,
    /// How many numbers were given.
    numbers: u64,
}

impl<K: Eq, J> Board<K, J> {
    /// Returns the slot of this key, if there is a key and it is known.
    ///
    /// This compares keys of equal hashes, and so may panic.
    pub(super) fn find(&self, key: &Option<HashedKey<K>>) -> Option<KeySlot> {
        self.keys.find(key.as_ref()?)
    }
}

impl<K, J> Board<K, J> {
    pub(super) fn new(capacity_per_key: usize) -> Self {
        Board {
            capacity_per_key,
            keys: Keys::new(),
            ready: BTreeMap::new(),
            behind: BTreeMap::new(),
            numbers: 0,
        }
    }

    /// Gives a job its number, by which jobs of equal priority are taken.
    pub(super) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Returns the number of jobs that wait.
    pub(super) fn len(&self) -> usize {
        self.ready.len() + self.behind.len()
    }

    /// Returns the number of jobs that could be served now, all at once.
    pub(super) fn runnable(&self) -> usize {
        self.ready.len()
    }

    /// Returns whether a job may join now, whose key was [found](Board::find) so.
    pub(super) fn is_admitted(&self, found: Option<KeySlot>) -> bool {
        let Some(slot) = found else { return true };
        self.keys[slot].behind < self.capacity_per_key
    }

    /// Adds a job, admitted or not, whose key was [found](Board::find) so. It takes the key, unless
    /// the key is known. The number is one that the board has given, for this job alone.
    pub(super) fn add(
        &mut self,
        found: Option<KeySlot>,
        key: &mut Option<HashedKey<K>>,
        number: u64,
        priority: u32,
        job: J,
    ) -> JobTicket {
        let mut ticket = JobTicket {
            below: u32::MAX - priority,
            number,
            slot: found,
        };
        match found {
            Some(slot) => self.join(slot, ticket, job),
            None => {
                ticket.slot = key.take().map(|keyed| self.learn(keyed, ticket));
                self.ready.insert(ticket, job);
            }
        }
        ticket
    }

    /// Takes the next job. Its key is served until [`done`](Board::done).
    pub(super) fn take(&mut self) -> Option<(JobTicket, J)> {
        let (ticket, job) = self.ready.pop_first()?;
        if let Some(slot) = ticket.slot {
            self.keys[slot].first = None;
        }
        Some((ticket, job))
    }

    /// Frees the key of a job that was taken and has ended. Returns the key if no job of it waits.
    #[must_use = "a key is dropped by the caller"]
    pub(super) fn done(&mut self, ticket: JobTicket) -> Option<HashedKey<K>> {
        self.follow(ticket.slot?)
    }

    /// Removes a job that waits. Returns it, and its key if no other job has it.
    pub(super) fn remove(&mut self, ticket: JobTicket) -> Option<(J, Option<HashedKey<K>>)> {
        if let Some(job) = self.ready.remove(&ticket) {
            return Some((job, ticket.slot.and_then(|slot| self.follow(slot))));
        }
        let behind = ticket.behind()?;
        let job = self.behind.remove(&behind)?;
        self.keys[behind.slot].behind -= 1;
        Some((job, None))
    }

    /// Removes all jobs, and all keys that are not served. Visits each of them.
    ///
    /// The jobs that could be served come first, in their order.
    pub(super) fn clear(&mut self) -> (Vec<J>, Vec<HashedKey<K>>) {
        let mut jobs = Vec::with_capacity(self.len());
        // The keys of these jobs must still be known.
        for (behind, job) in std::mem::take(&mut self.behind) {
            self.keys[behind.slot].behind = 0;
            jobs.push(job);
        }
        let others = jobs.len();
        let mut keys = Vec::new();
        for (ticket, job) in std::mem::take(&mut self.ready) {
            keys.extend(ticket.slot.map(|slot| self.keys.remove(slot)));
            jobs.push(job);
        }
        jobs.rotate_left(others);
        (jobs, keys)
    }

    /// Adds a job of a known key.
    fn join(&mut self, slot: KeySlot, ticket: JobTicket, job: J) {
        let known = &mut self.keys[slot];
        known.behind += 1;
        let (mut behind, mut job) = (ticket, job);
        if let Some(first) = known.first.map(Behind::ticket)
            && ticket < first
        {
            // The job overtakes the first one, which goes behind instead of it.
            known.first = ticket.behind();
            let overtaken = self.ready.remove(&first);
            let overtaken = overtaken.expect("the first job of a key is ready");
            self.ready.insert(ticket, replace(&mut job, overtaken));
            behind = first;
        }
        let behind = behind.behind().expect("the job has a key");
        self.behind.insert(behind, job);
    }

    /// Makes a key known, whose first job has this ticket but for the slot.
    fn learn(&mut self, keyed: HashedKey<K>, ticket: JobTicket) -> KeySlot {
        let known = KnownKey {
            behind: 0,
            first: None,
        };
        let slot = self.keys.insert(keyed, known);
        let slotted = JobTicket {
            slot: Some(slot),
            ..ticket
        };
        self.keys[slot].first = slotted.behind();
        slot
    }

    /// Puts the next job of a key to the front, or forgets the key if there is none.
    fn follow(&mut self, slot: KeySlot) -> Option<HashedKey<K>> {
        let known = &mut self.keys[slot];
        if known.behind == 0 {
            return Some(self.keys.remove(slot));
        }
        // The jobs of a key are next to each other, so the next one is the first from here on.
        let first = Behind {
            slot,
            below: 0,
            number: 0,
        };
        let next = self.behind.range(first..).next();
        let next = *next.expect("a key counts its jobs").0;
        let job = self.behind.remove(&next).expect("it was just found");
        known.behind -= 1;
        known.first = Some(next);
        self.ready.insert(next.ticket(), job);
        None
    }
}

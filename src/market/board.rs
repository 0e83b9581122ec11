//! The waiting jobs of a market: the highest priority first, then the oldest, one for each key.
//!
//! A key is known while a job of it waits or is served. `ready` has each job without a key, and the
//! first job of each known key that is not served; `behind` has all other jobs. So the first entry
//! of `ready` is the next job, and a key has a job in `ready` or is served, never both or neither.
//! A key counts its jobs in `behind`. No number is given twice, so the ticket of a job that is gone
//! is in no map. User code runs only in [`Board::seat`], which changes nothing: `K: Eq`. No key and
//! no job is dropped here: each goes back to the caller.

#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::collections::BTreeMap;
use std::mem::replace;

use super::keys::{Keyed, Keys, Slot};

/// How many jobs of one key a market accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPolicy {
    /// One job of a key is in the market, waiting or running.
    One,
    /// So many jobs of a key wait beside the one that runs or would run next.
    Queue(usize),
}

/// Names a job that waits, or has waited. Tickets are sorted as the jobs are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket {
    /// What is missing to the highest priority.
    below: u32,
    number: u64,
    slot: Option<Slot>,
}

/// The place of a job that is not the first of its key: next to the others of the key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Behind {
    slot: Slot,
    below: u32,
    number: u64,
}

impl Behind {
    fn ticket(self) -> Ticket {
        Ticket {
            below: self.below,
            number: self.number,
            slot: Some(self.slot),
        }
    }
}

impl Ticket {
    /// Returns the place of the job if it is not the first one of its key.
    fn behind(self) -> Option<Behind> {
        Some(Behind {
            slot: self.slot?,
            below: self.below,
            number: self.number,
        })
    }
}

/// What is known of a key.
struct Known {
    /// The number of its jobs in `behind`.
    behind: usize,
    turn: Turn,
}

/// What is in front of the jobs of a key that are in `behind`.
enum Turn {
    /// The first one, which is in `ready`. The fields are those of its ticket.
    Ready { below: u32, number: u64 },
    /// A job that is served, and is not on the board any more.
    Served,
}

impl Turn {
    fn of(ticket: Ticket) -> Self {
        Turn::Ready {
            below: ticket.below,
            number: ticket.number,
        }
    }
}

/// The key of a job that is served. It goes back to the board with [`Board::done`].
#[must_use = "its key is served until `done`"]
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Served(Slot);

/// A job that was taken.
pub(super) struct Taken<J> {
    pub(super) job: J,
    pub(super) ticket: Ticket,
    /// The key of the job, if it has one.
    pub(super) served: Option<Served>,
}

pub(super) struct Board<K, J> {
    policy: KeyPolicy,
    keys: Keys<K, Known>,
    ready: BTreeMap<Ticket, J>,
    behind: BTreeMap<Behind, J>,
    /// How many numbers were given.
    numbers: u64,
}

/// Where a job joins the board. A seat that is dropped has changed nothing.
pub(super) struct Seat<'a, K, J> {
    board: &'a mut Board<K, J>,
    key: &'a mut Option<Keyed<K>>,
    /// The slot of the key if the key is known.
    found: Option<Slot>,
}

impl<K: Eq, J> Board<K, J> {
    /// Finds the place for a job of this key, or of none.
    ///
    /// This compares keys of equal hashes, and so may panic.
    pub(super) fn seat<'a>(&'a mut self, key: &'a mut Option<Keyed<K>>) -> Seat<'a, K, J> {
        let found = key.as_ref().and_then(|key| self.keys.find(key));
        Seat {
            board: self,
            key,
            found,
        }
    }
}

impl<K, J> Seat<'_, K, J> {
    /// Returns whether the policy lets the job join now.
    pub(super) fn is_admitted(&self) -> bool {
        let Some(slot) = self.found else { return true };
        match self.board.policy {
            KeyPolicy::One => false,
            KeyPolicy::Queue(most) => self.board.keys[slot].behind < most,
        }
    }

    /// Adds a job, admitted or not. It takes the key, unless the key is known. The number is one
    /// that the board has given, for this job alone.
    pub(super) fn add(self, number: u64, priority: u32, job: J) -> Ticket {
        let Seat { board, key, found } = self;
        let mut ticket = Ticket {
            below: u32::MAX - priority,
            number,
            slot: found,
        };
        match found {
            Some(slot) => board.join(slot, ticket, job),
            None => {
                ticket.slot = key.take().map(|keyed| board.learn(keyed, ticket));
                board.ready.insert(ticket, job);
            }
        }
        ticket
    }
}

impl<K, J> Board<K, J> {
    pub(super) fn new(policy: KeyPolicy) -> Self {
        Board {
            policy,
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

    /// Takes the next job. Its key is served until [`done`](Board::done).
    pub(super) fn take(&mut self) -> Option<Taken<J>> {
        let (ticket, job) = self.ready.pop_first()?;
        let served = ticket.slot.map(|slot| {
            self.keys[slot].turn = Turn::Served;
            Served(slot)
        });
        Some(Taken {
            job,
            ticket,
            served,
        })
    }

    /// Frees the key of a job that has ended. Returns the key if no job of it waits.
    pub(super) fn done(&mut self, served: Option<Served>) -> Option<Keyed<K>> {
        let Served(slot) = served?;
        self.follow(slot)
    }

    /// Removes a job that waits. Returns it, and its key if no other job has it.
    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<(J, Option<Keyed<K>>)> {
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
    pub(super) fn clear(&mut self) -> (Vec<J>, Vec<Keyed<K>>) {
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
    fn join(&mut self, slot: Slot, ticket: Ticket, job: J) {
        let known = &mut self.keys[slot];
        known.behind += 1;
        let (mut place, mut job) = (ticket, job);
        if let Turn::Ready { below, number } = known.turn {
            let slot = Some(slot);
            let first = Ticket {
                below,
                number,
                slot,
            };
            if ticket < first {
                known.turn = Turn::of(ticket);
                let overtaken = self.ready.remove(&first);
                let overtaken = overtaken.expect("the first job of a key is ready");
                self.ready.insert(ticket, replace(&mut job, overtaken));
                place = first;
            }
        }
        let behind = place.behind().expect("the job has a key");
        self.behind.insert(behind, job);
    }

    /// Makes a key known, whose first job has this ticket but for the slot.
    fn learn(&mut self, keyed: Keyed<K>, ticket: Ticket) -> Slot {
        let turn = Turn::of(ticket);
        self.keys.insert(keyed, Known { behind: 0, turn })
    }

    /// Puts the next job of a key to the front, or forgets the key if there is none.
    fn follow(&mut self, slot: Slot) -> Option<Keyed<K>> {
        let known = &mut self.keys[slot];
        if known.behind == 0 {
            return Some(self.keys.remove(slot));
        }
        let first = Behind {
            slot,
            below: 0,
            number: 0,
        };
        let next = self.behind.range(first..).next();
        let next = *next.expect("a key counts its jobs").0;
        let job = self.behind.remove(&next).expect("it was just found");
        known.behind -= 1;
        known.turn = Turn::of(next.ticket());
        self.ready.insert(next.ticket(), job);
        None
    }
}

//! The waiting jobs of a market: which one is next, one for each key, and what waits for a moment.
//!
//! A key is known while a job of it waits or is served, and while one of its starts counts for its
//! rate. `ready` has each job that could be served now: those without a key, and one of each key
//! that is neither served nor limited. `later` has the jobs that are not due, and `behind` all
//! other jobs. `moments` has each job of `later`, and each key that is looked at again. A key
//! counts its jobs in `behind` and `later`. A ticket keeps its number and its place in the order
//! for as long as its job is in the market. No number is given twice. So the ticket of a job
//! that is gone is in no map. User code runs only in [`Board::find`], which changes nothing:
//! `K: Eq`. No key and no job is dropped here: each goes back to the caller.

mod rate;
#[cfg(all(test, not(greenroom_loom)))]
mod tests;
mod ticket;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::directory::{HashedKey, KeySlot, Keys};
use crate::instant::Instant;
use rate::StartRate;
use ticket::{Behind, DueMoment, DueOf, KeyTurn};
pub(super) use ticket::{JobPlace, JobTicket};

/// What a market says of the order of its jobs, and of its keys.
#[derive(Clone, Copy)]
pub(super) struct BoardRules {
    pub(super) capacity_per_key: usize,
    /// The time in which a job that waits gains one priority.
    pub(super) aging: Option<Duration>,
    /// Of each key at most so many jobs begin within this time.
    pub(super) rate: Option<(usize, Duration)>,
    /// Of the jobs below this priority at most so many are served at once.
    pub(super) reserved: Option<(u32, usize)>,
}

impl BoardRules {
    /// Creates rules that only limit how many jobs of a key wait.
    pub(super) const fn plain(capacity_per_key: usize) -> Self {
        BoardRules {
            capacity_per_key,
            aging: None,
            rate: None,
            reserved: None,
        }
    }
}

/// What is known of a key.
#[derive(Default)]
struct KnownKey {
    /// The number of its jobs in `behind`. Memory ends before 2^32 jobs of a key.
    behind: u32,
    /// The number of its jobs in `later`.
    later: u32,
    turn: KeyTurn,
}

/// How many due moments pass in one step, so that no step takes long although many are due at once.
const RELEASES: usize = 64;

pub(super) struct Board<K, J> {
    rules: BoardRules,
    keys: Keys<K, KnownKey>,
    /// First the jobs for which workers are reserved, or all without a reservation.
    ready: [BTreeMap<JobTicket, J>; 2],
    behind: BTreeMap<Behind, J>,
    later: BTreeMap<JobTicket, (Instant, J)>,
    moments: BTreeSet<DueMoment>,
    /// The starts of known keys that count. None in a market without a rate.
    rates: BTreeMap<KeySlot, StartRate>,
    /// How many jobs are served for which no worker is reserved, if some are.
    others_served: usize,
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
    pub(super) fn new(rules: BoardRules) -> Self {
        Board {
            rules,
            keys: Keys::new(),
            ready: [BTreeMap::new(), BTreeMap::new()],
            behind: BTreeMap::new(),
            later: BTreeMap::new(),
            moments: BTreeSet::new(),
            rates: BTreeMap::new(),
            others_served: 0,
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
        let ready: usize = self.ready.iter().map(BTreeMap::len).sum();
        ready + self.behind.len() + self.later.len()
    }

    /// Returns the number of jobs that wait and are not due.
    pub(super) fn later(&self) -> usize {
        self.later.len()
    }

    /// Returns the number of jobs that could be served now, all at once.
    pub(super) fn runnable(&self) -> usize {
        self.ready[0].len() + self.ready[1].len().min(self.others_left())
    }

    /// Returns the earliest moment at which a job or a key is to be looked at, if there is one.
    pub(super) fn next_moment(&self) -> Option<Instant> {
        self.moments.first().map(|moment| moment.at)
    }

    /// Returns whether a job may join now, whose key was [found](Board::find) so.
    pub(super) fn is_admitted(&self, found: Option<KeySlot>) -> bool {
        let Some(slot) = found else { return true };
        let known = &self.keys[slot];
        let has_turn = !matches!(known.turn, KeyTurn::Idle);
        let jobs = u64::from(known.behind) + u64::from(known.later) + u64::from(has_turn);
        jobs <= self.rules.capacity_per_key as u64
    }

    /// Adds a job, admitted or not, whose key was [found](Board::find) so. It takes the key, unless
    /// the key is known.
    pub(super) fn add(
        &mut self,
        found: Option<KeySlot>,
        key: &mut Option<HashedKey<K>>,
        place: JobPlace,
        now: Instant,
        job: J,
    ) -> JobTicket {
        let learn = |keyed| self.keys.insert(keyed, KnownKey::default());
        let slot = found.or_else(|| key.take().map(learn));
        let ticket = JobTicket::new(&place, self.rules.aging, slot);
        self.join(ticket, place.due, now, job);
        ticket
    }

    /// Takes the next job. Its key is served until it is [done](Board::done) or comes
    /// [again](Board::again).
    pub(super) fn take(&mut self, now: Instant) -> Option<(JobTicket, J)> {
        let urgent = self.ready[0].first_key_value();
        let other = self.ready[1].first_key_value();
        let other = other.filter(|_| self.others_left() > 0);
        let lane = match (urgent, other) {
            (Some((urgent, _)), Some((other, _))) => usize::from(other < urgent),
            (urgent, other) => usize::from(urgent.is_none() && other.is_some()),
        };
        let (ticket, job) = match lane {
            1 => self.ready[1].pop_first()?,
            _ => self.ready[0].pop_first()?,
        };
        self.others_served += lane;
        if let Some(slot) = ticket.slot {
            self.keys[slot].turn = KeyTurn::Served;
            if self.rules.rate.is_some() {
                self.rates.entry(slot).or_default().begin(now);
            }
        }
        Some((ticket, job))
    }

    /// Notes that a job that was taken begins only now.
    pub(super) fn begins(&mut self, ticket: JobTicket, now: Instant) {
        if let Some(slot) = ticket.slot
            && let Some(rate) = self.rates.get_mut(&slot)
        {
            rate.begins_later(now);
        }
    }

    /// Frees the key of a job that was taken and has ended. Returns the key if nothing has it.
    #[must_use = "a key is dropped by the caller"]
    pub(super) fn done(&mut self, ticket: JobTicket, now: Instant) -> Option<HashedKey<K>> {
        self.others_served -= self.lane(ticket);
        let slot = ticket.slot?;
        self.keys[slot].turn = KeyTurn::Idle;
        self.settle(slot, now)
    }

    /// Puts a job back that was taken, not to begin before it is due. Its key is free meanwhile.
    pub(super) fn again(&mut self, ticket: JobTicket, due: Instant, now: Instant, job: J) {
        self.others_served -= self.lane(ticket);
        if let Some(slot) = ticket.slot {
            self.keys[slot].turn = KeyTurn::Idle;
        }
        self.join(ticket, due, now, job);
        let unused = ticket.slot.and_then(|slot| self.settle(slot, now));
        debug_assert!(unused.is_none(), "a job that waits has the key");
    }

    /// Removes a job that waits. Returns it, and its key if nothing else has it.
    pub(super) fn remove(
        &mut self,
        ticket: JobTicket,
        now: Instant,
    ) -> Option<(J, Option<HashedKey<K>>)> {
        let lane = self.lane(ticket);
        if let Some(job) = self.ready[lane].remove(&ticket) {
            let key = ticket.slot.and_then(|slot| {
                self.keys[slot].turn = KeyTurn::Idle;
                self.settle(slot, now)
            });
            return Some((job, key));
        }
        if let Some((at, job)) = self.later.remove(&ticket) {
            let of = DueOf::Job(ticket);
            self.moments.remove(&DueMoment { at, of });
            let key = ticket.slot.and_then(|slot| {
                self.keys[slot].later -= 1;
                self.settle(slot, now)
            });
            return Some((job, key));
        }
        let job = self.behind.remove(&Behind(ticket))?;
        let slot = ticket.slot?;
        self.keys[slot].behind -= 1;
        Some((job, self.settle(slot, now)))
    }

    /// Lets the moments pass that have come, or the first [`RELEASES`] of them. Adds the keys that
    /// nothing has any more to `unused`.
    pub(super) fn release(&mut self, now: Instant, unused: &mut Vec<HashedKey<K>>) {
        for _ in 0..RELEASES {
            if self.next_moment().is_none_or(|at| at > now) {
                return;
            }
            match self.moments.pop_first().map(|moment| moment.of) {
                Some(DueOf::Job(ticket)) => {
                    let (_, job) = self.later.remove(&ticket).expect("it has a moment");
                    if let Some(slot) = ticket.slot {
                        self.keys[slot].later -= 1;
                    }
                    self.put(ticket, now, job);
                }
                Some(DueOf::Key(slot)) => {
                    if let Some(rate) = self.rates.get_mut(&slot) {
                        rate.moment = None;
                    }
                    unused.extend(self.settle(slot, now));
                }
                None => return,
            }
        }
    }

    /// Removes all jobs, and all keys that are not served. Visits each of them. No start counts any
    /// more.
    ///
    /// The jobs that could be served come first, in their order.
    pub(super) fn clear(&mut self) -> (Vec<J>, Vec<HashedKey<K>>) {
        let mut jobs = Vec::with_capacity(self.len());
        for ready in &mut self.ready {
            jobs.extend(std::mem::take(ready).into_values());
        }
        jobs.extend(std::mem::take(&mut self.behind).into_values());
        jobs.extend(std::mem::take(&mut self.later).into_values().map(|it| it.1));
        self.moments.clear();
        self.rates.clear();
        self.rules.rate = None;
        let slots: Vec<_> = self.keys.iter().map(|(slot, ..)| slot).collect();
        let mut keys = Vec::new();
        for slot in slots {
            let known = std::mem::take(&mut self.keys[slot]);
            match known.turn {
                KeyTurn::Served => self.keys[slot].turn = KeyTurn::Served,
                _ => keys.push(self.keys.remove(slot)),
            }
        }
        (jobs, keys)
    }

    /// Returns 1 if other jobs have reserved workers and this one has not.
    fn lane(&self, ticket: JobTicket) -> usize {
        let reserved = self.rules.reserved;
        usize::from(reserved.is_some_and(|(priority, _)| ticket.priority() < priority))
    }

    /// Returns how many more of the jobs could be served that have no reserved workers.
    fn others_left(&self) -> usize {
        let most = self.rules.reserved.map_or(0, |(_, others)| others);
        most.saturating_sub(self.others_served)
    }

    /// Adds a job that has a ticket, whose key is known.
    fn join(&mut self, ticket: JobTicket, due: Instant, now: Instant, job: J) {
        if due <= now {
            return self.put(ticket, now, job);
        }
        let of = DueOf::Job(ticket);
        self.moments.insert(DueMoment { at: due, of });
        self.later.insert(ticket, (due, job));
        if let Some(slot) = ticket.slot {
            self.keys[slot].later += 1;
        }
    }

    /// Adds a job that is due.
    fn put(&mut self, mut ticket: JobTicket, now: Instant, mut job: J) {
        let lane = self.lane(ticket);
        let Some(slot) = ticket.slot else {
            self.ready[lane].insert(ticket, job);
            return;
        };
        let known = &mut self.keys[slot];
        let is_idle = matches!(known.turn, KeyTurn::Idle);
        if is_idle && known.behind == 0 && self.rules.rate.is_none() {
            known.turn = ticket.turn();
            self.ready[lane].insert(ticket, job);
            return;
        }
        if let Some(first) = known.turn.first(slot)
            && ticket < first
        {
            // The job overtakes the first one, which goes behind instead of it.
            known.turn = ticket.turn();
            self.ready[lane].insert(ticket, job);
            let lane = self.lane(first);
            let overtaken = self.ready[lane].remove(&first);
            job = overtaken.expect("the first job of a key is ready");
            ticket = first;
        }
        self.behind.insert(Behind(ticket), job);
        self.keys[slot].behind += 1;
        let unused = self.settle(slot, now);
        debug_assert!(unused.is_none(), "a job that waits has the key");
    }

    /// Gives an idle key its turn, a moment when to look at it again, or back if nothing has it.
    fn settle(&mut self, slot: KeySlot, now: Instant) -> Option<HashedKey<K>> {
        let known = &mut self.keys[slot];
        if !matches!(known.turn, KeyTurn::Idle) {
            return None;
        }
        let (is_waiting, is_used) = (known.behind > 0, known.later > 0);
        let mut moment = None;
        if let Some((starts, per)) = self.rules.rate
            && let Some(rate) = self.rates.get_mut(&slot)
        {
            rate.forget(now, per);
            moment = match is_waiting {
                true => rate.full_until(starts, per),
                // A job that is not due keeps the key as well.
                false => rate.counts_until(per).filter(|_| !is_used),
            };
        }
        self.look_at(slot, moment);
        if moment.is_none() && is_waiting {
            self.bring(slot);
        }
        if moment.is_some() || is_waiting || is_used {
            return None;
        }
        self.rates.remove(&slot);
        Some(self.keys.remove(slot))
    }

    /// Sets the moment at which a key is looked at.
    fn look_at(&mut self, slot: KeySlot, moment: Option<Instant>) {
        let Some(rate) = self.rates.get_mut(&slot) else {
            return;
        };
        let of = DueOf::Key(slot);
        let old = std::mem::replace(&mut rate.moment, moment);
        if old != moment {
            old.map(|at| self.moments.remove(&DueMoment { at, of }));
            moment.map(|at| self.moments.insert(DueMoment { at, of }));
        }
    }

    /// Makes the first job of a key ready of those behind.
    fn bring(&mut self, slot: KeySlot) {
        // The jobs of a key are next to each other, so the next one is the first from here on.
        let next = self.behind.range(Behind::first_of(slot)..).next();
        let next = *next.expect("a key counts its jobs").0;
        let job = self.behind.remove(&next).expect("it was just found");
        let known = &mut self.keys[slot];
        known.behind -= 1;
        known.turn = next.0.turn();
        let lane = self.lane(next.0);
        self.ready[lane].insert(next.0, job);
    }
}

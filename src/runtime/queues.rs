//! The queues of a runtime and the order in which a worker looks at them.
//!
//! A worker takes, in this order: at every other turn the oldest from outside, at every fourth the
//! oldest that overflowed a ring; its newest (a bounded number of times in a row); the oldest of its
//! ring; a share of the overflow, then of what is from outside; and, if it is the one thief, half of
//! another's ring, beginning at a random victim. The queues hold entries and know nothing of what
//! they are.
//!
//! # Invariants
//! - N1: an entry is in one queue, or in the hands of one worker.
//! - N2: whatever is pushed to a ring or the injector is followed by `Sleep::notify`, whatever is
//!   put in a slot by `Sleep::notify_slot`; but for a task that woke itself and is alone.

use std::cell::Cell;

use super::injector::Injector;
use super::ring::{Entry, Ring};
use super::sleep::Sleep;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::mutant;

/// How often in a row the newest goes first while older entries wait: enough for two tasks that
/// talk to each other to stay on a warm core, few enough that nobody notices.
pub(crate) const NEWEST_RUNS_MAX: u32 = 3;

pub(crate) struct Queues {
    stations: Box<[Station]>,
    /// What comes from outside.
    pub(super) injector: Injector,
    /// What did not fit in a ring: apart, so that nothing from outside waits behind it.
    overflow: Injector,
    pub(super) sleep: Sleep,
}

/// One worker's part, on cache lines of its own.
#[repr(align(128))]
struct Station {
    ring: Ring,
    /// How many turns the worker has begun. Written by the worker, read by the watcher.
    turns: AtomicU64,
    /// The worker has told what was queued when the shutdown began.
    counted: AtomicBool,
}

impl Queues {
    pub(crate) fn new(workers: usize) -> Self {
        let station = |_| Station {
            ring: Ring::new(),
            turns: AtomicU64::new(0),
            counted: AtomicBool::new(false),
        };
        Queues {
            stations: (0..workers).map(station).collect(),
            injector: Injector::new(),
            overflow: Injector::new(),
            sleep: Sleep::new(workers),
        }
    }

    pub(crate) fn workers(&self) -> usize {
        self.stations.len()
    }

    pub(crate) fn push_outside(&self, entry: Entry) {
        self.injector.push([entry]);
        self.sleep.notify();
    }

    /// Whether a ring or the injector has something.
    pub(crate) fn has_work(&self) -> bool {
        self.has_left() || self.stations.iter().any(|station| station.ring.len() > 0)
    }

    /// Whether something is in no worker's queue.
    pub(super) fn has_left(&self) -> bool {
        self.injector.len() + self.overflow.len() > 0
    }

    /// Takes something that is in no worker's queue.
    pub(super) fn pop_left(&self) -> Option<Entry> {
        self.injector.pop().or_else(|| self.overflow.pop())
    }

    /// Whether the slot of a worker other than `me` is filled.
    pub(crate) fn has_slot(&self, me: usize) -> bool {
        let mut others = self
            .stations
            .iter()
            .enumerate()
            .filter(|&(index, _)| index != me);
        others.any(|(_, station)| station.ring.has_newest())
    }

    pub(super) fn is_counted(&self, worker: usize) -> bool {
        // Acquire pairs with the Release in `count_queued`.
        self.stations[worker].counted.load(Ordering::Acquire)
    }

    /// How many workers have told what was queued when the shutdown began.
    pub(super) fn counted(&self) -> usize {
        (0..self.workers())
            .filter(|&worker| self.is_counted(worker))
            .count()
    }

    /// Takes all that did not come from outside, on behalf of workers that are gone or stuck.
    pub(crate) fn take_all(&self) -> Vec<Entry> {
        let aside = Ring::new();
        let mut taken = Vec::new();
        for Station { ring, .. } in &self.stations {
            while let Some(first) = ring.steal_into(&aside) {
                taken.push(first);
                taken.extend(std::iter::from_fn(|| aside.pop()));
            }
            taken.extend(ring.take_newest());
        }
        taken.extend(std::iter::from_fn(|| self.overflow.pop()));
        taken
    }
}

/// A worker's own side of the queues; it stays on the worker's thread.
pub(crate) struct Local<'a> {
    queues: &'a Queues,
    index: usize,
    /// How often in a row the newest went first.
    newest_runs: Cell<u32>,
    /// Counts looks, to take turns with the injector.
    looks: Cell<u32>,
    random: Cell<u64>,
    /// Before this worker runs something else, a sleeper must keep the next deadline.
    owes_keeper: Cell<bool>,
    /// The turns of the others at the last watch.
    seen: Box<[Cell<u64>]>,
}

impl<'a> Local<'a> {
    pub(crate) fn new(queues: &'a Queues, index: usize, seed: u64) -> Self {
        Local {
            queues,
            index,
            newest_runs: Cell::new(0),
            looks: Cell::new(0),
            random: Cell::new(seed | 1),
            owes_keeper: Cell::new(false),
            seen: (0..queues.workers()).map(|_| Cell::new(u64::MAX)).collect(),
        }
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// Whether nothing waits in this worker's own queues.
    fn is_empty(&self) -> bool {
        let ring = &self.station().ring;
        ring.len() == 0 && !ring.has_newest()
    }

    /// A deadline came up in a turn of this worker, which keeps it itself if it sleeps next.
    pub(super) fn owe_keeper(&self) {
        self.owes_keeper.set(true);
    }

    /// Whether this worker owed the deadlines a keeper until now.
    pub(super) fn owed_keeper(&self) -> bool {
        self.owes_keeper.take()
    }

    fn station(&self) -> &'a Station {
        &self.queues.stations[self.index]
    }

    /// Takes an entry that was woken on this worker. `again`: by its own run, so it goes to the
    /// back; otherwise it is the newest.
    pub(crate) fn push(&self, entry: Entry, again: bool) {
        let ring = &self.station().ring;
        if again {
            let alone = self.is_empty();
            self.push_back(entry);
            if !alone {
                self.queues.sleep.notify();
            }
        } else if let Some(displaced) = ring.put_newest(entry) {
            self.push_back(displaced);
            self.queues.sleep.notify();
        } else {
            self.queues.sleep.notify_slot();
        }
    }

    /// To the back of the ring; if that is full, its older half goes to where all look.
    fn push_back(&self, entry: Entry) {
        let ring = &self.station().ring;
        let mut entry = entry;
        while let Err(refused) = ring.push(entry) {
            entry = refused;
            if let Some(half) = ring.take_half() {
                self.queues.overflow.push(half);
            }
        }
    }

    /// The next entry to run, without looking at the other workers.
    pub(crate) fn next(&self) -> Option<Entry> {
        let ring = &self.station().ring;
        let look = self.looks.get().wrapping_add(1);
        self.looks.set(look);
        // At every other turn, so that nothing from outside waits for a busy ring, nor a ring for
        // what floods in from outside; and what did not fit in a ring at every fourth.
        let first = match look % 4 {
            0 | 2 => self.queues.injector.pop(),
            1 => self.queues.overflow.pop(),
            _ => None,
        };
        if first.is_some() {
            return first;
        }
        if self.newest_runs.get() < NEWEST_RUNS_MAX || ring.len() == 0 {
            if let Some(entry) = ring.take_newest() {
                self.newest_runs.set(self.newest_runs.get() + 1);
                return Some(entry);
            }
        } else if let Some(entry) = ring.take_newest() {
            self.push_back(entry);
        }
        self.newest_runs.set(0);
        let share = |of: &Injector| of.pop_some(self.queues.workers(), |more| self.push_back(more));
        ring.pop()
            .or_else(|| share(&self.queues.overflow))
            .or_else(|| share(&self.queues.injector))
    }

    /// Becomes the one thief, if there is none.
    pub(crate) fn try_search(&self) -> bool {
        self.queues.sleep.try_search()
    }

    /// Steals from the others. Only the one thief does.
    pub(crate) fn steal(&self) -> Option<Entry> {
        let count = self.queues.workers();
        let start = self.random(count);
        let own = &self.station().ring;
        (0..count)
            .map(|at| (start + at) % count)
            .filter(|&victim| victim != self.index)
            .find_map(|victim| self.queues.stations[victim].ring.steal_into(own))
    }

    /// Takes what is in the slot of a worker that has begun no turn since the last watch.
    ///
    /// Says also whether any other worker has moved, so that watching goes on.
    pub(crate) fn watch(&self) -> (Option<Entry>, bool) {
        let mut moved = false;
        for (index, station) in self.queues.stations.iter().enumerate() {
            // Relaxed: a worker that is stuck does not change it.
            let turns = station.turns.load(Ordering::Relaxed);
            let stuck = self.seen[index].replace(turns) == turns;
            if index == self.index {
                continue;
            }
            moved |= !stuck;
            if stuck
                && !mutant("watcher_takes_nothing")
                && let Some(entry) = station.ring.take_newest()
            {
                return (Some(entry), true);
            }
        }
        (None, moved && !self.queues.sleep.is_alone())
    }

    /// A turn begins.
    pub(crate) fn begin_turn(&self) {
        let turns = &self.station().turns;
        // Relaxed: only this worker writes it, and it publishes nothing.
        turns.store(
            turns.load(Ordering::Relaxed).wrapping_add(1),
            Ordering::Relaxed,
        );
    }

    /// Hands what is queued here to all, as queued before the shutdown; once, between two turns,
    /// when nothing is in this worker's hands.
    pub(super) fn count_queued(&self) {
        let overflow = std::iter::from_fn(|| self.queues.overflow.pop());
        self.queues
            .injector
            .mark_before(self.drain().chain(overflow));
        // Release pairs with the Acquire in `is_counted`.
        self.station().counted.store(true, Ordering::Release);
        self.queues.sleep.notify();
    }

    /// Takes all that is left in this worker's queues.
    pub(crate) fn drain(&self) -> impl Iterator<Item = Entry> {
        let ring = &self.station().ring;
        std::iter::from_fn(|| ring.take_newest().or_else(|| ring.pop()))
    }

    /// A victim to begin with: xorshift, since any spread will do.
    fn random(&self, below: usize) -> usize {
        let mut random = self.random.get();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.set(random);
        (random >> 33) as usize % below
    }
}

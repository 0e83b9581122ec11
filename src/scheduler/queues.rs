//! The queues of work stealing, and the order in which a worker looks at them.
//!
//! A worker takes, in this order: at every other turn the oldest from outside; its newest (for
//! a bounded time in a row); the oldest of its own; a share of what is from outside; and, if it is
//! the one thief, half of another's, beginning at a random victim. Its own are a ring and, when that
//! is full, a backlog behind it: together first in, first out. The queues hold entries and know
//! nothing of what they are.
//!
//! # Invariants
//! - QUEUES-1: an entry is in one queue, or in the hands of one worker.
//! - QUEUES-2: whatever comes to a ring, a backlog or the injector is followed by `WorkerSleep::notify`, what comes to a
//!   slot by `WorkerSleep::notify_slot`; but for a task that woke itself, if at most the newest is before it.
//! - QUEUES-3: a ring has one owner at a time (RING-1): the first `LocalQueue` of its index, until that
//!   is dropped or gives it up.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use super::counters::Counted;
use super::duties::Duties;
use super::injector::Injector;
use super::ring::{CAPACITY, Entry, Ring};
use super::sleep::WorkerSleep;
use super::slot::Slot;
use crate::instant::Instant;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{CachePadded, MODEL, mutant};
use crate::task::Runnable;

/// How often in a row the newest goes first, while older entries wait, without a look at the clock.
const NEWEST_UNTIMED: u32 = 3;
/// After that the newest goes first for so long. Two tasks that talk to each other have hundreds of turns in that time;
/// it is less than an older entry's turn may take, so that busy actors keep most of a worker.
const NEWEST_TIME: Duration = Duration::from_micros(16);
/// How many turns at most pass between two looks at the clock meanwhile.
const NEWEST_LOOKS: u32 = 16;

/// A worker looks at the clock once in so many turns, to know whether to even the queues out.
const REBALANCE_LOOKS: u32 = 64;

pub(crate) struct Queues {
    workers: Box<[Arc<WorkerQueues>]>,
    /// What comes from outside.
    injector: CachePadded<Injector>,
    pub(crate) sleep: WorkerSleep,
}

/// One worker's part, on cache lines of its own.
#[repr(align(128))]
struct WorkerQueues {
    /// Somebody is the owner of the ring.
    is_owned: AtomicBool,
    ring: Ring,
    slot: Slot,
    /// What came when the ring was full: behind it.
    backlog: Injector,
}

impl WorkerQueues {
    /// How much waits here besides the newest, as a hint. Looked at in the order in which entries move, from
    /// the slot to the backlog to the ring, so that none is passed on its way.
    fn len(&self) -> usize {
        self.backlog.len() + self.ring.len()
    }

    /// How much waits here, as a hint.
    fn len_in_all(&self) -> usize {
        usize::from(self.slot.is_filled()) + self.len()
    }

    /// As much as `most` of the oldest entries, by anyone; each is given to `keep`.
    fn take_oldest(&self, most: usize, keep: &mut impl FnMut(Entry)) {
        let ring = std::iter::from_fn(|| self.ring.take_oldest());
        let mut taken = 0;
        for entry in ring.take(most.min(CAPACITY)) {
            taken += 1;
            keep(entry);
        }
        if taken < most
            && let Some(first) = self.backlog.pop_some(most - taken - 1, &mut *keep)
        {
            keep(first);
        }
    }
}

impl Queues {
    pub(crate) fn new(workers: usize, sleep: WorkerSleep) -> Self {
        let worker = |_| {
            Arc::new(WorkerQueues {
                is_owned: AtomicBool::new(false),
                ring: Ring::new(),
                slot: Slot::new(),
                backlog: Injector::new(),
            })
        };
        Queues {
            workers: (0..workers).map(worker).collect(),
            injector: CachePadded(Injector::new()),
            sleep,
        }
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers.len()
    }

    pub(crate) fn push_outside(&self, entry: Entry) {
        self.injector.push([entry]);
        self.sleep.notify();
        self.sleep.rouse_napper();
    }

    /// Whether the injector or a worker has something more than its newest.
    pub(crate) fn has_work(&self) -> bool {
        self.injector.len() > 0 || self.workers.iter().any(|worker| worker.len() > 0)
    }

    pub(super) fn has_outside(&self) -> bool {
        self.injector.len() > 0
    }

    /// Takes something of anybody's, by whoever owns none of the rings.
    pub(super) fn take_any(&self) -> Option<Entry> {
        self.injector.pop().or_else(|| {
            self.workers.iter().find_map(|worker| {
                let WorkerQueues {
                    ring,
                    slot,
                    backlog,
                    ..
                } = &**worker;
                let own = ring.take_oldest().or_else(|| backlog.pop());
                own.or_else(|| slot.claim())
            })
        })
    }

    /// Takes something that came from outside.
    pub(super) fn pop_outside(&self) -> Option<Entry> {
        self.injector.pop()
    }

    /// Whether anything waits at a worker other than `me`.
    pub(crate) fn has_any(&self, me: usize) -> bool {
        let mut others = self
            .workers
            .iter()
            .enumerate()
            .filter(|&(index, _)| index != me);
        others.any(|(_, worker)| worker.len_in_all() > 0)
    }

    /// How much waits for a worker, and how much comes from outside; hints.
    pub(super) fn lens(&self) -> (usize, Vec<usize>) {
        let own = self.workers.iter().map(|worker| worker.len_in_all());
        (self.injector.len(), own.collect())
    }

    /// Takes all there is, on behalf of workers that are gone or stuck.
    pub(crate) fn take_all(&self) -> Vec<Entry> {
        let mut taken: Vec<_> = std::iter::from_fn(|| self.injector.pop()).collect();
        for worker in &self.workers {
            worker.take_oldest(usize::MAX, &mut |entry| taken.push(entry));
            taken.extend(worker.slot.claim());
        }
        taken
    }
}

/// A worker's own side of the queues; it stays on the worker's thread.
pub struct LocalQueue {
    queues: Arc<Queues>,
    /// This worker's, so that it need not be looked up.
    mine: Arc<WorkerQueues>,
    index: usize,
    /// This one is the owner of the ring, and may push and pop there (QUEUES-3).
    owns: Cell<bool>,
    /// How often the newest may go first until the clock decides.
    newest_left: Cell<u32>,
    /// How often it might the last time: 0 before the clock was looked at.
    newest_step: Cell<u32>,
    /// Until when it may.
    newest_until: Cell<Instant>,
    /// Counts looks, to take turns with the injector.
    looks: Cell<u32>,
    random: Cell<u64>,
    /// What it took last of others was from outside.
    pub(super) is_fed: Cell<bool>,
    /// How often it evens the queues out, and when it does so next.
    rebalance_interval: Option<Duration>,
    rebalance_at: Cell<Instant>,
    /// The turns of the others at the last watch.
    seen: Box<[Cell<u64>]>,
}

impl LocalQueue {
    pub(crate) fn new(
        queues: &Arc<Queues>,
        index: usize,
        seed: u64,
        rebalance_interval: Option<Duration>,
    ) -> Self {
        let local = LocalQueue {
            mine: queues.workers[index].clone(),
            owns: Cell::new(false),
            rebalance_interval: rebalance_interval.filter(|_| queues.workers() > 1),
            rebalance_at: Cell::new(Instant::now()),
            index,
            newest_left: Cell::new(NEWEST_UNTIMED),
            newest_step: Cell::new(0),
            newest_until: Cell::new(Instant::now()),
            looks: Cell::new(0),
            random: Cell::new(seed | 1),
            is_fed: Cell::new(false),
            seen: (0..queues.workers()).map(|_| Cell::new(u64::MAX)).collect(),
            queues: queues.clone(),
        };
        local.own();
        local
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// Whether this one may push and pop.
    pub(super) fn owns(&self) -> bool {
        self.owns.get()
    }

    /// Becomes the owner of the ring; false if there is another one of this index.
    pub(super) fn own(&self) -> bool {
        if !self.owns() {
            // Acquire pairs with the Release in `disown`: what the last owner did there is seen.
            let others = self.mine().is_owned.swap(true, Ordering::Acquire);
            self.owns.set(!others);
        }
        self.owns()
    }

    /// Leaves the ring to another one of this index.
    pub(super) fn disown(&self) {
        if self.owns.take() {
            // Release pairs with the Acquire in `own`.
            self.mine().is_owned.store(false, Ordering::Release);
        }
    }

    /// Whether nothing waits here, nor comes from outside.
    pub(super) fn is_alone(&self) -> bool {
        self.mine().len_in_all() == 0 && self.queues.injector.len() == 0
    }

    /// How much waits here besides the newest.
    pub(super) fn len(&self) -> usize {
        self.mine().len()
    }

    fn mine(&self) -> &WorkerQueues {
        &self.mine
    }

    /// Takes an entry that was woken on this worker. `again`: by its own run, so it goes to the
    /// back; otherwise it is the newest.
    // Forced: each wake-up comes here, and a call is 3 % of a yield.
    #[inline(always)]
    pub(crate) fn push(&self, entry: Entry, again: bool) {
        let WorkerQueues { slot, .. } = self.mine();
        if again {
            let others = self.mine().len() > 0;
            self.push_back(entry);
            // It and the newest mostly do things for each other, and go on here sooner than elsewhere. A
            // filled slot is watched, and whoever ends a watch looks at the ring after the slot.
            if others {
                self.queues.sleep.notify();
            }
        } else if let Some(displaced) = slot.put(entry) {
            self.push_back(displaced);
            self.queues.sleep.notify();
        } else {
            self.queues.sleep.notify_slot();
        }
    }

    /// To the back: the ring's or, if that is full or something waits behind it, the backlog's.
    fn push_back(&self, entry: Entry) {
        let WorkerQueues { ring, backlog, .. } = self.mine();
        let refused = if backlog.len() == 0 {
            ring.push(entry).err()
        } else {
            Some(entry)
        };
        if let Some(entry) = refused {
            backlog.push([entry]);
        }
    }

    /// The next entry to run, without looking at the other workers.
    #[inline(always)]
    pub(super) fn next(&self, duties: &Duties<'_>) -> Option<Entry> {
        let WorkerQueues { ring, slot, .. } = self.mine();
        let look = self.looks.get().wrapping_add(1);
        self.looks.set(look);
        // At every other turn, so that nothing from outside waits for a busy ring, nor a ring for
        // what floods in from outside.
        if look.is_multiple_of(2) {
            if look.is_multiple_of(REBALANCE_LOOKS) && self.rebalance_interval.is_some() {
                self.rebalance_in_time(duties);
            }
            // The look is here, since a call of `pop` costs more.
            if self.queues.injector.len() > 0
                && let Some(entry) = self.queues.injector.pop()
            {
                self.is_fed.set(true);
                duties.count(Counted::Injected);
                return Some(entry);
            }
        }
        if let Some(entry) = slot.take() {
            if let Some(left) = self.newest_left.get().checked_sub(1) {
                self.newest_left.set(left);
                return Some(entry);
            }
            let waits = self.mine().len() > 0;
            if waits && self.has_time() {
                return Some(entry);
            }
            self.begin_chain();
            if !waits {
                return Some(entry);
            }
            self.push_back(entry);
        } else {
            self.begin_chain();
        }
        ring.pop().or_else(|| self.next_behind(duties))
    }

    /// What goes first next is the first of its row.
    #[inline(always)]
    fn begin_chain(&self) {
        self.newest_left.set(NEWEST_UNTIMED);
        self.newest_step.set(0);
    }

    /// Whether the newest may go first again while older entries wait, which others may take from now on.
    #[cold]
    #[inline(never)]
    fn has_time(&self) -> bool {
        // In a model no time passes.
        if MODEL {
            return false;
        }
        let (now, step) = (Instant::now(), self.newest_step.get());
        if step == 0 {
            // What waits is not the other half of a pair, which would have its turn by now.
            self.queues.sleep.notify();
            self.newest_until.set(now + NEWEST_TIME);
        } else if now >= self.newest_until.get() {
            return false;
        }
        // More and more turns, in case these are long.
        let step = (2 * step).clamp(1, NEWEST_LOOKS);
        self.newest_step.set(step);
        self.newest_left.set(step - 1);
        true
    }

    /// What waits behind the ring; or, if there is nothing, a share of what is from outside.
    #[inline(never)]
    fn next_behind(&self, duties: &Duties<'_>) -> Option<Entry> {
        self.refill().or_else(|| {
            let injector = &self.queues.injector;
            let share = (injector.len() / self.queues.workers()).min(CAPACITY / 2);
            let first = injector.pop_some(share, |more| self.push_back(more));
            first.inspect(|_| {
                self.is_fed.set(true);
                duties.count(Counted::Injected);
            })
        })
    }

    /// The ring is empty: what waits behind it moves up.
    fn refill(&self) -> Option<Entry> {
        let WorkerQueues { ring, backlog, .. } = self.mine();
        backlog.pop_some(CAPACITY / 2, |entry| {
            ring.push(entry)
                .expect("half a ring fits into an empty one");
        })
    }

    /// Becomes the one thief, if there is none.
    pub(crate) fn try_search(&self) -> bool {
        self.queues.sleep.try_search()
    }

    /// Steals from the others. Only the one thief does, whose own queues are empty.
    pub(crate) fn steal(&self) -> Option<Entry> {
        let count = self.queues.workers();
        let start = self.random(count);
        let own = &self.mine().ring;
        (0..count)
            .map(|at| (start + at) % count)
            .filter(|&victim| victim != self.index)
            .find_map(|victim| {
                let WorkerQueues { ring, backlog, .. } = &*self.queues.workers[victim];
                ring.steal_into(own).or_else(|| {
                    let half = (backlog.len() / 2).min(CAPACITY / 2);
                    backlog.pop_some(half, |entry| self.push_back(entry))
                })
            })
    }

    /// Evens the queues out, if it is time to.
    #[cold]
    fn rebalance_in_time(&self, duties: &Duties<'_>) {
        let now = Instant::now();
        if let Some(every) = self.rebalance_interval
            && now >= self.rebalance_at.get()
        {
            self.rebalance_at.set(now + every);
            if self.rebalance() > 0 {
                duties.count(Counted::Steal);
            }
        }
    }

    /// Takes of the oldest of whoever has most, half of what that has more than this worker, so
    /// that tasks that keep to themselves do not share a worker with fewer others than the rest.
    fn rebalance(&self) -> usize {
        let lens = self.queues.workers.iter().map(|s| (s.len_in_all(), s));
        let Some((most, longest)) = lens.max_by_key(|(len, _)| *len) else {
            return 0;
        };
        let more = most.saturating_sub(self.mine().len_in_all());
        let wanted = more.div_ceil(2);
        // Aside first: that one's backlog is locked meanwhile, and this one's may be wanted.
        let mut taken = Vec::new();
        longest.take_oldest(wanted, &mut |entry| taken.push(entry));
        let count = taken.len();
        taken.into_iter().for_each(|entry| self.push_back(entry));
        count
    }

    /// Takes what is in the slot of a worker that has begun no turn since the last watch.
    ///
    /// Says also whether any other worker has moved, so that watching goes on.
    pub(crate) fn watch(&self, turns: impl Fn(usize) -> u64) -> (Option<Entry>, bool) {
        let mut moved = false;
        for (index, worker) in self.queues.workers.iter().enumerate() {
            let turns = turns(index);
            let stuck = self.seen[index].replace(turns) == turns;
            if index == self.index {
                continue;
            }
            moved |= !stuck;
            if stuck
                && !mutant("watcher_takes_nothing")
                && let Some(entry) = worker.slot.claim()
            {
                return (Some(entry), true);
            }
        }
        (None, moved && !self.queues.sleep.is_alone())
    }

    /// Takes all that is left in this worker's queues.
    pub(crate) fn drain(&self) -> impl Iterator<Item = Entry> {
        let WorkerQueues { ring, slot, .. } = self.mine();
        std::iter::from_fn(move || slot.take().or_else(|| ring.pop()).or_else(|| self.refill()))
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

impl Drop for LocalQueue {
    fn drop(&mut self) {
        self.disown();
    }
}

/// What an entry is, when it has come out of a queue.
pub(crate) fn runnable(entry: Entry) -> Runnable {
    #[expect(unsafe_code, reason = "an entry is a `Runnable` in its raw form")]
    // SAFETY: (QUEUES-1) the entry was taken from a queue, so it is in our hands alone.
    unsafe {
        Runnable::from_raw(entry)
    }
}

//! The queues of work stealing, and the order in which a worker checks them.
//!
//! A worker takes, in this order: at every other turn the oldest entry of the injector; the newest
//! entry, in its slot (for a bounded time in a row); its oldest entry; a share of the injector;
//! and, if it is the one thief, half of a victim's queue. Its own queue is a ring and, for entries
//! that do not fit into the ring, a backlog. Together they are first in, first out.
//!
//! # Invariants
//! - QUEUES-1: an entry is in one queue, or owned by one worker.
//! - QUEUES-2: a push of a new entry to a ring, a backlog or the injector is followed by
//!   `WorkerSleep::notify`, and to a slot by `WorkerSleep::notify_slot`. The exception is a task that
//!   wakes itself, if at most the newest entry precedes it. An entry that moves between queues is not
//!   announced again: who ends a search or goes to sleep looks at all queues.
//! - QUEUES-3: a ring has one owner at a time (RING-1): the first `LocalQueue` of its index, until
//!   that is dropped or gives it up.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use super::duties::Duties;
use super::injector::Injector;
use super::ring::{CAPACITY, Queued, Ring};
use super::sleep::WorkerSleep;
use super::slot::LifoSlot;
use super::thief::Victims;
use crate::instant::Instant;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{CachePadded, MODEL, mutant};
use crate::task::Runnable;

/// How many turns in a row the newest goes first, while older entries wait, without the clock.
const NEWEST_UNTIMED: u32 = 3;
/// How long the newest goes first after that. Two tasks that wake each other have hundreds of turns
/// in that time. One turn of an older entry may take longer, so busy actors keep most of a worker.
const NEWEST_TIME: Duration = Duration::from_micros(16);
/// The most turns between two readings of the clock meanwhile.
const NEWEST_LOOKS: u32 = 16;

/// The number of lookups between two readings of the clock by a worker that may rebalance.
const REBALANCE_LOOKS: u32 = 64;

pub(crate) struct Queues {
    workers: Box<[Arc<WorkerQueues>]>,
    /// Entries from outside the workers.
    injector: CachePadded<Injector>,
    pub(crate) sleep: WorkerSleep,
}

/// One worker's queues, on separate cache lines.
#[repr(align(128))]
struct WorkerQueues {
    /// A `LocalQueue` owns the ring.
    is_owned: AtomicBool,
    ring: Ring,
    slot: LifoSlot,
    /// The overflow of the ring, which comes after it.
    backlog: Injector,
}

impl WorkerQueues {
    /// Returns the number of entries besides the newest, as a hint. The order of the loads is that
    /// in which entries move, from slot to backlog to ring, so that no moving entry is missed.
    fn len(&self) -> usize {
        self.backlog.len() + self.ring.len()
    }

    /// Returns the number of all entries, as a hint.
    fn len_in_all(&self) -> usize {
        usize::from(self.slot.is_filled()) + self.len()
    }

    /// Takes up to `most` of the oldest entries, on any thread, and passes each to `keep`.
    fn take_oldest(&self, most: usize, keep: &mut impl FnMut(Queued)) {
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
                slot: LifoSlot::new(),
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

    /// Pushes an entry to the injector, and wakes a worker for it.
    pub(crate) fn push_outside(&self, entry: Queued) {
        self.injector.push([entry]);
        self.sleep.notify();
        self.sleep.rouse_napper();
    }

    /// Returns whether the injector has an entry, or a worker has one besides its newest.
    pub(crate) fn has_work(&self) -> bool {
        self.injector.len() > 0 || self.workers.iter().any(|worker| worker.len() > 0)
    }

    pub(super) fn has_outside(&self) -> bool {
        self.injector.len() > 0
    }

    /// Takes an entry from any queue, on behalf of a thread that owns no ring.
    pub(super) fn take_any(&self) -> Option<Queued> {
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

    /// Takes the oldest entry of the injector.
    pub(super) fn pop_outside(&self) -> Option<Queued> {
        self.injector.pop()
    }

    /// Returns whether a worker other than `me` has an entry.
    pub(crate) fn has_any(&self, me: usize) -> bool {
        let mut others = self
            .workers
            .iter()
            .enumerate()
            .filter(|&(index, _)| index != me);
        others.any(|(_, worker)| worker.len_in_all() > 0)
    }

    /// Returns the length of the injector and of each worker's queues, as hints.
    pub(super) fn lens(&self) -> (usize, Vec<usize>) {
        let own = self.workers.iter().map(|worker| worker.len_in_all());
        (self.injector.len(), own.collect())
    }

    /// Takes all entries, on behalf of workers that have ended or are stuck.
    pub(crate) fn take_all(&self) -> Vec<Queued> {
        let mut taken: Vec<_> = std::iter::from_fn(|| self.injector.pop()).collect();
        for worker in &self.workers {
            worker.take_oldest(usize::MAX, &mut |entry| taken.push(entry));
            taken.extend(worker.slot.claim());
        }
        taken
    }
}

/// A worker's own side of the queues, which never leaves the worker's thread.
pub struct LocalQueue {
    queues: Arc<Queues>,
    /// This worker's queues, to avoid the lookup.
    mine: Arc<WorkerQueues>,
    index: usize,
    /// This value owns the ring, and may push and pop there (QUEUES-3).
    owns: Cell<bool>,
    /// How many times the newest may go first until the clock decides.
    newest_left: Cell<u32>,
    /// The last initial value of `newest_left`; 0 before the clock was read.
    newest_step: Cell<u32>,
    /// When the newest must no longer go first.
    newest_until: Cell<Instant>,
    /// Counts lookups, to alternate with the injector.
    looks: Cell<u32>,
    victims: Victims,
    /// The last entry that it took from elsewhere came from the injector.
    pub(super) is_fed: Cell<bool>,
    /// How often it rebalances, and when it does so next.
    rebalance_interval: Option<Duration>,
    rebalance_at: Cell<Instant>,
    /// The turns of each worker at the last watch.
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
            victims: Victims::new(seed),
            is_fed: Cell::new(false),
            // No worker has begun so many turns, so the first watch finds none stuck.
            seen: (0..queues.workers()).map(|_| Cell::new(u64::MAX)).collect(),
            queues: queues.clone(),
        };
        local.own();
        local
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// Returns whether this value owns the ring.
    pub(super) fn owns(&self) -> bool {
        self.owns.get()
    }

    /// Becomes the owner of the ring; returns false if another value of this index owns it.
    pub(super) fn own(&self) -> bool {
        if !self.owns() {
            // Acquire pairs with the Release in `disown`: the last owner's writes are visible.
            let others = self.mine.is_owned.swap(true, Ordering::Acquire);
            self.owns.set(!others);
        }
        self.owns()
    }

    /// Gives up the ring to another value of this index.
    pub(super) fn disown(&self) {
        if self.owns.take() {
            // Release pairs with the Acquire in `own`.
            self.mine.is_owned.store(false, Ordering::Release);
        }
    }

    /// Returns whether this worker's queues and the injector are empty.
    pub(super) fn is_alone(&self) -> bool {
        self.mine.len_in_all() == 0 && self.queues.injector.len() == 0
    }

    /// Returns the number of entries besides the newest.
    pub(super) fn len(&self) -> usize {
        self.mine.len()
    }

    /// Pushes an entry woken on this worker: to the back if by its own turn (`again`), else to the
    /// slot.
    // Inlining is forced: each wake-up calls this, and a call costs 3 % of a yield.
    #[inline(always)]
    pub(crate) fn push(&self, entry: Queued, again: bool) {
        let WorkerQueues { slot, .. } = &*self.mine;
        if again {
            let others = self.mine.len() > 0;
            self.push_back(entry);
            // With nothing but the newest entry beside it, no worker is woken: the two mostly wake
            // each other, and continue sooner here. If this worker is stuck, the watcher checks the
            // slots and then the rings. (`sleep.md`, "A task that wakes itself")
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

    /// Pushes to the back of the ring or, if that is full or has a backlog, of the backlog.
    fn push_back(&self, entry: Queued) {
        let WorkerQueues { ring, backlog, .. } = &*self.mine;
        let refused = if backlog.len() == 0 {
            ring.push(entry).err()
        } else {
            Some(entry)
        };
        if let Some(entry) = refused {
            backlog.push([entry]);
        }
    }

    /// Takes the next entry to run, without checking the other workers.
    #[inline(always)]
    pub(super) fn next(&self, duties: &Duties<'_>) -> Option<Queued> {
        let WorkerQueues { ring, slot, .. } = &*self.mine;
        let look = self.looks.get().wrapping_add(1);
        self.looks.set(look);
        // At every other turn, so that neither the injector nor a busy ring waits for the other.
        if look.is_multiple_of(2) {
            if look.is_multiple_of(REBALANCE_LOOKS) && self.rebalance_interval.is_some() {
                self.rebalance_in_time(duties);
            }
            // The length is checked here, since a call of `pop` costs more.
            if self.queues.injector.len() > 0
                && let Some(entry) = self.queues.injector.pop()
            {
                self.is_fed.set(true);
                duties.own_counters().count_injected();
                return Some(entry);
            }
        }
        if let Some(entry) = slot.take() {
            if let Some(left) = self.newest_left.get().checked_sub(1) {
                self.newest_left.set(left);
                return Some(entry);
            }
            let waits = self.mine.len() > 0;
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

    /// Notes that the next newest entry begins a new chain.
    #[inline(always)]
    fn begin_chain(&self) {
        self.newest_left.set(NEWEST_UNTIMED);
        self.newest_step.set(0);
    }

    /// Returns whether the newest may go first again, and offers older entries to other workers.
    #[cold]
    #[inline(never)]
    fn has_time(&self) -> bool {
        // No time passes in a model.
        if MODEL {
            return false;
        }
        let (now, step) = (Instant::now(), self.newest_step.get());
        if step == 0 {
            // The waiting entry does not belong to a pair: then it would have had its turn by now.
            self.queues.sleep.notify();
            self.newest_until.set(now + NEWEST_TIME);
        } else if now >= self.newest_until.get() {
            return false;
        }
        // The number of turns grows step by step, in case they are long.
        let step = (2 * step).clamp(1, NEWEST_LOOKS);
        self.newest_step.set(step);
        self.newest_left.set(step - 1);
        true
    }

    /// Takes the next entry of the backlog; or, if that is empty, a share of the injector.
    #[inline(never)]
    fn next_behind(&self, duties: &Duties<'_>) -> Option<Queued> {
        self.refill().or_else(|| {
            let injector = &self.queues.injector;
            let share = (injector.len() / self.queues.workers()).min(CAPACITY / 2);
            let first = injector.pop_some(share, |more| self.push_back(more));
            first.inspect(|_| {
                self.is_fed.set(true);
                duties.own_counters().count_injected();
            })
        })
    }

    /// Refills the empty ring from the backlog; returns the oldest entry.
    fn refill(&self) -> Option<Queued> {
        let WorkerQueues { ring, backlog, .. } = &*self.mine;
        backlog.pop_some(CAPACITY / 2, |entry| {
            ring.push(entry)
                .expect("half a ring fits into an empty one");
        })
    }

    /// Becomes the one thief, unless there is one.
    pub(crate) fn try_search(&self) -> bool {
        self.queues.sleep.try_search()
    }

    /// Steals from another worker. Only the one thief calls it, whose own queues are empty.
    pub(crate) fn steal(&self) -> Option<Queued> {
        let own = &self.mine.ring;
        let mut victims = self.victims.of(self.index, self.queues.workers());
        victims.find_map(|victim| {
            let WorkerQueues { ring, backlog, .. } = &*self.queues.workers[victim];
            ring.steal_into(own).or_else(|| {
                let half = (backlog.len() / 2).min(CAPACITY / 2);
                backlog.pop_some(half, |entry| self.push_back(entry))
            })
        })
    }

    /// Rebalances, if the interval has passed.
    #[cold]
    fn rebalance_in_time(&self, duties: &Duties<'_>) {
        let now = Instant::now();
        if let Some(every) = self.rebalance_interval
            && now >= self.rebalance_at.get()
        {
            self.rebalance_at.set(now + every);
            if self.rebalance() > 0 {
                duties.own_counters().count_steal();
            }
        }
    }

    /// Takes half of the surplus of the longest queue, oldest entries first; returns how many.
    ///
    /// So tasks that only wake each other do not share a worker with fewer tasks than the rest.
    fn rebalance(&self) -> usize {
        let lens = self.queues.workers.iter().map(|s| (s.len_in_all(), s));
        let Some((most, longest)) = lens.max_by_key(|(len, _)| *len) else {
            return 0;
        };
        let more = most.saturating_sub(self.mine.len_in_all());
        let wanted = more.div_ceil(2);
        // Into a vector first: the victim's backlog is locked meanwhile, and ours may be needed.
        let mut taken = Vec::new();
        longest.take_oldest(wanted, &mut |entry| taken.push(entry));
        let count = taken.len();
        taken.into_iter().for_each(|entry| self.push_back(entry));
        count
    }

    /// Takes the entry in the slot of a worker that has begun no turn since the last watch. Returns
    /// also whether another worker has moved, so that watching must continue.
    pub(crate) fn watch(&self, turns: impl Fn(usize) -> u64) -> (Option<Queued>, bool) {
        let mut moved = false;
        for (index, worker) in self.queues.workers.iter().enumerate() {
            let turns = turns(index);
            // No turn since the last watch: what its task has woken would wait for the task's end.
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

    /// Takes all remaining entries of this worker's queues.
    pub(crate) fn drain(&self) -> impl Iterator<Item = Queued> {
        let WorkerQueues { ring, slot, .. } = &*self.mine;
        std::iter::from_fn(move || slot.take().or_else(|| ring.pop()).or_else(|| self.refill()))
    }
}

impl Drop for LocalQueue {
    fn drop(&mut self) {
        self.disown();
    }
}

/// Turns an entry that the caller owns into its runnable.
pub(crate) fn runnable(entry: Queued) -> Runnable {
    #[expect(unsafe_code, reason = "an entry is a `Runnable` in its raw form")]
    // SAFETY: (QUEUES-1) the entry was taken from a queue or is not in one yet, so this thread alone
    // owns it.
    unsafe {
        Runnable::from_raw(entry)
    }
}

//! Deadlines: which waker is called when, and when the next one is due.
//!
//! A [`Timers`] belongs to a [`TimerClock`]: a runtime, a pinned thread, or the timer thread of the
//! process, for deadlines that belong to no runtime. That starts on first use, and never ends. In a
//! runtime the keeper sleeps until [`Timers::next`] (`scheduler/sleep.rs`), and each worker calls
//! [`Timers::fire`] between turns. The other two park until [`Timers::until_next`].
//!
//! The table of deadlines is a heap, earliest first, in which each deadline has a slot that knows its
//! index. A deadline that is added or removed far from the top moves few others, and most are: nearly
//! all timers are cancelled before they are due.
//!
//! # Invariants
//! - TIMER-1: `next` is the earliest deadline, written under the lock; `NEVER` if there is none.
//! - TIMER-2: a deadline leaves the table exactly once: fired, or removed.
//! - TIMER-3: no waker is called, cloned or dropped under the lock.
//! - TABLE-1: no entry is earlier than its parent, the entry at `(index - 1) / CHILDREN`.
//! - TABLE-2: the slot of each entry has the entry's index.

mod later;
#[cfg(all(test, greenroom_loom))]
mod loom;
#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::io;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

pub(crate) use later::call_after;
use slab::Slab;

use crate::contain::{KeptWaker, count_thread};
use crate::instant::Instant;
use crate::park::Parker;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, PerProcess, Process, mutant};

const NEVER: u64 = u64::MAX;
/// The most deadlines that are fired in one critical section. A thread that arms or cancels one
/// spins for about that long, and does not wait in the operating system.
const FIRED_AT_ONCE: usize = 4;

pub(crate) struct Timers {
    /// The process whose threads fire the deadlines. In another process, deadlines are neither
    /// accepted nor found.
    process: Process,
    table: Mutex<DeadlineTable>,
    /// The earliest deadline in nanoseconds since the process's epoch.
    next: AtomicU64,
}

/// The kinds of deadlines that are left in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    Nothing,
    Timeouts,
    Events,
}

/// Something that fires timers.
pub(crate) trait TimerClock: Send + Sync {
    /// Returns the table of deadlines.
    fn timers(&self) -> &Timers;
    /// Notes that a deadline was armed on this thread, so that a thread fires it in time.
    ///
    /// `earliest`: it is the earliest one. `waker`: what it wakes.
    fn armed(&self, earliest: bool, waker: &Waker);
    /// Returns when a deadline is fired: at `deadline` or later.
    fn fires_at(&self, deadline: Instant) -> Instant {
        deadline
    }
    /// Notes that a deadline was cancelled, and that no event is left.
    fn emptied(&self) {}
    /// Returns the parker of the thread that fires the deadlines, if it is one thread.
    fn parker(&self) -> Option<&Parker> {
        None
    }
}

impl Timers {
    pub(crate) fn new() -> Self {
        Timers {
            process: Process::current(),
            table: Mutex::new(DeadlineTable::default()),
            next: AtomicU64::new(NEVER),
        }
    }

    /// Adds a deadline; returns its key and whether it is the earliest. Returns `None` if the table
    /// is closed, since no thread would fire it.
    pub(crate) fn insert(
        &self,
        at: Instant,
        kind: DeadlineKind,
        waker: KeptWaker,
    ) -> Option<(DeadlineKey, bool)> {
        if !self.process.is_current() {
            return None;
        }
        let mut table = self.table.lock();
        if table.closed {
            return None;
        }
        let (key, earliest) = table.insert(at, kind, waker);
        self.publish(&table);
        Some((key, earliest))
    }

    /// Returns whether a deadline is in the table and wakes what `waker` wakes.
    pub(crate) fn wakes(&self, key: DeadlineKey, waker: &Waker) -> bool {
        if !self.process.is_current() {
            return false;
        }
        let table = self.table.lock();
        table.waker(key).is_some_and(|left| left.will_wake(waker))
    }

    /// Removes a deadline unless it has fired. Returns true if it was removed, and at most timeouts of
    /// listed asks are left.
    pub(crate) fn remove(&self, key: DeadlineKey) -> bool {
        if !self.process.is_current() {
            return false;
        }
        let mut table = self.table.lock();
        let waker = table.remove(key);
        if waker.is_some() {
            self.publish(&table);
        }
        let missed = table.timeouts() > 0 && mutant("timeouts_are_not_looked_at_alone");
        let last = waker.is_some() && table.has_no_event() && !missed;
        let spare = table.spare();
        drop(table);
        drop((waker, spare));
        last
    }

    /// Fires all deadlines up to `now`; returns how many.
    pub(crate) fn fire(&self, now: Instant) -> usize {
        if !self.is_due(now) {
            return 0;
        }
        let (mut count, mut due) = (0, Vec::with_capacity(FIRED_AT_ONCE));
        loop {
            self.take_due(now, &mut due);
            let fired = due.len();
            due.drain(..).for_each(KeptWaker::wake);
            count += fired;
            if fired < FIRED_AT_ONCE {
                return count;
            }
        }
    }

    /// Takes the earliest deadlines up to `now` into `due`, as many as one critical section may.
    fn take_due(&self, now: Instant, due: &mut Vec<KeptWaker>) {
        let mut table = self.table.lock();
        due.extend(std::iter::from_fn(|| table.pop_due(now)).take(FIRED_AT_ONCE));
        if mutant("fired_stays_in_the_table") {
            for waker in due.clone() {
                table.insert(now, DeadlineKind::Event, waker);
            }
        }
        self.publish(&table);
        let spare = table.spare();
        drop(table);
        drop(spare);
    }

    /// Fires all deadlines and refuses new ones. A future that still waits must use another clock.
    pub(crate) fn close(&self) {
        self.table.lock().closed = true;
        self.fire(Instant::from_nanos(u64::MAX));
    }

    /// Updates `next` after a change of the table.
    fn publish(&self, table: &DeadlineTable) {
        let next = table.first().map_or(NEVER, Instant::nanos);
        // Release pairs with the Acquire loads of `next`.
        self.next.store(next, Ordering::Release);
    }

    /// Returns the number of deadlines.
    pub(crate) fn len(&self) -> usize {
        self.table.lock().heap.len()
    }

    /// Returns whether there is no deadline.
    pub(crate) fn is_empty(&self) -> bool {
        // Acquire pairs with the Release in `publish`.
        self.next.load(Ordering::Acquire) == NEVER
    }

    /// Returns which kinds of deadlines are left.
    pub(crate) fn left(&self) -> Left {
        if self.is_empty() {
            return Left::Nothing;
        }
        if mutant("deadlines_are_looked_at_without_the_lock") {
            return Left::Events;
        }
        // Under the lock: a removal before this is visible here. A thread that removes a deadline
        // after this sees what the caller did before, and checks again.
        let table = self.table.lock();
        match table.has_no_event() {
            true if table.is_empty() => Left::Nothing,
            true => Left::Timeouts,
            false => Left::Events,
        }
    }

    /// Returns whether a deadline is at or before `now`.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        // Acquire pairs with the Release in `publish`.
        self.next.load(Ordering::Acquire) <= now.nanos()
    }

    /// Returns the earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        // Acquire pairs with the Release in `publish`.
        let next = self.next.load(Ordering::Acquire);
        (next != NEVER).then(|| Instant::from_nanos(next))
    }

    /// Returns the time until the earliest deadline, or zero if that has passed.
    pub(crate) fn until_next(&self) -> Option<Duration> {
        self.next().map(|next| next.duration_since(Instant::now()))
    }
}

#[derive(Default)]
struct DeadlineTable {
    heap: Vec<DeadlineEntry>,
    slots: Slab<DeadlineSlot>,
    timeouts: usize,
    /// The serial number of the last deadline, but for its lowest bit.
    last: u64,
    /// No thread fires deadlines any more, so new ones are refused.
    closed: bool,
}

/// What a deadline means for the detection of deadlocks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeadlineKind {
    /// Work to come.
    Event,
    /// The timeout of a listed ask, which may be ended as a deadlock before.
    Timeout,
}

/// A deadline. They are ordered by time, and those of one time as they were added.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct DeadlineEntry {
    at: Instant,
    /// Odd for a [`DeadlineKind::Timeout`].
    serial: u64,
    slot: u32,
}

struct DeadlineSlot {
    index: u32,
    waker: KeptWaker,
}

/// Identifies a deadline, also after it has left the table.
#[derive(Clone, Copy)]
pub(crate) struct DeadlineKey {
    serial: u64,
    slot: u32,
}

impl DeadlineKey {
    fn is_timeout(self) -> bool {
        self.serial % 2 == 1
    }
}

/// The number of entries below an entry. They are on one or two cache lines.
const CHILDREN: usize = 4;
/// An empty table frees its memory if it has room for more deadlines than this. So a few timers
/// allocate nothing, and a burst leaves nothing behind.
const KEPT_MAX: usize = 1024;

impl DeadlineTable {
    /// Adds a deadline; returns its key and whether it is the earliest.
    fn insert(&mut self, at: Instant, kind: DeadlineKind, waker: KeptWaker) -> (DeadlineKey, bool) {
        self.last += 2;
        let is_timeout = kind == DeadlineKind::Timeout;
        self.timeouts += usize::from(is_timeout);
        let serial = self.last + u64::from(is_timeout);
        let slot = number(self.slots.insert(DeadlineSlot { index: 0, waker }));
        let index = self.heap.len();
        let entry = DeadlineEntry { at, serial, slot };
        self.heap.push(entry);
        self.rise(index, entry);
        (DeadlineKey { serial, slot }, self.heap[0].serial == serial)
    }

    /// Returns the waker of a deadline, if that is in the table.
    fn waker(&self, key: DeadlineKey) -> Option<&KeptWaker> {
        let slot = self.slots.get(key.slot as usize)?;
        let entry = self.heap[slot.index as usize];
        (entry.serial == key.serial).then_some(&slot.waker)
    }

    /// Removes a deadline and returns its waker, if it is in the table.
    fn remove(&mut self, key: DeadlineKey) -> Option<KeptWaker> {
        self.waker(key)?;
        Some(self.take(self.slots[key.slot as usize].index as usize))
    }

    /// Removes the earliest deadline and returns its waker, if it is due at `now`.
    fn pop_due(&mut self, now: Instant) -> Option<KeptWaker> {
        (self.first()? <= now).then(|| self.take(0))
    }

    /// Returns the earliest deadline.
    fn first(&self) -> Option<Instant> {
        Some(self.heap.first()?.at)
    }

    fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Returns whether all deadlines are timeouts of asks.
    fn has_no_event(&self) -> bool {
        self.heap.len() == self.timeouts
    }

    /// Returns the number of timeouts of asks.
    fn timeouts(&self) -> usize {
        self.timeouts
    }

    /// Returns the memory of an empty table, to be freed, if it is much.
    fn spare(&mut self) -> Option<impl Sized + use<>> {
        let is_large = self.heap.is_empty() && self.heap.capacity() > KEPT_MAX;
        is_large.then(|| {
            (
                std::mem::take(&mut self.heap),
                std::mem::take(&mut self.slots),
            )
        })
    }

    /// Removes the entry at `index`; the last entry takes its index.
    fn take(&mut self, index: usize) -> KeptWaker {
        let taken = self.heap.swap_remove(index);
        if let Some(&moved) = self.heap.get(index) {
            if index > 0 && moved < self.heap[(index - 1) / CHILDREN] {
                self.rise(index, moved);
            } else {
                self.sink(index, moved);
            }
        }
        self.timeouts -= (taken.serial % 2) as usize;
        self.slots.remove(taken.slot as usize).waker
    }

    /// Moves `entry` up from `index`, below the first parent that is not later.
    fn rise(&mut self, mut index: usize, entry: DeadlineEntry) {
        while index > 0 {
            let parent = (index - 1) / CHILDREN;
            if self.heap[parent] < entry {
                break;
            }
            self.put(index, self.heap[parent]);
            index = parent;
        }
        self.put(index, entry);
    }

    /// Moves `entry` down from `index`, above the first children that are all later.
    fn sink(&mut self, mut index: usize, entry: DeadlineEntry) {
        loop {
            let first = CHILDREN * index + 1;
            let children = first..(first + CHILDREN).min(self.heap.len());
            let Some(least) = children.min_by_key(|&child| self.heap[child]) else {
                break;
            };
            if entry < self.heap[least] {
                break;
            }
            self.put(index, self.heap[least]);
            index = least;
        }
        self.put(index, entry);
    }

    /// Writes `entry` to `index`, and the index to its slot (TABLE-2).
    fn put(&mut self, index: usize, entry: DeadlineEntry) {
        self.heap[index] = entry;
        self.slots[entry.slot as usize].index = number(index);
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than 2^32 deadlines")
}

/// A pending deadline. Dropping it removes the deadline from its table.
pub(crate) struct Armed {
    clock: Arc<dyn TimerClock>,
    key: DeadlineKey,
}

impl Armed {
    /// Adds a deadline to `clock`; returns `None` if that is closed.
    pub(crate) fn new(
        clock: Arc<dyn TimerClock>,
        at: Instant,
        kind: DeadlineKind,
        waker: &Waker,
    ) -> Option<Self> {
        let at = clock.fires_at(at);
        let (key, earliest) = clock.timers().insert(at, kind, KeptWaker::new(waker))?;
        clock.armed(earliest, waker);
        Some(Armed { clock, key })
    }

    /// Returns whether it is the timeout of a listed ask.
    pub(crate) fn is_timeout(&self) -> bool {
        self.key.is_timeout()
    }

    pub(crate) fn is_on(&self, clock: &Arc<dyn TimerClock>) -> bool {
        Arc::ptr_eq(&self.clock, clock)
    }

    /// Returns whether the deadline wakes what `waker` wakes, and has not fired. Otherwise a new
    /// one must be armed, since another thread may have to fire it.
    pub(crate) fn wakes(&self, waker: &Waker) -> bool {
        self.clock.timers().wakes(self.key, waker)
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        if self.clock.timers().remove(self.key) {
            self.clock.emptied();
        }
    }
}

pub(crate) struct TimerThread {
    timers: Timers,
    parker: Parker,
}

impl TimerThread {
    /// Returns the clock of the thread, which is started if there is none.
    ///
    /// # Errors
    /// That of the operating system, if it does not start the thread.
    pub(crate) fn get() -> io::Result<Arc<dyn TimerClock>> {
        static THREAD: PerProcess<Mutex<Option<Arc<TimerThread>>>> = PerProcess::new();
        let mut thread = THREAD.get_or_init(|| Mutex::new(None)).lock();
        if let Some(thread) = &*thread {
            return Ok(thread.clone());
        }
        let clock = Arc::new(TimerThread {
            timers: Timers::new(),
            parker: Parker::new(),
        });
        let own = clock.clone();
        let builder = std::thread::Builder::new().name("greenroom-timer".into());
        builder.spawn(move || {
            count_thread();
            own.serve();
        })?;
        *thread = Some(clock.clone());
        Ok(clock)
    }

    fn serve(&self) {
        loop {
            self.timers.fire(Instant::now());
            self.parker.park(self.timers.until_next());
        }
    }
}

impl TimerClock for TimerThread {
    fn timers(&self) -> &Timers {
        &self.timers
    }

    fn armed(&self, earliest: bool, _waker: &Waker) {
        if earliest {
            self.parker.unpark();
        }
    }
}

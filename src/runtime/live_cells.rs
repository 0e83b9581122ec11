//! The live actors and tasks of a runtime, needed to stop and to cancel all of them.
//!
//! Cells (actors) enter when they are created. A plain task leaves a waker when it first goes
//! pending, so a task that completes in its first poll costs nothing here. Both are kept in shards,
//! to keep contention between workers low.
//!
//! # Invariants
//! - LIVE-1: a cell in a table has not ended and so is alive. It is removed under the lock of its
//!   shard.
//! - LIVE-2: nothing enters a table that is closed, so it only shrinks.
//! - LIVE-3: no user code runs under a lock: wakers and cells are taken out first.

#![expect(unsafe_code, reason = "pointers to live cells; see LIVE-1")]

mod marks;
mod table;
#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

pub(crate) use marks::{CellMarks, MarkedWalk};
use slab::Slab;
use table::{CellTable, NextCell};

use crate::contain::KeptWaker;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{CachePadded, Mutex, MutexGuard, mutant};
use crate::task::{
    self, Ending, Header, LiveIndex, Look, NotedWaits, SampledTimes, SampledTurns, TaskInfo,
    TaskKey,
};

pub(crate) struct LiveCells {
    shards: Box<[CachePadded<Mutex<CellShard>>]>,
    /// Deals shards to threads that are not workers.
    next: AtomicUsize,
    /// The largest number of cells of a shard, and of wakers: as many as there are indices.
    most: usize,
    /// The name of the only thread that runs them, if there is one.
    thread: Option<Arc<str>>,
}

/// The samples of a cell, and how often its count of turns began anew.
type CellSamples = (SampledTurns, u32);

#[derive(Default)]
struct CellShard {
    closed: bool,
    cells: CellTable,
    /// What the cells wait for, by their keys, each with the number of its cell. A cell that has
    /// ended may still be here.
    waits: Vec<(u64, NotedWaits)>,
    /// The samples of cells that had enough turns.
    samples: BTreeMap<usize, CellSamples>,
    /// How many timed turns took how long, also of cells that have ended.
    turns: [u64; 8],
    /// The time of those of cells that have ended.
    ended: Duration,
    wakers: Slab<KeptWaker>,
}

// SAFETY: (LIVE-1) the cells behind the pointers may be used on any thread, or are only asked to
// stop.
unsafe impl Send for CellShard {}

impl LiveCells {
    pub(crate) fn new(shards: usize) -> Self {
        LiveCells {
            shards: (0..shards)
                .map(|_| CachePadded(Mutex::new(CellShard::default())))
                .collect(),
            next: AtomicUsize::new(0),
            most: LiveIndex::COUNT / shards,
            thread: None,
        }
    }

    /// Creates the list of what one thread of this name runs.
    pub(crate) fn of_thread(name: &str) -> Self {
        LiveCells {
            thread: Some(name.into()),
            ..LiveCells::new(1)
        }
    }

    /// Locks the shard of this worker, or any shard for a thread that is not a worker. A full shard
    /// is skipped for the next one with room.
    fn deal(
        &self,
        worker: Option<usize>,
        len: impl Fn(&CellShard) -> usize,
    ) -> (usize, MutexGuard<'_, CellShard>) {
        let shards = self.shards.len();
        // Relaxed: the counter only spreads the threads.
        let first = worker.unwrap_or_else(|| self.next.fetch_add(1, Ordering::Relaxed)) % shards;
        (first..first + shards)
            .map(|index| (index % shards, self.shards[index % shards].lock()))
            .find(|(_, shard)| len(shard) < self.most)
            .expect("fewer than 2³² tasks fit into memory")
    }

    fn live_index(&self, key: usize, shard: usize) -> LiveIndex {
        LiveIndex::new(key * self.shards.len() + shard)
    }

    fn key_and_shard(&self, live_index: &LiveIndex) -> (usize, usize) {
        let (index, shards) = (live_index.index(), self.shards.len());
        (index / shards, index % shards)
    }

    // -- cells --------------------------------------------------------------------------------

    /// Adds a new cell. Returns false if the table is closed.
    pub(crate) fn enter(&self, cell: NonNull<Header>, worker: Option<usize>) -> bool {
        let (index, mut shard) = self.deal(worker, |shard| shard.cells.len());
        if shard.closed {
            return false;
        }
        let live_index = self.live_index(shard.cells.insert(cell), index);
        drop(shard);
        // SAFETY: alive, since it has not begun; only the end of the cell reads the live index.
        unsafe { cell.as_ref() }.live_index.set(Some(live_index));
        true
    }

    /// Removes the cell.
    pub(crate) fn leave(&self, cell: NonNull<Header>) {
        // SAFETY: (LIVE-1) not ended yet; this is its end, and the live index was written before
        // the cell could run.
        let live_index = unsafe { cell.as_ref() }.live_index.take();
        let live_index = live_index.expect("a cell that has entered has a live index");
        let (key, index) = self.key_and_shard(&live_index);
        let mut shard = self.shards[index].lock();
        if !shard.samples.is_empty() {
            let samples = shard.samples.remove(&key);
            let busy = samples.map_or(Duration::ZERO, |(sampled, _)| sampled.busy);
            shard.ended = shard.ended.saturating_add(busy);
        }
        let unneeded = shard.cells.remove(key);
        drop(shard);
        drop(unneeded);
    }

    /// Returns where a cell is. Called by its run.
    fn place(&self, header: &Header) -> Option<(usize, usize)> {
        let live_index = header.live_index.take()?;
        let place = self.key_and_shard(&live_index);
        header.live_index.set(Some(live_index));
        Some(place)
    }

    /// Notes what the cell waits for. Called by its run.
    pub(crate) fn note_waits(&self, cell: NonNull<Header>, waits: NotedWaits) {
        // SAFETY: (LIVE-1) not ended, since it runs; only its run reads the live index.
        let header = unsafe { cell.as_ref() };
        let Some((key, index)) = self.place(header) else {
            return;
        };
        let mut shard = self.shards[index].lock();
        if shard.waits.len() <= key {
            shard.waits.resize(key + 1, (0, NotedWaits::NONE));
        }
        shard.waits[key] = (header.id(), waits);
    }

    /// Notes how long a turn took or, without a time, that the count of turns began anew. Called by the
    /// cell's run.
    pub(crate) fn sampled(&self, cell: NonNull<Header>, took: Option<Duration>) {
        // SAFETY: (LIVE-1) as in `note_waits`.
        let Some((key, index)) = self.place(unsafe { cell.as_ref() }) else {
            return;
        };
        let mut shard = self.shards[index].lock();
        let shard = &mut *shard;
        let (sampled, anew) = shard.samples.entry(key).or_default();
        match took {
            Some(took) => {
                sampled.add(took);
                shard.turns[SampledTimes::index(took)] += 1;
            }
            None => *anew += 1,
        }
    }

    /// Returns the times of all turns that were timed.
    pub(crate) fn turn_times(&self) -> SampledTimes {
        let mut times = SampledTimes::default();
        for shard in &self.shards {
            let shard = shard.lock();
            let busy = shard.samples.values().map(|(sampled, _)| sampled.busy);
            let busy = busy.fold(shard.ended, Duration::saturating_add);
            times.add(&shard.turns, busy);
        }
        times
    }

    /// Returns what the cells wait for that waited for something else than a message at the end of
    /// their last turn, by the numbers of the cells. Other cells may have old entries.
    pub(crate) fn noted_waits(&self) -> Vec<(u64, NotedWaits)> {
        let waits = |shard: &CachePadded<Mutex<CellShard>>| shard.lock().waits.clone();
        self.shards.iter().flat_map(waits).collect()
    }

    pub(crate) fn cells(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.lock().cells.len())
            .sum()
    }

    /// Refuses new cells from now on.
    pub(crate) fn close_to_cells(&self) {
        for shard in &self.shards {
            shard.lock().closed = true;
        }
    }

    /// Asks every cell to end by itself.
    pub(crate) fn stop_cells(&self) {
        self.for_each_cell(|cell| {
            // SAFETY: `for_each_cell` holds a reference meanwhile.
            unsafe { (cell.as_ref().vtable.end)(cell, Ending::Stop) }
        });
    }

    /// Cancels every cell that is not in `spare`. Returns how many.
    pub(crate) fn cancel_cells(&self, spare: &[TaskKey]) -> usize {
        let mut cancelled = 0;
        self.for_each_cell(|cell| {
            if !spare.contains(&TaskKey::of_cell(cell)) {
                cancelled += 1;
                // SAFETY: `for_each_cell` holds a reference meanwhile.
                unsafe { (cell.as_ref().vtable.end)(cell, Ending::Cancel) }
            }
        });
        cancelled
    }

    /// Wakes the cells with these numbers.
    pub(crate) fn wake_cells(&self, numbers: &BTreeSet<u64>) {
        self.for_each_cell(|cell| {
            // SAFETY: `for_each_cell` holds a reference meanwhile.
            unsafe {
                if numbers.contains(&cell.as_ref().id()) {
                    Header::waker(cell).wake_by_ref();
                }
            }
        });
    }

    /// Drops the messages of cells that are cancelled and have not ended.
    pub(crate) fn refuse_cells(&self, spare: &[TaskKey]) {
        self.for_each_cell(|cell| {
            if !spare.contains(&TaskKey::of_cell(cell)) {
                // SAFETY: `for_each_cell` holds a reference meanwhile.
                unsafe { (cell.as_ref().vtable.end)(cell, Ending::Refuse) }
            }
        });
    }

    /// Returns whether any of these tasks and actors is here.
    pub(crate) fn holds(&self, keys: &[TaskKey]) -> bool {
        !keys.is_empty()
            && self.shards.iter().any(|shard| {
                let shard = shard.lock();
                let mut tasks = shard
                    .wakers
                    .iter()
                    .map(|(_, waker)| TaskKey::of_task(waker.as_waker()));
                tasks.any(|key| keys.contains(&key))
                    || shard
                        .cells
                        .iter()
                        .any(|cell| keys.contains(&TaskKey::of_cell(cell)))
            })
    }

    /// Returns how many tasks and actors are here besides these.
    pub(crate) fn others(&self, keys: &[TaskKey]) -> usize {
        let others = |shard: &CachePadded<Mutex<CellShard>>| {
            let shard = shard.lock();
            let tasks = shard
                .wakers
                .iter()
                .map(|(_, waker)| TaskKey::of_task(waker.as_waker()));
            let all = tasks.chain(shard.cells.iter().map(TaskKey::of_cell));
            all.filter(|key| !keys.contains(key)).count()
        };
        self.shards.iter().map(others).sum()
    }

    /// Describes every cell that is not in `spare`: its identity, and its state at this moment.
    pub(crate) fn describe_cells(&self, spare: &[TaskKey], mut each: impl FnMut(TaskInfo, Look)) {
        self.for_each_held(|cell, samples| {
            if spare.contains(&TaskKey::of_cell(cell)) {
                return;
            }
            // SAFETY: `for_each_held` holds a reference meanwhile.
            let (info, mut look) = unsafe {
                let vtable = cell.as_ref().vtable;
                ((vtable.info)(cell), (vtable.look)(cell))
            };
            look.add_samples(samples);
            look.thread.clone_from(&self.thread);
            each(info, look);
        });
    }

    pub(crate) fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Calls `peek` with the next cell of a shard, from this key on, under the lock of the shard. So
    /// `peek` must call no user code (LIVE-3).
    pub(crate) fn peek<R>(
        &self,
        shard: usize,
        from: usize,
        peek: impl FnOnce(usize, PeekedCell<'_>) -> R,
    ) -> NextCell<R> {
        let shard = self.shards[shard].lock();
        match shard.cells.next(from) {
            NextCell::Cell(key, cell) => {
                let cell = PeekedCell {
                    cell,
                    key,
                    shard: &shard,
                    thread: &self.thread,
                };
                NextCell::Cell(key, peek(key, cell))
            }
            NextCell::Free(next) => NextCell::Free(next),
            NextCell::End => NextCell::End,
        }
    }

    fn for_each_cell(&self, mut each: impl FnMut(NonNull<Header>)) {
        self.for_each_held(|cell, _| each(cell));
    }

    fn for_each_held(&self, mut each: impl FnMut(NonNull<Header>, Option<CellSamples>)) {
        for shard in &self.shards {
            let cells = shard.lock().hold_cells();
            for (cell, samples) in cells {
                each(cell, samples);
                // SAFETY: the reference that `hold_cells` took.
                unsafe { Header::release(cell) };
            }
        }
    }

    // -- plain tasks --------------------------------------------------------------------------

    /// Keeps the waker of a task that has gone pending, until its live index is given back. Returns
    /// `None` if everything is being cancelled: the task must wake itself, so that its executor
    /// drops it.
    pub(crate) fn track(
        &self,
        waker: &Waker,
        worker: Option<usize>,
        is_over: impl FnOnce() -> bool,
    ) -> Option<LiveIndex> {
        let waker = KeptWaker::new(waker);
        let (index, mut shard) = self.deal(worker, |shard| shard.wakers.len());
        // Checked under the lock. A thread that cancels everything sets the flag first and then
        // takes the lock. So it finds the waker, or this check sees the flag.
        if !mutant("tracked_without_a_look") && is_over() {
            return None;
        }
        Some(self.live_index(shard.wakers.insert(waker), index))
    }

    pub(crate) fn untrack(&self, live_index: LiveIndex) {
        let (key, index) = self.key_and_shard(&live_index);
        let mut shard = self.shards[index].lock();
        let waker = shard.wakers.try_remove(key);
        drop(shard);
        drop(waker);
    }

    /// Describes every task that is kept here.
    pub(crate) fn describe_tasks(&self, each: &mut dyn FnMut(TaskInfo)) {
        for shard in &self.shards {
            let infos = |shard: &CellShard| -> Vec<TaskInfo> {
                let wakers = shard.wakers.iter();
                wakers
                    .filter_map(|(_, kept)| task::info_of(kept.as_waker()))
                    .collect()
            };
            let infos = infos(&shard.lock());
            infos.into_iter().for_each(&mut *each);
        }
    }

    pub(crate) fn tasks(&self) -> usize {
        let count = |shard: &CachePadded<Mutex<CellShard>>| shard.lock().wakers.len();
        self.shards.iter().map(count).sum()
    }

    /// Wakes every task that is not in `spare`. Returns how many.
    pub(crate) fn wake_tasks(&self, spare: &[TaskKey]) -> usize {
        let mut woken = 0;
        for shard in &self.shards {
            // (LIVE-3) Taken out first.
            let wakers: Vec<KeptWaker> = shard
                .lock()
                .wakers
                .iter()
                .map(|(_, kept)| kept.clone())
                .collect();
            for waker in wakers
                .into_iter()
                .filter(|waker| !spare.contains(&TaskKey::of_task(waker.as_waker())))
            {
                woken += 1;
                waker.wake();
            }
        }
        woken
    }
}

impl CellShard {
    /// Returns all cells, each with a reference, so that they can be used without the lock, and with
    /// its samples.
    fn hold_cells(&self) -> Vec<(NonNull<Header>, Option<CellSamples>)> {
        let hold = |(key, cell): (usize, NonNull<Header>)| {
            // SAFETY: (LIVE-1) in the table, so not ended.
            unsafe { cell.as_ref() }.retain();
            (cell, self.samples.get(&key).copied())
        };
        self.cells.entries().map(hold).collect()
    }
}

/// A cell that is looked at under the lock of its shard. So it needs no reference (LIVE-1).
pub(crate) struct PeekedCell<'a> {
    cell: NonNull<Header>,
    key: usize,
    shard: &'a CellShard,
    thread: &'a Option<Arc<str>>,
}

impl PeekedCell<'_> {
    fn header(&self) -> &Header {
        // SAFETY: (LIVE-1) in the table, whose lock is held, so not ended.
        unsafe { self.cell.as_ref() }
    }

    pub(crate) fn id(&self) -> u64 {
        self.header().id()
    }

    pub(crate) fn info(&self) -> TaskInfo {
        // SAFETY: (LIVE-1) not ended, so it has a reference to itself, which it keeps meanwhile.
        unsafe { (self.header().vtable.info)(self.cell) }
    }

    /// Returns a snapshot of the cell, as if the look had a reference.
    pub(crate) fn look(&self) -> Look {
        // SAFETY: (LIVE-1) as in `info`.
        let mut look = unsafe { (self.header().vtable.look)(self.cell) };
        look.others += 1;
        look.thread.clone_from(self.thread);
        look.add_samples(self.shard.samples.get(&self.key).copied());
        look
    }

    /// Returns what the cell waited for at the end of its last turn, unless that was a message.
    pub(crate) fn waits(&self) -> NotedWaits {
        match self.shard.waits.get(self.key) {
            Some((id, waits)) if *id == self.id() => *waits,
            _ => NotedWaits::NONE,
        }
    }
}

/// An actor, as it is at a look.
pub(crate) struct SeenActor {
    pub(crate) info: TaskInfo,
    pub(crate) look: Look,
    pub(crate) waits: NotedWaits,
}

//! What lives in a runtime and has not ended: needed to stop and to cancel it all.
//!
//! Cells (actors) are linked in lists through their headers; plain tasks leave a waker when they
//! first go pending, so a task that ends in its first poll costs nothing here. Both are kept in
//! shards, so that workers seldom meet.
//!
//! # Invariants
//! - G1: links are touched only under the lock of the cell's shard; a cell in a list has not ended
//!   and so is alive.
//! - G2: once a registry is closed nothing enters it, so it only gets emptier.
//! - G3: no user code runs under a lock: wakers and cells are taken out first.
#![expect(unsafe_code, reason = "an intrusive list of cells; see G1")]

use std::ptr::NonNull;
use std::task::Waker;

use slab::Slab;

use super::builder::WORKERS_MAX;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Apart, Mutex};
use crate::task::{Header, Key, TaskInfo, Ticket};

/// A cell notes its shard in 16 bits; there is one for each worker and one more.
const _: () = assert!(WORKERS_MAX < u16::MAX as usize);

pub(crate) struct Registry {
    shards: Box<[Apart<Mutex<Shard>>]>,
    /// Deals shards out to threads that are no workers.
    next: AtomicUsize,
}

#[derive(Default)]
struct Shard {
    closed: bool,
    first: Option<NonNull<Header>>,
    count: usize,
    wakers: Slab<Waker>,
}

// SAFETY: (G1) the cells behind the pointers are made for any thread, or are only asked to stop.
unsafe impl Send for Shard {}

impl Registry {
    pub(crate) fn new(shards: usize) -> Self {
        Registry {
            shards: (0..shards)
                .map(|_| Apart(Mutex::new(Shard::default())))
                .collect(),
            next: AtomicUsize::new(0),
        }
    }

    /// The shard of this worker, or any one for a thread that is none.
    fn deal(&self, worker: Option<usize>) -> usize {
        // Relaxed: it only spreads.
        worker.unwrap_or_else(|| self.next.fetch_add(1, Ordering::Relaxed)) % self.shards.len()
    }

    // -- cells --------------------------------------------------------------------------------

    /// Adds a new cell; false if the registry is closed.
    pub(crate) fn enter(&self, cell: NonNull<Header>, worker: Option<usize>) -> bool {
        let index = self.deal(worker);
        let mut shard = self.shards[index].lock();
        if shard.closed {
            return false;
        }
        // SAFETY: (G1) alive, and its links are ours under the lock.
        unsafe {
            cell.as_ref().shard.set(index as u16);
            cell.as_ref().links.next.set(shard.first);
            if let Some(first) = shard.first {
                first.as_ref().links.previous.set(Some(cell));
            }
        }
        shard.first = Some(cell);
        shard.count += 1;
        true
    }

    /// Takes the cell out.
    pub(crate) fn leave(&self, cell: NonNull<Header>) {
        // SAFETY: (G1) not ended yet; `shard` was written before it could be run.
        let Header { links, shard, .. } = unsafe { cell.as_ref() };
        let mut shard = self.shards[usize::from(shard.get())].lock();
        let (previous, next) = (links.previous.take(), links.next.take());
        // SAFETY: (G1) neighbours in a list are alive.
        unsafe {
            match previous {
                Some(previous) => previous.as_ref().links.next.set(next),
                None => shard.first = next,
            }
            if let Some(next) = next {
                next.as_ref().links.previous.set(previous);
            }
        }
        shard.count -= 1;
    }

    pub(crate) fn cells(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().count).sum()
    }

    /// Lets nothing enter any more.
    pub(crate) fn close_to_cells(&self) {
        for shard in &self.shards {
            shard.lock().closed = true;
        }
    }

    /// Asks every cell to end by itself.
    pub(crate) fn stop_cells(&self) {
        self.for_each_cell(|cell| {
            // SAFETY: `for_each_cell` holds a reference meanwhile.
            unsafe { (cell.as_ref().vtable.stop)(cell) }
        });
    }

    /// Has every cell but those to `spare` cancelled; says how many that are.
    pub(crate) fn cancel_cells(&self, spare: &[Key]) -> usize {
        let mut cancelled = 0;
        self.for_each_cell(|cell| {
            if !spare.contains(&Key::of_cell(cell)) {
                cancelled += 1;
                // SAFETY: `for_each_cell` holds a reference meanwhile.
                unsafe { (cell.as_ref().vtable.cancel)(cell) }
            }
        });
        cancelled
    }

    /// Whether any of these is here.
    pub(crate) fn holds(&self, keys: &[Key]) -> bool {
        !keys.is_empty()
            && self.shards.iter().any(|shard| {
                let shard = shard.lock();
                let mut tasks = shard.wakers.iter().map(|(_, waker)| Key::of_task(waker));
                tasks.any(|key| keys.contains(&key))
                    || shard.cells().any(|cell| keys.contains(&Key::of_cell(cell)))
            })
    }

    /// How much is here besides these.
    pub(crate) fn others(&self, keys: &[Key]) -> usize {
        let others = |shard: &Apart<Mutex<Shard>>| {
            let shard = shard.lock();
            let tasks = shard.wakers.iter().map(|(_, waker)| Key::of_task(waker));
            let all = tasks.chain(shard.cells().map(Key::of_cell));
            all.filter(|key| !keys.contains(key)).count()
        };
        self.shards.iter().map(others).sum()
    }

    /// Tells of every cell what may be known of it, and how many messages wait in its mailbox.
    pub(crate) fn describe_cells(&self, mut each: impl FnMut(TaskInfo, usize)) {
        self.for_each_cell(|cell| {
            // SAFETY: `for_each_cell` holds a reference meanwhile.
            let (info, waiting) = unsafe {
                let vtable = cell.as_ref().vtable;
                ((vtable.info)(cell), (vtable.waiting)(cell))
            };
            each(info, waiting);
        });
    }

    fn for_each_cell(&self, mut each: impl FnMut(NonNull<Header>)) {
        for shard in &self.shards {
            let cells = shard.lock().hold_cells();
            for cell in cells {
                each(cell);
                // SAFETY: the reference that `hold_cells` took.
                unsafe { (cell.as_ref().vtable.release)(cell) };
            }
        }
    }

    // -- plain tasks --------------------------------------------------------------------------

    /// Keeps the waker of a task that has gone pending, until its ticket is given back. `None` if
    /// everything is being cancelled: the task must wake itself, to be dropped by its executor.
    pub(crate) fn track(
        &self,
        waker: &Waker,
        worker: Option<usize>,
        is_over: impl FnOnce() -> bool,
    ) -> Option<Ticket> {
        let index = self.deal(worker);
        let waker = waker.clone();
        let mut shard = self.shards[index].lock();
        if is_over() {
            return None;
        }
        let key = shard.wakers.insert(waker);
        Some(Ticket::new(key * self.shards.len() + index))
    }

    pub(crate) fn untrack(&self, ticket: Ticket) {
        let ticket = ticket.index();
        let mut shard = self.shards[ticket % self.shards.len()].lock();
        let waker = shard.wakers.try_remove(ticket / self.shards.len());
        drop(shard);
        drop(waker);
    }

    pub(crate) fn tasks(&self) -> usize {
        let count = |shard: &Apart<Mutex<Shard>>| shard.lock().wakers.len();
        self.shards.iter().map(count).sum()
    }

    /// Wakes every task that is here, but for those to `spare`; says how many these are.
    pub(crate) fn wake_tasks(&self, spare: &[Key]) -> usize {
        let mut woken = 0;
        for shard in &self.shards {
            let wakers: Vec<Waker> = shard
                .lock()
                .wakers
                .iter()
                .map(|(_, waker)| waker.clone())
                .collect();
            for waker in wakers
                .into_iter()
                .filter(|waker| !spare.contains(&Key::of_task(waker)))
            {
                woken += 1;
                waker.wake();
            }
        }
        woken
    }
}

impl Shard {
    fn cells(&self) -> impl Iterator<Item = NonNull<Header>> {
        std::iter::successors(self.first, |cell| {
            // SAFETY: (G1) in the list, so alive.
            unsafe { cell.as_ref().links.next.get() }
        })
    }

    /// All cells of the list, each with a reference so that it can be used without the lock.
    fn hold_cells(&self) -> Vec<NonNull<Header>> {
        let hold = |cell: &NonNull<Header>| {
            // SAFETY: (G1) in the list, so not ended.
            unsafe { cell.as_ref().retain() }
        };
        self.cells().inspect(hold).collect()
    }
}

//! The deadlines of a [`Timers`](super::Timers), earliest first: a heap, in which each deadline has
//! a slot that knows its index.
//!
//! A deadline that is added or removed far from the top moves few others, and most are: nearly all
//! timers are cancelled before they are due.
//!
//! # Invariants
//! - TABLE-1: no entry is earlier than its parent, the entry at `(index - 1) / CHILDREN`.
//! - TABLE-2: the slot of each entry has the entry's index.

#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use slab::Slab;

use crate::instant::Instant;
use crate::waker::KeptWaker;

#[derive(Default)]
pub(super) struct DeadlineTable {
    heap: Vec<DeadlineEntry>,
    slots: Slab<DeadlineSlot>,
    time_outs: usize,
    /// The serial number of the last deadline, but for its lowest bit.
    last: u64,
    /// No thread fires deadlines any more, so new ones are refused.
    pub(super) closed: bool,
}

/// What a deadline means for the detection of deadlocks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeadlineKind {
    /// Work to come.
    Event,
    /// The timeout of a listed ask, which may be ended as a deadlock before.
    TimeOut,
}

/// A deadline. They are ordered by time, and those of one time as they were added.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct DeadlineEntry {
    at: Instant,
    /// Odd for a [`DeadlineKind::TimeOut`].
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

/// The number of entries below an entry. They are on one or two cache lines.
const CHILDREN: usize = 4;
/// An empty table frees its memory if it has room for more deadlines than this. So a few timers
/// allocate nothing, and a burst leaves nothing behind.
const KEPT_MAX: usize = 1024;

impl DeadlineTable {
    /// Adds a deadline; returns its key and whether it is the earliest.
    pub(super) fn insert(
        &mut self,
        at: Instant,
        kind: DeadlineKind,
        waker: KeptWaker,
    ) -> (DeadlineKey, bool) {
        self.last += 2;
        let is_time_out = kind == DeadlineKind::TimeOut;
        self.time_outs += usize::from(is_time_out);
        let serial = self.last + u64::from(is_time_out);
        let slot = number(self.slots.insert(DeadlineSlot { index: 0, waker }));
        let index = self.heap.len();
        let entry = DeadlineEntry { at, serial, slot };
        self.heap.push(entry);
        self.rise(index, entry);
        (DeadlineKey { serial, slot }, self.heap[0].serial == serial)
    }

    /// Returns the waker of a deadline, if that is in the table.
    pub(super) fn waker(&self, key: DeadlineKey) -> Option<&KeptWaker> {
        let slot = self.slots.get(key.slot as usize)?;
        let entry = self.heap[slot.index as usize];
        (entry.serial == key.serial).then_some(&slot.waker)
    }

    /// Removes a deadline and returns its waker, if it is in the table.
    pub(super) fn remove(&mut self, key: DeadlineKey) -> Option<KeptWaker> {
        self.waker(key)?;
        Some(self.take(self.slots[key.slot as usize].index as usize))
    }

    /// Removes the earliest deadline and returns its waker, if it is due at `now`.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<KeptWaker> {
        (self.first()? <= now).then(|| self.take(0))
    }

    /// Returns the earliest deadline.
    pub(super) fn first(&self) -> Option<Instant> {
        Some(self.heap.first()?.at)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Returns whether all deadlines are timeouts of asks.
    pub(super) fn has_no_event(&self) -> bool {
        self.heap.len() == self.time_outs
    }

    /// Returns the number of timeouts of asks.
    pub(super) fn time_outs(&self) -> usize {
        self.time_outs
    }

    /// Returns the memory of an empty table, to be freed, if it is much.
    pub(super) fn spare(&mut self) -> Option<impl Sized + use<>> {
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
        self.time_outs -= (taken.serial % 2) as usize;
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

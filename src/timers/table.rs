//! The deadlines of a [`Timers`](super::Timers), earliest first: a heap, in which each deadline has
//! a slot that knows its place.
//!
//! A deadline that is added or removed far from the top moves few others, and most are: nearly all
//! timers are cancelled before they are due.
//!
//! # Invariants
//! - TABLE-1: no entry is earlier than its parent, the entry at `(place - 1) / CHILDREN`.
//! - TABLE-2: the slot of each entry has the entry's place.

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
    place: u32,
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
        let slot = number(self.slots.insert(DeadlineSlot { place: 0, waker }));
        let place = self.heap.len();
        let entry = DeadlineEntry { at, serial, slot };
        self.heap.push(entry);
        self.rise(place, entry);
        (DeadlineKey { serial, slot }, self.heap[0].serial == serial)
    }

    /// Returns the waker of a deadline, if that is in the table.
    pub(super) fn waker(&self, key: DeadlineKey) -> Option<&KeptWaker> {
        let slot = self.slots.get(key.slot as usize)?;
        let entry = self.heap[slot.place as usize];
        (entry.serial == key.serial).then_some(&slot.waker)
    }

    /// Removes a deadline and returns its waker, if it is in the table.
    pub(super) fn remove(&mut self, key: DeadlineKey) -> Option<KeptWaker> {
        self.waker(key)?;
        Some(self.take(self.slots[key.slot as usize].place as usize))
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

    /// Removes the entry at `place`; the last entry takes its place.
    fn take(&mut self, place: usize) -> KeptWaker {
        let taken = self.heap.swap_remove(place);
        if let Some(&moved) = self.heap.get(place) {
            if place > 0 && moved < self.heap[(place - 1) / CHILDREN] {
                self.rise(place, moved);
            } else {
                self.sink(place, moved);
            }
        }
        self.time_outs -= (taken.serial % 2) as usize;
        self.slots.remove(taken.slot as usize).waker
    }

    /// Moves `entry` up from `place`, below the first parent that is not later.
    fn rise(&mut self, mut place: usize, entry: DeadlineEntry) {
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if self.heap[parent] < entry {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    /// Moves `entry` down from `place`, above the first children that are all later.
    fn sink(&mut self, mut place: usize, entry: DeadlineEntry) {
        loop {
            let first = CHILDREN * place + 1;
            let children = first..(first + CHILDREN).min(self.heap.len());
            let Some(least) = children.min_by_key(|&child| self.heap[child]) else {
                break;
            };
            if entry < self.heap[least] {
                break;
            }
            self.put(place, self.heap[least]);
            place = least;
        }
        self.put(place, entry);
    }

    /// Writes `entry` to `place`, and the place to its slot (TABLE-2).
    fn put(&mut self, place: usize, entry: DeadlineEntry) {
        self.heap[place] = entry;
        self.slots[entry.slot as usize].place = number(place);
    }
}

fn number(place: usize) -> u32 {
    u32::try_from(place).expect("fewer than 2^32 deadlines")
}

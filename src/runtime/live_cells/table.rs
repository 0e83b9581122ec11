//! A table of live cells: one word for each, at an index that does not change.
//!
//! The table grows by chunks and never moves a slot. Freed slots are reused, the last one first.
//! When the table becomes empty, all chunks but one are freed; no chunk is freed before that. An
//! iteration visits all slots that have been in use since then. The table dereferences no pointer.

use std::ptr::{NonNull, without_provenance_mut};

use crate::task::Header;

/// Cells of a chunk, which takes one KiB.
const CHUNK: usize = 128;

#[derive(Default)]
pub(super) struct CellTable {
    /// Boxes, so that growing moves the pointers to chunks and not the slots.
    #[expect(clippy::vec_box, reason = "growing moves the pointers")]
    chunks: Vec<Box<[CellSlot; CHUNK]>>,
    /// The number of slots that have been in use since the table was last empty.
    used: usize,
    /// The index of the slot that was freed last; each free slot names the one freed before it.
    free: Option<usize>,
    len: usize,
}

/// A cell. A free slot has the lowest bit set, and above it the index of the previous free slot plus
/// one, or 0.
#[derive(Clone, Copy)]
pub(super) struct CellSlot(*mut Header);

/// What comes next in a table.
pub(crate) enum NextCell<T> {
    /// A cell, or what was made of it, at this index.
    Cell(usize, T),
    /// No cell before this index.
    Free(usize),
    End,
}

impl CellSlot {
    fn free(before: Option<usize>) -> Self {
        let number = before.map_or(0, |index| index + 1);
        CellSlot(without_provenance_mut(number << 1 | 1))
    }

    fn cell(self) -> Option<NonNull<Header>> {
        NonNull::new(self.0).filter(|cell| cell.addr().get() & 1 == 0)
    }

    fn before(self) -> Option<usize> {
        (self.0.addr() >> 1).checked_sub(1)
    }
}

impl CellTable {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Inserts the cell. Returns its index, which stays the same until the cell is removed.
    pub(super) fn insert(&mut self, cell: NonNull<Header>) -> usize {
        let index = match self.free {
            Some(index) => {
                self.free = self.at(index).before();
                index
            }
            None => {
                // Fresh slots are used in order, so an iteration visits no slot from `used` on.
                if self.used == self.chunks.len() * CHUNK {
                    self.chunks.push(Box::new([CellSlot::free(None); CHUNK]));
                }
                self.used += 1;
                self.used - 1
            }
        };
        *self.at(index) = CellSlot(cell.as_ptr());
        self.len += 1;
        index
    }

    /// Removes the cell at `index`. Returns chunks that are no longer needed, to be dropped without
    /// the lock.
    #[must_use = "they are dropped without the lock"]
    pub(super) fn remove(&mut self, index: usize) -> impl Sized + use<> {
        *self.at(index) = CellSlot::free(self.free);
        self.free = Some(index);
        self.len -= 1;
        if self.len > 0 {
            return Vec::new();
        }
        (self.used, self.free) = (0, None);
        self.chunks.split_off(1)
    }

    /// Returns all cells, newest first as long as no slot has been reused.
    pub(super) fn iter(&self) -> impl Iterator<Item = NonNull<Header>> {
        self.entries().map(|(_, cell)| cell)
    }

    /// Returns the same, each with its index.
    pub(super) fn entries(&self) -> impl Iterator<Item = (usize, NonNull<Header>)> {
        let at = |index: usize| Some((index, self.chunks[index / CHUNK][index % CHUNK].cell()?));
        (0..self.used).rev().filter_map(at)
    }

    /// Returns the first cell from this index on, if there is one among as many slots as a chunk has.
    pub(super) fn next(&self, from: usize) -> NextCell<NonNull<Header>> {
        let end = self.used.min(from.saturating_add(CHUNK));
        let cell = |index: usize| self.chunks[index / CHUNK][index % CHUNK].cell();
        let found = (from..end).find_map(|index| Some((index, cell(index)?)));
        match found {
            Some((index, cell)) => NextCell::Cell(index, cell),
            None if end < self.used => NextCell::Free(end),
            None => NextCell::End,
        }
    }

    fn at(&mut self, index: usize) -> &mut CellSlot {
        &mut self.chunks[index / CHUNK][index % CHUNK]
    }
}

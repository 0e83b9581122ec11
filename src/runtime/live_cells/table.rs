//! A table of live cells: one word for each, at a place that does not change.
//!
//! The table grows by chunks and never moves a place. Freed places are reused, the last one first.
//! When the table becomes empty, all chunks but one are freed; no chunk is freed before that. An
//! iteration visits all places that have been in use since then. The table dereferences no pointer.

use std::ptr::{NonNull, without_provenance_mut};

use crate::task::Header;

/// Cells of a chunk, which takes one KiB.
const CHUNK: usize = 128;

/// A box, so that growing moves the pointers to chunks and not the places.
pub(super) type Chunk = Box<[CellPlace; CHUNK]>;

#[derive(Default)]
pub(super) struct CellTable {
    chunks: Vec<Chunk>,
    /// The number of places that have been in use since the table was last empty.
    used: usize,
    /// The place that was freed last; each free place names the one freed before it.
    free: Option<usize>,
    len: usize,
}

/// A cell. A free place has the lowest bit set, and above it the previous free place plus one, or
/// 0.
#[derive(Clone, Copy)]
pub(super) struct CellPlace(*mut Header);

impl CellPlace {
    fn free(before: Option<usize>) -> Self {
        let number = before.map_or(0, |place| place + 1);
        CellPlace(without_provenance_mut(number << 1 | 1))
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

    /// Inserts the cell. Returns its place, which stays the same until the cell is removed.
    pub(super) fn insert(&mut self, cell: NonNull<Header>) -> usize {
        let place = match self.free {
            Some(place) => {
                self.free = self.at(place).before();
                place
            }
            None => {
                if self.used == self.chunks.len() * CHUNK {
                    self.chunks.push(Box::new([CellPlace::free(None); CHUNK]));
                }
                self.used += 1;
                self.used - 1
            }
        };
        *self.at(place) = CellPlace(cell.as_ptr());
        self.len += 1;
        place
    }

    /// Removes the cell at `place`. Returns chunks that are no longer needed, to be dropped without
    /// the lock.
    #[must_use = "they are dropped without the lock"]
    pub(super) fn remove(&mut self, place: usize) -> Vec<Chunk> {
        *self.at(place) = CellPlace::free(self.free);
        self.free = Some(place);
        self.len -= 1;
        if self.len > 0 {
            return Vec::new();
        }
        (self.used, self.free) = (0, None);
        self.chunks.split_off(1)
    }

    /// Returns all cells, newest first as long as no place has been reused.
    pub(super) fn iter(&self) -> impl Iterator<Item = NonNull<Header>> {
        let places = (0..self.used).rev();
        places.filter_map(|place| self.chunks[place / CHUNK][place % CHUNK].cell())
    }

    fn at(&mut self, place: usize) -> &mut CellPlace {
        &mut self.chunks[place / CHUNK][place % CHUNK]
    }
}

//! A table of live cells: a word for each, at a place that it keeps.
//!
//! It grows a chunk at a time and so never moves; places that were given up are used again, the last one
//! first. Once it is empty all chunks but one are given back, and not before: those who look through it look
//! at as many places as were ever in use. It never looks behind a pointer.

use std::ptr::{NonNull, without_provenance_mut};

use crate::task::Header;

/// A KiB a chunk.
const CHUNK: usize = 128;

/// A box, so that to grow moves pointers to chunks and not all places.
pub(super) type Chunk = Box<[CellPlace; CHUNK]>;

#[derive(Default)]
pub(super) struct CellTable {
    chunks: Vec<Chunk>,
    /// How many places were in use at some time.
    used: usize,
    /// The place that was given up last; each says which was before it.
    free: Option<usize>,
    len: usize,
}

/// A cell, or, with the lowest bit set, the place that was free before this one and one more, or 0.
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

    /// Puts the cell in; says where it is until it is taken out.
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

    /// Takes out what is there. Gives chunks that are needed no more, to be dropped without the lock.
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

    /// All cells, the newest first as long as no place is used again.
    pub(super) fn iter(&self) -> impl Iterator<Item = NonNull<Header>> {
        let places = (0..self.used).rev();
        places.filter_map(|place| self.chunks[place / CHUNK][place % CHUNK].cell())
    }

    fn at(&mut self, place: usize) -> &mut CellPlace {
        &mut self.chunks[place / CHUNK][place % CHUNK]
    }
}

//! The index of a cell, or of a plain task's waker, in the executor's list of live ones.
//!
//! The executor assigns an index when the cell or waker enters its list, and gets it back once.

use std::num::NonZeroU32;

/// An index in the list of live cells and wakers; small, since every task and cell stores one.
pub struct LiveIndex(NonZeroU32);

impl LiveIndex {
    /// The number of different indices.
    pub(crate) const COUNT: usize = u32::MAX as usize;

    pub(crate) fn new(index: usize) -> Self {
        let number = u32::try_from(index).ok().and_then(|n| n.checked_add(1));
        let number = number.and_then(NonZeroU32::new);
        LiveIndex(number.expect("fewer than 2^32 tasks fit into memory"))
    }

    pub(crate) fn index(&self) -> usize {
        self.0.get() as usize - 1
    }
}

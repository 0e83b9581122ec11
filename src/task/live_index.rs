//! The index of a cell or of a plain task's waker in the list of what is live.
//!
//! An executor gives it out when the cell or waker enters its list, and gets it back once.

use std::num::NonZeroU32;

/// Where an executor keeps a cell, or the waker of a plain task; small, since each has one.
pub struct LiveIndex(NonZeroU32);

impl LiveIndex {
    /// How many there are.
    pub(crate) const COUNT: usize = u32::MAX as usize;

    pub(crate) fn new(index: usize) -> Self {
        let number = u32::try_from(index).ok().and_then(|n| n.checked_add(1));
        let number = number.and_then(NonZeroU32::new);
        LiveIndex(number.expect("fewer than four thousand million tasks fit into memory"))
    }

    pub(crate) fn index(&self) -> usize {
        self.0.get() as usize - 1
    }
}

//! What identifies a task or a cell while it lives: its key, and its index among the live ones.
//!
//! A key is the address of the task or cell, with the tag bit that a cell's runnable has, too. The
//! executor assigns an index when a cell or a waker enters its list, and gets it back once.

use std::cell::Cell;
use std::num::NonZeroU32;
use std::ptr::NonNull;
use std::task::Waker;

/// Bit 0 of the key of a cell, and of the pointer in its runnable.
pub(super) const CELL: usize = 1;

/// The identity of a task or cell while it lives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TaskKey(usize);

impl TaskKey {
    /// Returns the key of the cell that begins with this header.
    pub(crate) fn of_cell<Header>(cell: NonNull<Header>) -> Self {
        TaskKey(cell.addr().get() | CELL)
    }

    /// Returns the key of the task that this waker belongs to.
    pub(crate) fn of_task(waker: &Waker) -> Self {
        TaskKey(waker.data().addr())
    }

    /// Returns the key of the task or job at this address, or of a runnable's raw pointer.
    pub(super) fn at(start: *const ()) -> Self {
        TaskKey(start.addr())
    }

    /// Returns the key as a number. No other live task, or no other live cell, has the same.
    pub(crate) fn number(self) -> u64 {
        self.0 as u64
    }

    /// Returns the key of the plain task that this thread drops instead of running it, if any.
    pub(crate) fn dropped() -> Option<TaskKey> {
        DROPPED.try_with(Cell::get).ok().flatten()
    }

    pub(crate) fn is_cell(self) -> bool {
        self.0 & CELL != 0
    }
}

crate::sync::thread_local! {
    static DROPPED: Cell<Option<TaskKey>> = const { Cell::new(None) };
}

/// Calls `discard`, which drops the plain task `key` instead of running it.
pub(super) fn dropping(key: TaskKey, discard: impl FnOnce()) {
    let outer = DROPPED.try_with(|dropped| dropped.replace(Some(key)));
    discard();
    let _ = DROPPED.try_with(|dropped| dropped.set(outer.ok().flatten()));
}

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

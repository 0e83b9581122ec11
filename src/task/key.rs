//! Keys that identify tasks and cells while they live.
//!
//! A key is the address of the task or cell, with the tag bit that a cell's runnable has, too.

use std::cell::Cell;
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

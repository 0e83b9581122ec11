//! A number that tells a task or a cell from all others that live at the same time.
//!
//! It is the address of the task or cell, with the bit that a runnable's pointer has for a cell.

use std::cell::Cell;
use std::ptr::NonNull;
use std::task::Waker;

/// Bit 0 of the number of a cell, and of the pointer in its runnable.
pub(super) const CELL: usize = 1;

/// What identifies a task or cell while it lives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TaskKey(usize);

impl TaskKey {
    /// Returns the key of the cell that begins with this header.
    pub(crate) fn of_cell<Header>(cell: NonNull<Header>) -> Self {
        TaskKey(cell.addr().get() | CELL)
    }

    /// Returns the key of the task that this waker, its own, would wake.
    pub(crate) fn of_task(waker: &Waker) -> Self {
        TaskKey(waker.data().addr())
    }

    /// Returns the key of the task or job that begins there, or of the runnable in its raw form.
    pub(super) fn at(start: *const ()) -> Self {
        TaskKey(start.addr())
    }

    /// Returns the number, which tells it from all of its kind that live at the same time.
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

/// Runs `discard`, which drops the plain task `key` instead of running it.
pub(super) fn dropping(key: TaskKey, discard: impl FnOnce()) {
    let outer = DROPPED.try_with(|dropped| dropped.replace(Some(key)));
    discard();
    let _ = DROPPED.try_with(|dropped| dropped.set(outer.ok().flatten()));
}

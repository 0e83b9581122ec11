//! One pointer to something that can be run once: all that an executor ever handles.
//!
//! There are two kinds: a *cell*, anything that has a [`Header`], such as an actor; and whatever begins with a
//! pointer to a [`RunVTable`], a plain task or a job. The pointer's lowest bit tells them apart.
//!
//! # Invariants
//! - RUNNABLE-1: a `Runnable` is the only one of its task, cell or job; it is run or discarded exactly once.
//! - RUNNABLE-2: a header, and what begins with a table, is aligned as a pointer is, so bit 0 is free.
//! - RUNNABLE-3: what it points to stays allocated while a runnable of it exists.
#![expect(
    unsafe_code,
    reason = "the kind is packed into the pointer; see RUNNABLE-1 to RUNNABLE-3"
)]

use std::ptr::NonNull;

use super::header::Header;
use super::info::TaskInfo;
use super::key::{CELL, TaskKey, dropping};
use crate::sync::LEFT_BEHIND;

/// What can be done to a task or a job that is ready; behind the pointer that either begins with.
///
/// # Safety
/// The pointer is a runnable's, which is given up.
#[repr(C)]
pub(super) struct RunVTable {
    /// Runs it once.
    pub(super) run: unsafe fn(NonNull<()>),
    /// Cancels it.
    pub(super) discard: unsafe fn(NonNull<()>),
}

/// A task or actor that is ready to run, once: what a [policy](crate::policy::Policy) handles.
///
/// A call of a [`Hosted`](crate::Hosted) value is a task, too. Dropping it cancels the task or actor instead, on any
/// thread, and even if its runtime is over.
pub struct Runnable(NonNull<()>);

// SAFETY: (RUNNABLE-1) the one owner of the right to run. A task or cell whose future is `!Send` is given
// only to executors that keep it on its thread; a job is `Send`.
unsafe impl Send for Runnable {}

impl Runnable {
    /// # Safety
    /// The caller owns the one right to run the cell (RUNNABLE-1) and the cell lives until then (RUNNABLE-3).
    pub(crate) unsafe fn from_cell(cell: NonNull<Header>) -> Self {
        Runnable(as_run(cell))
    }

    /// # Safety
    /// The caller owns the one right to run it (RUNNABLE-1), and it lives until then (RUNNABLE-3).
    pub(super) unsafe fn from_vtable(task: NonNull<&'static RunVTable>) -> Self {
        Runnable(task.cast())
    }

    /// Runs it once: the future is polled on this thread.
    pub(crate) fn run(self) {
        let raw = self.into_raw();
        match cell_of(raw) {
            // SAFETY: (RUNNABLE-1) `self` is consumed; (RUNNABLE-3) the cell is alive.
            Some(cell) => unsafe { (cell.as_ref().vtable.run)(cell) },
            // SAFETY: (RUNNABLE-1) `self` is consumed; (RUNNABLE-3) the cell is alive.
            None => unsafe { (vtable_of(raw).run)(raw) },
        }
    }

    /// Which task or actor it is.
    pub fn info(&self) -> TaskInfo {
        match cell_of(self.0) {
            None => TaskInfo::of_task(self.key()),
            // SAFETY: (RUNNABLE-3) the cell is alive.
            Some(cell) => unsafe { (cell.as_ref().vtable.info)(cell) },
        }
    }

    /// The priority that an actor was given; 0, the lowest, by default and for a plain task.
    pub fn priority(&self) -> u8 {
        // SAFETY: (RUNNABLE-3) the cell is alive.
        cell_of(self.0).map_or(0, |cell| unsafe { cell.as_ref() }.priority())
    }

    /// Forgets it, as its executor has no threads in this process.
    ///
    /// # Panics
    /// With the reason; but not where a panic is under way, whose drops may come here.
    #[cold]
    #[inline(never)]
    pub(crate) fn leave_behind(self) {
        std::mem::forget(self);
        assert!(std::thread::panicking(), "{LEFT_BEHIND}");
    }

    pub(crate) fn key(&self) -> TaskKey {
        TaskKey::at(self.0.as_ptr())
    }

    pub(crate) fn into_raw(self) -> NonNull<()> {
        std::mem::ManuallyDrop::new(self).0
    }

    /// # Safety
    /// `raw` came from [`Runnable::into_raw`] and is turned back once.
    pub(crate) unsafe fn from_raw(raw: NonNull<()>) -> Self {
        Runnable(raw)
    }
}

/// A cell's runnable in its raw form, which tells it from all others; the cell is not used.
pub(crate) fn as_run(cell: NonNull<Header>) -> NonNull<()> {
    cell.cast::<()>().map_addr(|addr| addr | CELL)
}

/// The cell, if it is one whose runnable this is.
pub(super) fn cell_of(raw: NonNull<()>) -> Option<NonNull<Header>> {
    if raw.addr().get() & CELL == 0 {
        return None;
    }
    // (RUNNABLE-2) The bit was added to it.
    NonNull::new(raw.as_ptr().map_addr(|addr| addr & !CELL).cast())
}

/// # Safety
/// It is alive and no cell.
unsafe fn vtable_of(raw: NonNull<()>) -> &'static RunVTable {
    // SAFETY: (RUNNABLE-2) by the caller's promise it begins with its table.
    unsafe { raw.cast::<&'static RunVTable>().read() }
}

impl std::fmt::Debug for Runnable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Runnable").field(&self.info()).finish()
    }
}

impl Drop for Runnable {
    fn drop(&mut self) {
        if let Some(cell) = cell_of(self.0) {
            // SAFETY: (RUNNABLE-1) dropped once; (RUNNABLE-3) the cell is alive.
            return unsafe { (cell.as_ref().vtable.discard)(cell) };
        }
        // SAFETY: as for a cell.
        dropping(self.key(), || unsafe {
            (vtable_of(self.0).discard)(self.0)
        });
    }
}

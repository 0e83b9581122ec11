//! A pointer to a task, cell or job that can be run once: all that an executor handles.
//!
//! There are two kinds. A *cell*, such as an actor, begins with a [`Header`]. A plain task or a job
//! begins with a pointer to a [`RunVTable`]. The lowest bit of the pointer distinguishes them.
//!
//! # Invariants
//! - RUNNABLE-1: a `Runnable` is the only one of its task, cell or job; it is run or discarded
//!   exactly once.
//! - RUNNABLE-2: headers and table pointers are aligned as pointers are, so bit 0 is free.
//! - RUNNABLE-3: the task, cell or job stays allocated while its runnable exists.
#![expect(
    unsafe_code,
    reason = "the kind is packed into the pointer; see RUNNABLE-1 to RUNNABLE-3"
)]

use std::ptr::NonNull;
use std::task::Waker;

use super::header::Header;
use super::key::{CELL, TaskKey, dropping};
use crate::contain::KeptWaker;
use crate::info::TaskInfo;
use crate::sync::{LEFT_BEHIND, Mutex};

/// The operations on a task or a job that is ready. The task or job begins with a pointer to this
/// table.
///
/// # Safety
/// The pointer is that of a runnable, which the caller gives up.
#[repr(C)]
pub(super) struct RunVTable {
    /// Runs the task or job once.
    pub(super) run: unsafe fn(NonNull<()>),
    /// Cancels the task or job.
    pub(super) discard: unsafe fn(NonNull<()>),
    /// Returns the identity. The caller keeps its runnable, or holds a reference.
    pub(super) info: unsafe fn(NonNull<()>) -> TaskInfo,
}

/// A task or actor that is ready to run once, as a [policy](crate::policy::Policy) handles it.
///
/// A call of a [`Hosted`](crate::Hosted) value is a task, too. Dropping a `Runnable` cancels the
/// task or actor, on any thread, even after its runtime was shut down.
pub struct Runnable(NonNull<()>);

// SAFETY: (RUNNABLE-1) the runnable is the only right to run. Executors that accept a `!Send`
// future keep its runnables on one thread; a job is `Send`.
unsafe impl Send for Runnable {}

impl Runnable {
    /// Creates the runnable of a cell.
    ///
    /// # Safety
    /// The caller owns the one right to run the cell (RUNNABLE-1), and the cell lives until then
    /// (RUNNABLE-3).
    pub(crate) unsafe fn from_cell(cell: NonNull<Header>) -> Self {
        Runnable(as_run(cell))
    }

    /// Creates the runnable of a task or a job.
    ///
    /// # Safety
    /// The caller owns the one right to run it (RUNNABLE-1), and it lives until then (RUNNABLE-3).
    pub(super) unsafe fn from_vtable(task: NonNull<&'static RunVTable>) -> Self {
        Runnable(task.cast())
    }

    /// Runs the task, cell or job once: polls its future, or calls its closure, on this thread.
    pub(crate) fn run(self) {
        let raw = self.into_raw();
        match cell_of(raw) {
            // SAFETY: (RUNNABLE-1) `self` is consumed; (RUNNABLE-3) the cell is alive.
            Some(cell) => unsafe { (cell.as_ref().vtable.run)(cell) },
            // SAFETY: (RUNNABLE-1) `self` is consumed; (RUNNABLE-3) the task or job is alive.
            None => unsafe { (vtable_of(raw).run)(raw) },
        }
    }

    /// Returns the identity of the task or actor.
    pub fn info(&self) -> TaskInfo {
        match cell_of(self.0) {
            // SAFETY: (RUNNABLE-3) the task or job is alive.
            None => unsafe { info_of_plain(self.0) },
            // SAFETY: (RUNNABLE-3) the cell is alive.
            Some(cell) => unsafe { (cell.as_ref().vtable.info)(cell) },
        }
    }

    /// Returns the priority of an actor: 0, the lowest, unless set. A plain task has priority 0.
    pub fn priority(&self) -> u8 {
        // SAFETY: (RUNNABLE-3) the cell is alive.
        cell_of(self.0).map_or(0, |cell| unsafe { cell.as_ref() }.priority())
    }

    /// Leaks the runnable, because its executor has no threads in this process.
    ///
    /// # Panics
    /// Always, with the reason, unless the thread is panicking already: drops that a panic runs may
    /// call this.
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

    /// Converts a raw pointer back into a runnable.
    ///
    /// # Safety
    /// `raw` came from [`Runnable::into_raw`] and is converted back once.
    pub(crate) unsafe fn from_raw(raw: NonNull<()>) -> Self {
        Runnable(raw)
    }
}

/// Returns the raw pointer of a cell's runnable, which identifies the cell. The cell is not
/// accessed.
pub(crate) fn as_run(cell: NonNull<Header>) -> NonNull<()> {
    cell.cast::<()>().map_addr(|addr| addr | CELL)
}

/// Returns the cell to which a runnable's raw pointer belongs, if it belongs to one.
pub(super) fn cell_of(raw: NonNull<()>) -> Option<NonNull<Header>> {
    if raw.addr().get() & CELL == 0 {
        return None;
    }
    // (RUNNABLE-2) `as_run` added the bit.
    NonNull::new(raw.as_ptr().map_addr(|addr| addr & !CELL).cast())
}

/// Returns the identity of a task or job.
///
/// # Safety
/// `raw` is the raw pointer of a task or job that is alive and no cell.
pub(super) unsafe fn info_of_plain(raw: NonNull<()>) -> TaskInfo {
    // SAFETY: by the caller's promise.
    unsafe { (vtable_of(raw).info)(raw) }
}

/// Returns the table of a task or job.
///
/// # Safety
/// `raw` is the raw pointer of a task or job that is alive and no cell.
unsafe fn vtable_of(raw: NonNull<()>) -> &'static RunVTable {
    // SAFETY: (RUNNABLE-2) by the caller's promise, the pointer is to a table pointer.
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
        // SAFETY: (RUNNABLE-1) dropped once; (RUNNABLE-3) the task or job is alive.
        dropping(self.key(), || unsafe {
            (vtable_of(self.0).discard)(self.0)
        });
    }
}

/// The one runnable of a cell that a task of another executor runs, and the waker of that task.
pub(crate) struct RunnableSlot(Mutex<(Option<Runnable>, Option<KeptWaker>)>);

impl RunnableSlot {
    pub(crate) fn new() -> Self {
        RunnableSlot(Mutex::new((None, None)))
    }

    /// Puts the runnable, and wakes the task unless it was woken since its last poll.
    pub(crate) fn put(&self, runnable: Runnable) {
        let mut slot = self.0.lock();
        slot.0 = Some(runnable);
        // Taken, not cloned: a clone would call user code under the lock. The next poll leaves
        // another waker.
        let waker = slot.1.take();
        // (EXECUTOR-1) From here on the actor may end, and its executor with it.
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Takes the runnable, if there is one, and replaces the waker by `waker`.
    pub(crate) fn take(&self, waker: Option<&Waker>) -> Option<Runnable> {
        let mut waker = waker.map(KeptWaker::new);
        let mut slot = self.0.lock();
        std::mem::swap(&mut slot.1, &mut waker);
        let runnable = slot.0.take();
        drop(slot);
        drop(waker);
        runnable
    }

    /// Wakes the task.
    #[cfg(feature = "tokio")]
    pub(crate) fn wake(&self) {
        let waker = self.0.lock().1.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

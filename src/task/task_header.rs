//! The header of a plain task's cell, as wakers, the handle and a runnable see it.
//!
//! It does not know the type of the future and reaches the rest of the cell through its table. The
//! invariants are those of [`cell`](super::cell).
#![expect(
    unsafe_code,
    reason = "one allocation accessed through several types; see TASK-1 to TASK-4 in cell.rs"
)]

use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::task::{RawWaker, RawWakerVTable, Waker};

use super::header::Header;
use super::hooks::TaskHooks;
use super::run;
use super::runnable::{RunVTable, cell_of};
use super::state::{Found, TaskState};
use crate::contain::KeptWaker;
use crate::info::TaskInfo;
use crate::sync::UnsafeCell;

/// The part of a cell that the handle and wakers use.
#[repr(C)]
pub(super) struct TaskHeader {
    pub(super) vtable: &'static TaskVTable,
    pub(super) state: TaskState,
    awaiter: UnsafeCell<Option<KeptWaker>>,
}

/// The operations on a cell of unknown type.
///
/// # Safety
/// The pointer is to a cell with this table. The caller holds a reference, or what the entry names.
#[repr(C)]
pub(super) struct TaskVTable {
    /// Runs or discards the task. The caller owns its runnable.
    pub(super) run: RunVTable,
    /// Passes the runnable, which the caller has just created, to the executor.
    pub(super) schedule: unsafe fn(NonNull<TaskHeader>),
    /// Moves the outcome, of the cell's `Outcome` type, to `out`; called once.
    pub(super) take: unsafe fn(NonNull<TaskHeader>, out: *mut ()),
    /// Drops the outcome; called once.
    pub(super) forget: unsafe fn(NonNull<TaskHeader>),
    /// Frees the cell. The caller gives up the last reference.
    pub(super) free: unsafe fn(NonNull<TaskHeader>),
    /// Returns the hooks of the executor, for as long as a reference is held.
    pub(super) hooks: unsafe fn(NonNull<TaskHeader>) -> NonNull<dyn TaskHooks>,
}

/// Releases a reference; the last one frees the cell.
///
/// # Safety
/// The caller owns the reference.
pub(super) unsafe fn release(header: NonNull<TaskHeader>) {
    // SAFETY: (TASK-2) the caller's reference, which may be the last one.
    unsafe {
        if header.as_ref().state.release() {
            (header.as_ref().vtable.free)(header);
        }
    }
}

impl TaskHeader {
    pub(super) fn new(vtable: &'static TaskVTable) -> Self {
        TaskHeader {
            vtable,
            state: TaskState::new(),
            awaiter: UnsafeCell::new(None),
        }
    }

    /// Returns whether the task has ended. If it has not, its end will wake `waker`.
    pub(super) fn await_end(&self, waker: &Waker) -> Found {
        let found = match self.state.look() {
            Found::Alive => self.state.disarm(),
            ended => ended,
        };
        if found != Found::Alive {
            return found;
        }
        let is_same = self.awaiter.with_mut(|awaiter| {
            // SAFETY: (TASK-4) the awaiter is disarmed, and the task has not ended.
            let old = unsafe { &*awaiter };
            old.as_ref().is_some_and(|old| old.will_wake(waker))
        });
        if !is_same {
            let old = self.change_awaiter(Some(KeptWaker::new(waker)));
            drop(old);
        }
        let found = self.state.arm();
        if found != Found::Alive {
            // The task ended before `arm`, so its end woke nothing.
            let unneeded = self.change_awaiter(None);
            drop(unneeded);
        }
        found
    }

    /// Drops the waker of an armed awaiter, unless the task has ended: its end wakes that one.
    #[cold]
    #[inline(never)]
    pub(super) fn await_no_more(&self) {
        if self.state.disarm() == Found::Alive {
            let unneeded = self.change_awaiter(None);
            drop(unneeded);
        }
    }

    /// Replaces the awaiter. The caller is the awaiter's owner (TASK-4).
    pub(super) fn change_awaiter(&self, new: Option<KeptWaker>) -> Option<KeptWaker> {
        // SAFETY: (TASK-4) by the caller's promise; this calls no user code.
        self.awaiter
            .with_mut(|awaiter| unsafe { std::mem::replace(&mut *awaiter, new) })
    }
}

impl Drop for TaskHeader {
    fn drop(&mut self) {
        // SAFETY: (TASK-4) the last reference was released.
        let awaiter = self
            .awaiter
            .with_mut(|awaiter| unsafe { (*awaiter).take() });
        drop(awaiter);
    }
}

/// Wakes the task. In its own turn, this only sets a note.
///
/// # Safety
/// The caller holds a reference.
pub(super) unsafe fn wake(header: NonNull<TaskHeader>) {
    if run::note(header.cast(), run::WOKEN) {
        return;
    }
    // SAFETY: (TASK-2) the caller's reference; (TASK-STATE-1) this call creates the runnable.
    unsafe {
        if header.as_ref().state.wake() {
            (header.as_ref().vtable.schedule)(header);
        }
    }
}

/// Returns a waker of the task that owns no reference.
///
/// # Safety
/// It is used only while the task has not ended.
pub(super) unsafe fn waker(header: NonNull<TaskHeader>) -> ManuallyDrop<Waker> {
    // SAFETY: the waker is never dropped, so it releases no reference; by the caller's promise none
    // is needed.
    ManuallyDrop::new(unsafe { Waker::from_raw(raw_waker(header)) })
}

/// Returns whether this waker wakes a plain task.
#[inline]
pub(super) fn is_waker(waker: &Waker) -> bool {
    std::ptr::eq(waker.vtable(), &WAKER)
}

/// Returns the identity of the plain task that this waker wakes, if it wakes one.
pub(crate) fn info_of(waker: &Waker) -> Option<TaskInfo> {
    // SAFETY: (TASK-2) the waker's reference.
    is_waker(waker).then(|| unsafe {
        let header = header_of(waker.data());
        (header.as_ref().vtable.run.info)(header.cast())
    })
}

fn raw_waker(header: NonNull<TaskHeader>) -> RawWaker {
    RawWaker::new(header.as_ptr().cast(), &WAKER)
}

/// Returns the header that a waker's data points to.
///
/// # Safety
/// `data` comes from a waker made of `raw_waker`.
unsafe fn header_of(data: *const ()) -> NonNull<TaskHeader> {
    // SAFETY: by the caller's promise, so it is not null.
    unsafe { NonNull::new_unchecked(data.cast_mut().cast()) }
}

/// Returns whether the waker wakes the task or actor whose turn this thread runs.
pub(crate) fn is_own_waker(waker: &Waker) -> bool {
    run::innermost_turn().is_some_and(|of| match cell_of(of) {
        Some(cell) => Header::is_woken_by(cell, waker),
        None => ptr::eq(waker.data(), of.as_ptr()) && ptr::eq(waker.vtable(), &WAKER),
    })
}

/// The table of every task's waker, which owns a reference (TASK-2). A static, since wakers are
/// compared by its address.
static WAKER: RawWakerVTable = RawWakerVTable::new(
    // SAFETY: (TASK-2) the data comes from `raw_waker`, and the waker owns a reference.
    |data| unsafe {
        header_of(data).as_ref().state.retain();
        raw_waker(header_of(data))
    },
    // SAFETY: (TASK-2) the waker's reference, which is released with the waker.
    |data| unsafe {
        wake(header_of(data));
        release(header_of(data));
    },
    // SAFETY: (TASK-2) the waker keeps its reference.
    |data| unsafe { wake(header_of(data)) },
    // SAFETY: (TASK-2) the waker's reference, which is released with the waker.
    |data| unsafe { release(header_of(data)) },
);

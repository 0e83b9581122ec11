//! The front of a plain task's cell: what wakers, the handle and a runnable see of it.
//!
//! It does not know the future; what is behind it is reached through its table. The invariants are those of
//! [`cell`](super::cell).
#![expect(
    unsafe_code,
    reason = "one allocation seen through several types; see TASK-1 to TASK-4 in cell.rs"
)]

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::task::{RawWaker, RawWakerVTable, Waker};

use super::run;
use super::runnable::RunVTable;
use super::state::{Found, TaskState};
use crate::contain::contain;
use crate::sync::{Process, UnsafeCell};

/// What the handle and wakers see of a cell.
#[repr(C)]
pub(super) struct TaskHeader {
    pub(super) vtable: &'static TaskVTable,
    pub(super) state: TaskState,
    awaiter: UnsafeCell<Option<Waker>>,
}

/// What can be done to a cell without knowing its types.
///
/// # Safety
/// The pointer is to a cell with this table, and the caller holds a reference, or what the entry names.
#[repr(C)]
pub(super) struct TaskVTable {
    /// The caller owns its runnable.
    pub(super) run: RunVTable,
    /// The caller has just made its runnable.
    pub(super) schedule: unsafe fn(NonNull<TaskHeader>),
    /// Moves what it came to, an `Outcome` of its type, to `out`; once.
    pub(super) take: unsafe fn(NonNull<TaskHeader>, out: *mut ()),
    /// Drops what it came to; once.
    pub(super) forget: unsafe fn(NonNull<TaskHeader>),
    /// The caller gives up its reference, and there is no other one.
    pub(super) free: unsafe fn(NonNull<TaskHeader>),
    /// The process that has the threads of its executor.
    pub(super) process: unsafe fn(NonNull<TaskHeader>) -> Process,
    /// Tells its executor whether this thread sees its end, or waits for it.
    pub(super) looked_at: unsafe fn(NonNull<TaskHeader>, has_ended: bool),
}

/// Gives a reference up; the last one frees the cell.
///
/// # Safety
/// The reference is the caller's.
pub(super) unsafe fn release(header: NonNull<TaskHeader>) {
    // SAFETY: (TASK-2) by that reference, or as the last one.
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

    /// What the handle does when it is polled: whether the task has ended, of which `waker` will tell.
    pub(super) fn await_end(&self, waker: &Waker) -> Found {
        let found = match self.state.look() {
            Found::Alive => self.state.disarm(),
            ended => ended,
        };
        if found != Found::Alive {
            return found;
        }
        let new = self.awaiter.with_mut(|awaiter| {
            // SAFETY: (TASK-4) disarmed, and it has not ended.
            let old = unsafe { &*awaiter };
            let same = old.as_ref().is_some_and(|old| old.will_wake(waker));
            (!same).then(|| waker.clone())
        });
        let old = new.and_then(|new| self.change_awaiter(Some(new)));
        contain(|| drop(old));
        let found = self.state.arm();
        if found != Found::Alive {
            // It ended before, so it told nobody.
            let unneeded = self.change_awaiter(None);
            contain(|| drop(unneeded));
        }
        found
    }

    /// Called by whose the place is (TASK-4).
    pub(super) fn change_awaiter(&self, new: Option<Waker>) -> Option<Waker> {
        // SAFETY: (TASK-4) by the caller's promise; nothing of the user's is called.
        self.awaiter
            .with_mut(|awaiter| unsafe { std::mem::replace(&mut *awaiter, new) })
    }
}

impl Drop for TaskHeader {
    fn drop(&mut self) {
        // SAFETY: (TASK-4) the last one's.
        let awaiter = self
            .awaiter
            .with_mut(|awaiter| unsafe { (*awaiter).take() });
        contain(|| drop(awaiter));
    }
}

/// Wakes the task; for its own run that costs nothing.
///
/// # Safety
/// The caller holds a reference.
pub(super) unsafe fn wake(header: NonNull<TaskHeader>) {
    if run::note(header.cast(), run::WOKEN) {
        return;
    }
    // SAFETY: (TASK-2) the caller's reference; (TASK-STATE-1) the runnable is ours.
    unsafe {
        if header.as_ref().state.wake() {
            (header.as_ref().vtable.schedule)(header);
        }
    }
}

/// The task's waker without a reference of its own.
///
/// # Safety
/// It is used only while the task has not ended.
pub(super) unsafe fn waker(header: NonNull<TaskHeader>) -> ManuallyDrop<Waker> {
    // SAFETY: it is never dropped, and so holds no reference; by the caller's promise none is needed.
    ManuallyDrop::new(unsafe { Waker::from_raw(raw_waker(header)) })
}

fn raw_waker(header: NonNull<TaskHeader>) -> RawWaker {
    RawWaker::new(header.as_ptr().cast(), &WAKER)
}

/// # Safety
/// The data are of a waker made by `raw_waker`.
unsafe fn header_of(data: *const ()) -> NonNull<TaskHeader> {
    // SAFETY: by the caller's promise, so it is not null.
    unsafe { NonNull::new_unchecked(data.cast_mut().cast()) }
}

/// Of every task: a waker is a reference (TASK-2). A static, since wakers are told by its address.
static WAKER: RawWakerVTable = RawWakerVTable::new(
    // SAFETY: (TASK-2) the data are of `raw_waker`, with the waker's reference.
    |data| unsafe {
        header_of(data).as_ref().state.retain();
        raw_waker(header_of(data))
    },
    // SAFETY: (TASK-2) the reference goes with the waker.
    |data| unsafe {
        wake(header_of(data));
        release(header_of(data));
    },
    // SAFETY: (TASK-2) the reference stays the waker's.
    |data| unsafe { wake(header_of(data)) },
    // SAFETY: (TASK-2) the reference goes with the waker.
    |data| unsafe { release(header_of(data)) },
);

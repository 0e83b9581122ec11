//! A plain task's cell: one allocation with its state, its executor and its future, or the outcome of that.
//!
//! The front, [`TaskHeader`], is what wakers and the handle see; they do not know the future. What is behind it is
//! reached through the header's table. Each holder of a pointer is counted in the state.
//!
//! # Invariants
//! - TASK-1: a pointer to the header is a pointer to the cell, and to what a runnable begins with (`repr(C)`).
//! - TASK-2: the holder of a reference may use the header; the last one frees the cell. A task that has not ended
//!   holds one, so its runnable needs none.
//! - TASK-3: `run_part` is the run's, from `begin` to `rest` or `end`; after `end` what it came to
//!   is the handle's, or, if there is none, the end's.
//! - TASK-4: the place of the waker is the end's while it is armed, otherwise the handle's; the last one's of all.
#![expect(
    unsafe_code,
    reason = "one allocation seen through several types; see TASK-1 to TASK-4"
)]

#[cfg(all(test, greenroom_loom))]
mod loom;

use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use super::executor::Executor;
use super::handle::TaskHandle;
use super::key::TaskKey;
use super::live_index::LiveIndex;
use super::outcome::{Outcome, Unheard};
use super::run::{self, CurrentRun};
use super::runnable::{RunVTable, Runnable};
use super::state::PollOutcome;
use super::task_header::{self, TaskHeader, TaskVTable};
use crate::blocks;
use crate::contain::{attempt_on, contain};
use crate::sync::UnsafeCell;

#[repr(C)]
struct TaskCell<H, Fut: Future> {
    header: TaskHeader,
    executor: H,
    run_part: UnsafeCell<RunPart<Fut>>,
}

/// The part of a cell that is the run's.
struct RunPart<Fut: Future> {
    live_index: Option<LiveIndex>,
    content: FutureOrOutcome<Fut>,
}

/// The state says which it is.
union FutureOrOutcome<Fut: Future> {
    future: ManuallyDrop<Fut>,
    outcome: ManuallyDrop<Outcome<Fut::Output>>,
}

/// A new task, scheduled, with the reference that its handle has.
///
/// # Safety
/// From its first poll on, the executor polls and drops the future on one thread only if it is not `Send`.
pub(super) unsafe fn new<H, Fut>(executor: H, future: Fut) -> TaskHandle<Fut::Output>
where
    H: Executor,
    Fut: Future + 'static,
{
    let cell = blocks::room::<TaskCell<H, Fut>>();
    let content = FutureOrOutcome {
        future: ManuallyDrop::new(future),
    };
    let place = cell.as_ptr();
    // SAFETY: memory for a cell, of which each field is written.
    unsafe {
        (&raw mut (*place).header).write(TaskHeader::new(TaskCell::<H, Fut>::VTABLE));
        (&raw mut (*place).executor).write(executor);
        let live_index = None;
        (&raw mut (*place).run_part).write(UnsafeCell::new(RunPart {
            live_index,
            content,
        }));
    }
    let header = cell.cast::<TaskHeader>();
    // SAFETY: (TASK-2) the handle's reference; (TASK-STATE-1) a new word has one wake-up.
    unsafe { (header.as_ref().vtable.schedule)(header) };
    // SAFETY: (TASK-2, TASK-3) the reference and the right that a new task comes with, to a value of this type.
    unsafe { TaskHandle::new(header) }
}

impl<H: Executor, Fut: Future + 'static> TaskCell<H, Fut> {
    const VTABLE: &'static TaskVTable = &TaskVTable {
        run: RunVTable {
            run: Self::run,
            discard: Self::discard,
        },
        schedule: Self::schedule,
        take: Self::take,
        forget: Self::forget,
        // SAFETY: (TASK-2) the last reference; it is of `room`, in `new`.
        free: |header| unsafe { blocks::discard(header.cast::<Self>()) },
        // SAFETY: (TASK-1, TASK-2) the caller's reference.
        process: |header| unsafe { header.cast::<Self>().as_ref() }.executor.process(),
        // SAFETY: (TASK-1, TASK-2) the caller's reference.
        looked_at: |header, has_ended| unsafe {
            let executor = &header.cast::<Self>().as_ref().executor;
            executor.looked_at(TaskKey::at(header.as_ptr().cast()), has_ended);
        },
    };

    /// # Safety
    /// As [`RunVTable::run`].
    unsafe fn run(header: NonNull<()>) {
        let header = header.cast::<TaskHeader>();
        // SAFETY: (TASK-1, TASK-2) it has not ended.
        let cell = unsafe { header.cast::<Self>().as_ref() };
        let state = &cell.header.state;
        if !state.begin() {
            // SAFETY: (TASK-3) instead of a run.
            return unsafe { Self::end(header, None) };
        }
        // SAFETY: (TASK-2) the run is what keeps the cell.
        let waker = unsafe { task_header::waker(header) };
        let poll = || {
            cell.run_part.with_mut(|run_part| {
                let poll = |run_part: &mut RunPart<Fut>| {
                    // SAFETY: (TASK-3) this is the run, so it is the future; a cell is never moved.
                    let future = unsafe { Pin::new_unchecked(&mut *run_part.content.future) };
                    future.poll(&mut Context::from_waker(&waker))
                };
                // SAFETY: (TASK-3) this is the run, so it is the future; a cell is never moved.
                unsafe { attempt_on(&mut *run_part, poll, |run_part| cell.drop_future(run_part)) }
            })
        };
        // SAFETY: (TASK-2) it does not end before it was polled.
        let (polled, notes) = unsafe { CurrentRun::of_task(header.cast()).during(poll) };
        let mut woken = notes & run::WOKEN != 0;
        match polled {
            Ok(Poll::Pending) => {}
            // SAFETY: (TASK-3) this is the run.
            Ok(Poll::Ready(value)) => return unsafe { Self::end(header, Some(Ok(value))) },
            Err(panic) => {
                let unheard = Unheard::new(panic, &cell.executor);
                // SAFETY: (TASK-3) the future was dropped while that unwound.
                return unsafe { Self::finish(header, Some(Err(unheard))) };
            }
        }
        cell.run_part.with_mut(|run_part| {
            // SAFETY: (TASK-3) this is the run.
            let live_index = unsafe { &mut (*run_part).live_index };
            if live_index.is_none() {
                *live_index = cell.executor.track(&waker);
                // Without one it wakes itself, to be dropped.
                woken |= live_index.is_none();
            }
        });
        match state.rest(woken) {
            PollOutcome::Asleep => {}
            PollOutcome::Again => {
                // SAFETY: (EXECUTOR-1) a copy that is not dropped: another thread may free the cell before
                // `schedule` returns.
                let executor =
                    ManuallyDrop::new(unsafe { std::ptr::read(&raw const cell.executor) });
                // SAFETY: (TASK-STATE-1) this is its runnable; (TASK-2) it has not ended.
                executor.schedule(unsafe { Runnable::from_vtable(header.cast()) }, true);
            }
            // SAFETY: (TASK-3) this is the run.
            PollOutcome::Closed => unsafe { Self::end(header, None) },
        }
    }

    /// # Safety
    /// As [`RunVTable::discard`].
    unsafe fn discard(header: NonNull<()>) {
        // SAFETY: (TASK-3) in place of a run.
        unsafe { Self::end(header.cast(), None) };
    }

    /// # Safety
    /// As [`TaskVTable::schedule`].
    unsafe fn schedule(header: NonNull<TaskHeader>) {
        // SAFETY: (TASK-2) the caller's reference keeps it meanwhile; (TASK-STATE-1) this is its runnable.
        unsafe {
            let cell = header.cast::<Self>().as_ref();
            let runnable = Runnable::from_vtable(header.cast());
            cell.executor.schedule(runnable, false);
        }
    }

    /// The end of the task: its future is dropped on this thread, and what it came to is left.
    ///
    /// # Safety
    /// Called by the run (TASK-3), as its last step.
    unsafe fn end(header: NonNull<TaskHeader>, outcome: Option<Outcome<Fut::Output>>) {
        // SAFETY: (TASK-1, TASK-2) it has not ended before the last line; (TASK-3) this is the run.
        unsafe {
            let cell = header.cast::<Self>().as_ref();
            cell.run_part
                .with_mut(|run_part| cell.drop_future(&mut *run_part));
            Self::finish(header, outcome);
        }
    }

    /// Drops the future in place, and tells of the end before.
    ///
    /// # Safety
    /// As [`end`](Self::end).
    unsafe fn drop_future(&self, run_part: &mut RunPart<Fut>) {
        self.executor.task_completed();
        // SAFETY: (TASK-3) it is the future.
        contain(|| unsafe { ManuallyDrop::drop(&mut run_part.content.future) });
    }

    /// The same when the future is dropped.
    ///
    /// # Safety
    /// As [`end`](Self::end).
    unsafe fn finish(header: NonNull<TaskHeader>, outcome: Option<Outcome<Fut::Output>>) {
        // SAFETY: (TASK-1, TASK-2) it has not ended before the last line.
        let cell = unsafe { header.cast::<Self>().as_ref() };
        let has_value = outcome.is_some();
        let live_index = cell.run_part.with_mut(|run_part| {
            // SAFETY: (TASK-3) the future has given way to what it came to.
            unsafe {
                if let Some(outcome) = outcome {
                    (*run_part).content.outcome = ManuallyDrop::new(outcome);
                }
                (*run_part).live_index.take()
            }
        });
        cell.executor.task_dropped();
        if let Some(live_index) = live_index {
            cell.executor.untrack(live_index);
        }
        let before = cell.header.state.end(has_value);
        if has_value && !before.is_wanted {
            // SAFETY: (TASK-3) it has ended, and there is no handle.
            unsafe { Self::forget(header) };
        }
        if before.is_awaited {
            // (TASK-4) It was armed.
            let awaiter = cell.header.change_awaiter(None);
            contain(|| match awaiter {
                Some(waker) if before.is_wanted => waker.wake(),
                unneeded => drop(unneeded),
            });
        }
        // SAFETY: (TASK-2) the task's own reference, given up last.
        unsafe { task_header::release(header) };
    }

    /// # Safety
    /// As [`TaskVTable::take`].
    unsafe fn take(header: NonNull<TaskHeader>, out: *mut ()) {
        // SAFETY: (TASK-3) by the caller's promise.
        unsafe {
            let cell = header.cast::<Self>().as_ref();
            let outcome =
                |run_part: *mut RunPart<Fut>| ManuallyDrop::take(&mut (*run_part).content.outcome);
            out.cast::<Option<Outcome<Fut::Output>>>()
                .write(Some(cell.run_part.with_mut(outcome)));
        }
    }

    /// # Safety
    /// As [`TaskVTable::forget`].
    unsafe fn forget(header: NonNull<TaskHeader>) {
        // SAFETY: (TASK-3) by the caller's promise.
        let cell = unsafe { header.cast::<Self>().as_ref() };
        cell.run_part.with_mut(|run_part| {
            // SAFETY: (TASK-3) by the caller's promise.
            contain(|| unsafe { ManuallyDrop::drop(&mut (*run_part).content.outcome) });
        });
    }
}

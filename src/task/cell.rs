//! The cell of a plain task: one allocation with its state, its executor, and its future or
//! outcome.
//!
//! Wakers and the handle see only the header, [`TaskHeader`], and do not know the type of the
//! future. They reach the rest through the header's table. The state counts the references to the
//! cell.
//!
//! # Invariants
//! - TASK-1: a pointer to the header is a pointer to the cell and to the table pointer with which a
//!   runnable begins (`repr(C)`).
//! - TASK-2: the holder of a reference may use the header, and the last reference to be released
//!   frees the cell. A task that has not ended holds one itself, so its runnable needs none.
//! - TASK-3: `run_part` belongs to the turn, from `begin` to `rest` or `end`. After `end` the
//!   outcome belongs to the handle or, if there is none, to the thread that ended the task.
//! - TASK-4: `awaiter` belongs to the thread that ends the task while it is armed, otherwise to the
//!   handle. When the last reference is released, it belongs to that thread.
#![expect(
    unsafe_code,
    reason = "one allocation accessed through several types; see TASK-1 to TASK-4"
)]

#[cfg(all(test, greenroom_loom))]
mod loom;

use std::future::Future;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use super::executor::Executor;
use super::handle::TaskHandle;
use super::handle::{TaskOutcome, UnobservedPanic};
use super::key::LiveIndex;
use super::key::TaskKey;
use super::run::{self, CurrentTurn};
use super::runnable::{RunVTable, Runnable};
use super::state::PollOutcome;
use super::task_header::{self, TaskHeader, TaskVTable};
use crate::blocks;
use crate::contain::{Step, attempt_or_clear_uncounted, contain_mut, drop_result};
use crate::info::{TaskInfo, TypeNames};
use crate::sync::UnsafeCell;

#[repr(C)]
struct TaskCell<H, Fut: Future, Of> {
    header: TaskHeader,
    executor: H,
    run_part: UnsafeCell<RunPart<Fut>>,
    /// The type that a task without a name is called after.
    _of: PhantomData<fn() -> Of>,
}

/// The part of a cell that belongs to the turn.
struct RunPart<Fut: Future> {
    live_index: Option<LiveIndex>,
    content: FutureOrOutcome<Fut>,
}

/// The future or the outcome; the state tells which.
union FutureOrOutcome<Fut: Future> {
    future: ManuallyDrop<Fut>,
    outcome: ManuallyDrop<TaskOutcome<Fut::Output>>,
}

/// Creates and schedules a task, spawned at `spawned_at`. The returned handle owns one reference. A
/// task without a name is called after the type `Of`.
///
/// # Safety
/// If the future is not `Send`, the executor polls and drops it on one thread only, from its first
/// poll on.
pub(super) unsafe fn new<Of, H, Fut>(
    executor: H,
    future: Fut,
    spawned_at: Option<&'static Location<'static>>,
) -> TaskHandle<Fut::Output>
where
    H: Executor,
    Fut: Future + 'static,
    Of: 'static,
{
    let cell = blocks::room::<TaskCell<H, Fut, Of>>();
    let content = FutureOrOutcome {
        future: ManuallyDrop::new(future),
    };
    let cell_ptr = cell.as_ptr();
    // SAFETY: memory for a cell, each field of which is written.
    unsafe {
        (&raw mut (*cell_ptr).header).write(TaskHeader::new(TaskCell::<H, Fut, Of>::VTABLE));
        (&raw mut (*cell_ptr).executor).write(executor);
        let live_index = None;
        (&raw mut (*cell_ptr).run_part).write(UnsafeCell::new(RunPart {
            live_index,
            content,
        }));
    }
    let header = cell.cast::<TaskHeader>();
    // SAFETY: (TASK-2) the task has not begun.
    let executor = unsafe { &cell.as_ref().executor };
    if let Some(location) = spawned_at.filter(|_| executor.marks() != 0) {
        // SAFETY: (TASK-2) the task has not begun.
        let task = unsafe { (header.as_ref().vtable.run.info)(header.cast()) };
        executor.hooks().spawned(&task, location, false);
    }
    // SAFETY: (TASK-2) the handle's reference; (TASK-STATE-1) a new word counts one wake-up.
    unsafe { (header.as_ref().vtable.schedule)(header) };
    // SAFETY: (TASK-2, TASK-3) a new task comes with a reference and the right to an outcome of
    // this type.
    unsafe { TaskHandle::new(header) }
}

impl<H: Executor, Fut: Future + 'static, Of: 'static> TaskCell<H, Fut, Of> {
    const VTABLE: &'static TaskVTable = &TaskVTable {
        run: RunVTable {
            run: Self::run,
            discard: Self::discard,
            info: |header| {
                // SAFETY: (TASK-1, TASK-2) the caller's runnable or reference.
                unsafe { header.cast::<Self>().as_ref() }.info()
            },
        },
        schedule: Self::schedule,
        take: Self::take,
        forget: Self::forget,
        // SAFETY: (TASK-2) the last reference; `new` allocated the cell with `room`.
        free: |header| unsafe { blocks::discard(header.cast::<Self>()) },
        hooks: |header| {
            // SAFETY: (TASK-1, TASK-2) the caller's reference.
            let cell = unsafe { header.cast::<Self>().as_ref() };
            cell.executor.hooks().into()
        },
    };

    fn info(&self) -> TaskInfo {
        let number = TaskKey::at(std::ptr::from_ref(self).cast()).number();
        TaskInfo::of_plain(number, self.executor.name(), TypeNames::of_task::<Of>)
    }

    /// Returns the part that belongs to the turn, which is the caller's (TASK-3).
    fn run_part(&self) -> *mut RunPart<Fut> {
        self.run_part.with_mut(|run_part| run_part)
    }

    /// # Safety
    /// As [`RunVTable::run`].
    unsafe fn run(header: NonNull<()>) {
        let header = header.cast::<TaskHeader>();
        // SAFETY: (TASK-1, TASK-2) the task has not ended.
        let cell = unsafe { header.cast::<Self>().as_ref() };
        let state = &cell.header.state;
        if !state.begin() {
            // SAFETY: (TASK-3) in place of a turn.
            return unsafe { Self::end(header, None) };
        }
        // SAFETY: (TASK-2) the task does not end during its turn, which keeps the cell.
        let waker = unsafe { task_header::waker(header) };
        // SAFETY: (TASK-3) this is the turn.
        let run_part = unsafe { &mut *cell.run_part() };
        let turn = CurrentTurn::of_task(header.cast());
        // SAFETY: (RUN-1, TASK-2) the task does not end before the poll has returned; (RUN-2) the
        // guard is dropped below.
        let entered = unsafe { turn.enter() };
        let mut polled = Poll::Pending;
        let attempted = attempt_or_clear_uncounted(&mut |step| match step {
            Step::Run => {
                // SAFETY: (TASK-3) this is the turn, so the content is the future; a cell is never
                // moved.
                let future = unsafe { Pin::new_unchecked(&mut *run_part.content.future) };
                let now = future.poll(&mut Context::from_waker(&waker));
                // SAFETY: (TASK-3) `polled` is borrowed here alone, and still `Pending`, which needs no
                // drop: for one, a large value would be moved once more.
                unsafe { (&raw mut polled).write(now) };
            }
            // SAFETY: (TASK-3) this is the turn, so the content is the future.
            Step::Clear => unsafe { cell.drop_future(run_part) },
        });
        drop(entered);
        match (attempted, polled) {
            (Ok(()), Poll::Pending) => {}
            // SAFETY: (TASK-3) this is the turn.
            (Ok(()), Poll::Ready(value)) => return unsafe { Self::end(header, Some(Ok(value))) },
            (Err(panic), _) => {
                let unobserved = UnobservedPanic::new(panic, &cell.executor, cell.info());
                // SAFETY: (TASK-3) the future was dropped while the panic unwound.
                return unsafe { Self::finish(header, Some(Err(unobserved))) };
            }
        }
        let mut woken = turn.notes() & run::WOKEN != 0;
        if run_part.live_index.is_none() {
            run_part.live_index = cell.executor.track(&waker);
            // The executor is cancelling all tasks: this one wakes itself, to be dropped.
            woken |= run_part.live_index.is_none();
        }
        match state.rest(woken) {
            PollOutcome::Asleep => {}
            PollOutcome::Again => {
                // SAFETY: (EXECUTOR-1) a copy that is not dropped: another thread may free the cell
                // before `schedule` returns.
                let executor =
                    ManuallyDrop::new(unsafe { std::ptr::read(&raw const cell.executor) });
                // SAFETY: (TASK-STATE-1) this is the task's runnable; (TASK-2) it has not ended.
                executor.schedule(unsafe { Runnable::from_vtable(header.cast()) }, true);
            }
            // SAFETY: (TASK-3) this is the turn.
            PollOutcome::Closed => unsafe { Self::end(header, None) },
        }
    }

    /// # Safety
    /// As [`RunVTable::discard`].
    unsafe fn discard(header: NonNull<()>) {
        // SAFETY: (TASK-3) in place of a turn.
        unsafe { Self::end(header.cast(), None) };
    }

    /// # Safety
    /// As [`TaskVTable::schedule`].
    unsafe fn schedule(header: NonNull<TaskHeader>) {
        // SAFETY: (TASK-2) the caller's reference keeps the cell; (TASK-STATE-1) this is its
        // runnable.
        unsafe {
            let cell = header.cast::<Self>().as_ref();
            let runnable = Runnable::from_vtable(header.cast());
            cell.executor.schedule(runnable, false);
        }
    }

    /// Ends the task: drops the future on this thread and stores the outcome.
    ///
    /// # Safety
    /// Called by the turn (TASK-3), as its last step.
    unsafe fn end(header: NonNull<TaskHeader>, outcome: Option<TaskOutcome<Fut::Output>>) {
        // SAFETY: (TASK-1, TASK-2) the task has not ended before the last line; (TASK-3) this is
        // the turn.
        unsafe {
            let cell = header.cast::<Self>().as_ref();
            cell.drop_future(&mut *cell.run_part());
            Self::finish(header, outcome);
        }
    }

    /// Drops the future in place, after it has notified the executor.
    ///
    /// # Safety
    /// As [`end`](Self::end).
    unsafe fn drop_future(&self, run_part: &mut RunPart<Fut>) {
        if self.executor.is_observed() {
            self.executor.hooks().task_completed(&self.info());
        }
        // SAFETY: (TASK-3) the content is the future.
        contain_mut(&mut || unsafe { ManuallyDrop::drop(&mut run_part.content.future) });
    }

    /// Ends a task whose future was dropped already.
    ///
    /// # Safety
    /// As [`end`](Self::end).
    unsafe fn finish(header: NonNull<TaskHeader>, outcome: Option<TaskOutcome<Fut::Output>>) {
        // SAFETY: (TASK-1, TASK-2) the task has not ended before the last line.
        let cell = unsafe { header.cast::<Self>().as_ref() };
        let has_value = outcome.is_some();
        // SAFETY: (TASK-3) this is the turn.
        let run_part = unsafe { &mut *cell.run_part() };
        if let Some(outcome) = outcome {
            // The future was dropped (TASK-3), so the outcome may take its place.
            run_part.content.outcome = ManuallyDrop::new(outcome);
        }
        let live_index = run_part.live_index.take();
        cell.executor.task_dropped();
        if let Some(live_index) = live_index {
            cell.executor.untrack(live_index);
        }
        let before = cell.header.state.end(has_value);
        if has_value && !before.is_wanted {
            // SAFETY: (TASK-3) the task has ended, and there is no handle.
            unsafe { Self::forget(header) };
        }
        if before.is_awaited {
            // (TASK-4) The awaiter was armed.
            let awaiter = cell.header.change_awaiter(None);
            match awaiter {
                Some(waker) if before.is_wanted => waker.wake(),
                unneeded => drop(unneeded),
            }
        }
        // SAFETY: (TASK-2) the task's own reference, released last.
        unsafe { task_header::release(header) };
    }

    /// # Safety
    /// As [`TaskVTable::take`].
    unsafe fn take(header: NonNull<TaskHeader>, out: *mut ()) {
        // SAFETY: (TASK-3) by the caller's promise.
        unsafe {
            let cell = header.cast::<Self>().as_ref();
            let outcome = ManuallyDrop::take(&mut (*cell.run_part()).content.outcome);
            out.cast::<Option<TaskOutcome<Fut::Output>>>()
                .write(Some(outcome));
        }
    }

    /// # Safety
    /// As [`TaskVTable::forget`].
    unsafe fn forget(header: NonNull<TaskHeader>) {
        // SAFETY: (TASK-3) by the caller's promise.
        let cell = unsafe { header.cast::<Self>().as_ref() };
        // SAFETY: (TASK-3) by the caller's promise.
        let outcome = unsafe { ManuallyDrop::take(&mut (*cell.run_part()).content.outcome) };
        match outcome {
            Ok(value) => drop_result(value),
            Err(unobserved) => drop(unobserved),
        }
    }
}

//! The one handle of a plain task: the right to its outcome, and to cancel it.
//!
//! Dropping the handle cancels the task; detaching it lets the task continue.
#![expect(
    unsafe_code,
    reason = "one allocation accessed through several types; see TASK-1 to TASK-4 in cell.rs"
)]

use super::executor::Executor;
use crate::contain::{Panic, contain};
use crate::error::{Fault, UnhandledFault};
use crate::info::TaskInfo;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
use std::task::{Context, Poll};

use super::hooks::TaskHooks;
use super::key::TaskKey;
use super::run;
use super::state::Found;
use super::task_header::{TaskHeader, release, wake};
use super::waits::WaitsFor;
use crate::instant;
use crate::sync::Process;

/// The one handle of a task: a reference (TASK-2), and the right to its outcome (TASK-3).
pub(super) struct TaskHandle<T> {
    /// `None` once the handle has returned the outcome.
    header: Option<NonNull<TaskHeader>>,
    _outcome: PhantomData<T>,
}

// SAFETY: the handle sends one outcome and wake-ups to another thread, and nothing else of the
// task.
unsafe impl<T: Send> Send for TaskHandle<T> {}
// SAFETY: a shared handle only reads the state word.
unsafe impl<T> Sync for TaskHandle<T> {}

impl<T> Unpin for TaskHandle<T> {}
impl<T> UnwindSafe for TaskHandle<T> {}
impl<T> RefUnwindSafe for TaskHandle<T> {}

impl<T> TaskHandle<T> {
    /// The handle of a task that was cancelled before it began.
    pub(super) const CANCELLED: Self = TaskHandle {
        header: None,
        _outcome: PhantomData,
    };

    /// Creates the handle of a task.
    ///
    /// # Safety
    /// The caller transfers a reference (TASK-2) and the right to the outcome (TASK-3), which is of
    /// this type.
    pub(super) unsafe fn new(header: NonNull<TaskHeader>) -> Self {
        TaskHandle {
            header: Some(header),
            _outcome: PhantomData,
        }
    }

    /// Returns whether the handle has returned the outcome, or its task never began.
    pub(super) fn is_over(&self) -> bool {
        self.header.is_none()
    }

    /// Returns whether the task has ended, so that its future was dropped.
    pub(super) fn is_finished(&self) -> bool {
        let Some(header) = self.header else {
            return true;
        };
        // SAFETY: (TASK-2) the handle's reference.
        let has_ended = unsafe { header.as_ref() }.state.look() != Found::Alive;
        if has_ended {
            Self::look_at(header, true);
        }
        has_ended
    }

    /// Returns the hooks of the task's executor.
    fn hooks<'a>(header: NonNull<TaskHeader>) -> &'a dyn TaskHooks {
        // SAFETY: (TASK-2) the handle's reference.
        unsafe { (header.as_ref().vtable.hooks)(header).as_ref() }
    }

    /// Notes in a simulation whether this thread has observed the end of the task, or waits for it.
    #[inline]
    fn look_at(header: NonNull<TaskHeader>, has_ended: bool) {
        if instant::is_simulated() {
            Self::hooks(header).looked_at(TaskKey::at(header.as_ptr().cast()), has_ended);
        }
    }

    /// Returns the process that has the threads of the task's executor.
    fn process(header: NonNull<TaskHeader>) -> Process {
        Process::of(|| Self::hooks(header).process())
    }

    /// Waits for the end of the task. Returns the outcome once; `None` if there is none.
    ///
    /// # Panics
    /// If it would wait for a task of another process.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<TaskOutcome<T>>> {
        let Some(header) = self.header else {
            return Poll::Ready(None);
        };
        // SAFETY: (TASK-2) the handle's reference.
        let found = unsafe { header.as_ref() }.await_end(cx.waker());
        let Found::Ended { has_value } = found else {
            Self::process(header).check();
            Self::look_at(header, false);
            let what = Self::hooks(header).end_of_a_task();
            run::note_wait_for(cx.waker(), WaitsFor::Other(what), || 0);
            return Poll::Pending;
        };
        Self::look_at(header, true);
        self.header = None;
        let mut outcome = None;
        // SAFETY: (TASK-3) the task has ended, and this is the handle, which has no header
        // afterwards. `outcome` has the type that the handle was created with.
        unsafe {
            if has_value {
                (header.as_ref().vtable.take)(header, (&raw mut outcome).cast());
            }
            release(header);
        }
        Poll::Ready(outcome)
    }

    /// Cancels the task at its next suspension and waits until it has ended. Returns the outcome if
    /// there is one.
    pub(super) async fn cancel(mut self) -> Option<TaskOutcome<T>> {
        self.close();
        poll_fn(|cx| self.poll(cx)).await
    }

    /// Cancels the task at its next suspension.
    pub(super) fn close(&self) {
        let Some(header) = self.header else {
            return;
        };
        Self::look_at(header, true);
        // SAFETY: (TASK-2) the handle's reference.
        unsafe {
            if Self::process(header).is_current() && header.as_ref().state.close() {
                wake(header);
            }
        }
    }

    /// Lets the task continue and drops its outcome.
    pub(super) fn detach(mut self) {
        self.leave();
    }

    fn leave(&mut self) {
        let Some(header) = self.header.take() else {
            return;
        };
        // SAFETY: (TASK-2, TASK-3) this gives up the handle's reference and its right to the
        // outcome.
        unsafe {
            if header.as_ref().state.is_awaited() && Self::process(header).is_current() {
                header.as_ref().await_no_more();
            }
            if let Found::Ended { has_value } = header.as_ref().state.detach() {
                if has_value {
                    (header.as_ref().vtable.forget)(header);
                }
                release(header);
            }
        }
    }
}

/// Cancels the task and does not wait for its end.
impl<T> Drop for TaskHandle<T> {
    fn drop(&mut self) {
        self.close();
        self.leave();
    }
}

/// The outcome of a plain task. The panic is boxed, so that it does not enlarge every task.
pub(super) type TaskOutcome<T> = Result<T, Box<UnobservedPanic>>;

/// A panic that is reported to the executor unless the task is awaited.
pub(super) struct UnobservedPanic {
    panic: Option<Panic>,
    task: TaskInfo,
    report: Box<dyn Fn(&UnhandledFault<'_>) + Send + Sync>,
}

impl UnobservedPanic {
    pub(super) fn new(panic: Panic, executor: &impl Executor, task: TaskInfo) -> Box<Self> {
        let executor = executor.clone();
        Box::new(UnobservedPanic {
            panic: Some(panic),
            task,
            report: Box::new(move |unhandled| executor.hooks().report(unhandled)),
        })
    }

    pub(super) fn take_panic(mut self) -> Panic {
        self.panic.take().expect("a panic is taken once")
    }
}

impl Drop for UnobservedPanic {
    fn drop(&mut self) {
        if let Some(panic) = self.panic.take() {
            let fault = Fault::Panicked(panic);
            contain(|| {
                (self.report)(&UnhandledFault {
                    actor: None,
                    task: Some(&self.task),
                    name: self.task.name(),
                    id: None,
                    fault: &fault,
                    is_source: false,
                    is_on_undelivered: false,
                    is_on_displaced: false,
                });
            });
        }
    }
}

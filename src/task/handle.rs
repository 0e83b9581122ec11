//! The one handle of a plain task: the right to what it comes to, and to end it.
//!
//! A handle that goes away cancels its task, unless it lets the task go on.
#![expect(
    unsafe_code,
    reason = "one allocation seen through several types; see TASK-1 to TASK-4 in cell.rs"
)]

use std::future::poll_fn;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
use std::task::{Context, Poll};

use super::outcome::Outcome;
use super::state::Found;
use super::task_header::{TaskHeader, release, wake};
use crate::instant;
use crate::sync::Process;

/// The one handle of a task: a reference (TASK-2), and the right to what it came to (TASK-3).
pub(super) struct TaskHandle<T> {
    /// `None` once it has given that.
    header: Option<NonNull<TaskHeader>>,
    _outcome: PhantomData<T>,
}

// SAFETY: it hands out an outcome, once, and nothing else of the task's but wake-ups.
unsafe impl<T: Send> Send for TaskHandle<T> {}
// SAFETY: a shared one only looks at the word.
unsafe impl<T> Sync for TaskHandle<T> {}

impl<T> Unpin for TaskHandle<T> {}
impl<T> UnwindSafe for TaskHandle<T> {}
impl<T> RefUnwindSafe for TaskHandle<T> {}

impl<T> TaskHandle<T> {
    /// Of a task that was cancelled before it began.
    pub(super) const CANCELLED: Self = TaskHandle {
        header: None,
        _outcome: PhantomData,
    };

    /// # Safety
    /// The reference (TASK-2) and the right to the outcome (TASK-3) are the caller's to give away; the outcome is of
    /// this type.
    pub(super) unsafe fn new(header: NonNull<TaskHeader>) -> Self {
        TaskHandle {
            header: Some(header),
            _outcome: PhantomData,
        }
    }

    /// Whether it has given what it came to, or never began.
    pub(super) fn is_over(&self) -> bool {
        self.header.is_none()
    }

    /// Whether the future is gone.
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

    /// Tells a simulation whether this thread sees the end of the task, or waits for it.
    #[inline]
    fn look_at(header: NonNull<TaskHeader>, has_ended: bool) {
        if instant::is_simulated() {
            // SAFETY: (TASK-2) the handle's reference.
            unsafe { (header.as_ref().vtable.looked_at)(header, has_ended) };
        }
    }

    /// The process that has the threads of its executor.
    fn process(header: NonNull<TaskHeader>) -> Process {
        // SAFETY: (TASK-2) the handle's reference.
        Process::of(|| unsafe { (header.as_ref().vtable.process)(header) })
    }

    /// Waits for the end; gives what it came to, once.
    ///
    /// # Panics
    /// If it would wait for another process.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Outcome<T>>> {
        let Some(header) = self.header else {
            return Poll::Ready(None);
        };
        // SAFETY: (TASK-2) the handle's reference.
        let found = unsafe { header.as_ref() }.await_end(cx.waker());
        let Found::Ended { has_value } = found else {
            Self::process(header).check();
            Self::look_at(header, false);
            return Poll::Pending;
        };
        Self::look_at(header, true);
        self.header = None;
        let mut outcome = None;
        // SAFETY: (TASK-3) it has ended and this is the handle, which has nothing afterwards; `outcome`
        // is of the type that it came with.
        unsafe {
            if has_value {
                (header.as_ref().vtable.take)(header, (&raw mut outcome).cast());
            }
            release(header);
        }
        Poll::Ready(outcome)
    }

    /// Has it end at its next suspension, and waits until it has; gives what it came to if it did.
    pub(super) async fn cancel(mut self) -> Option<Outcome<T>> {
        self.close();
        poll_fn(|cx| self.poll(cx)).await
    }

    /// Has it end at its next suspension.
    fn close(&self) {
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

    /// Lets it go on, and drops what it comes to.
    pub(super) fn detach(mut self) {
        self.leave();
    }

    fn leave(&mut self) {
        let Some(header) = self.header.take() else {
            return;
        };
        // SAFETY: (TASK-2, TASK-3) the handle's reference and its right to the outcome, both given up.
        unsafe {
            if let Found::Ended { has_value } = header.as_ref().state.detach() {
                if has_value {
                    (header.as_ref().vtable.forget)(header);
                }
                release(header);
            }
        }
    }
}

/// As a cancelled task's is dropped.
impl<T> Drop for TaskHandle<T> {
    fn drop(&mut self) {
        self.close();
        self.leave();
    }
}

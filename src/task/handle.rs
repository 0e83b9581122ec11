//! The one handle of a plain task: the right to what it comes to, and to end it.
//!
//! A handle that goes away cancels its task, unless it lets the task go on.
#![expect(
    unsafe_code,
    reason = "one allocation seen through several types; see TASK-1 to TASK-4 in frame.rs"
)]

use std::future::poll_fn;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
use std::task::{Context, Poll};

use super::head::{Head, release, wake};
use super::outcome::Outcome;
use super::word::Found;
use crate::instant;
use crate::sync::Process;

/// The one handle of a task: a reference (TASK-2), and the right to what it came to (TASK-3).
pub(super) struct Handle<T> {
    /// `None` once it has given that.
    head: Option<NonNull<Head>>,
    _outcome: PhantomData<T>,
}

// SAFETY: it hands out an outcome, once, and nothing else of the task's but wake-ups.
unsafe impl<T: Send> Send for Handle<T> {}
// SAFETY: a shared one only looks at the word.
unsafe impl<T> Sync for Handle<T> {}

impl<T> Unpin for Handle<T> {}
impl<T> UnwindSafe for Handle<T> {}
impl<T> RefUnwindSafe for Handle<T> {}

impl<T> Handle<T> {
    /// Of a task that was cancelled before it began.
    pub(super) const CANCELLED: Self = Handle {
        head: None,
        _outcome: PhantomData,
    };

    /// # Safety
    /// The reference (TASK-2) and the right to the outcome (TASK-3), which is of this type, are the caller's to give away.
    pub(super) unsafe fn new(head: NonNull<Head>) -> Self {
        Handle {
            head: Some(head),
            _outcome: PhantomData,
        }
    }

    /// Whether it has given what it came to, or never began.
    pub(super) fn is_over(&self) -> bool {
        self.head.is_none()
    }

    /// Whether the future is gone.
    pub(super) fn is_finished(&self) -> bool {
        let Some(head) = self.head else { return true };
        // SAFETY: (TASK-2) the handle's reference.
        let has_ended = unsafe { head.as_ref() }.word.look() != Found::Alive;
        if has_ended {
            Self::look_at(head, true);
        }
        has_ended
    }

    /// Tells a simulation whether this thread sees the end of the task, or waits for it.
    #[inline]
    fn look_at(head: NonNull<Head>, has_ended: bool) {
        if instant::is_simulated() {
            // SAFETY: (TASK-2) the handle's reference.
            unsafe { (head.as_ref().table.looked_at)(head, has_ended) };
        }
    }

    /// The process that has the threads of its executor.
    fn process(head: NonNull<Head>) -> Process {
        // SAFETY: (TASK-2) the handle's reference.
        Process::of(|| unsafe { (head.as_ref().table.process)(head) })
    }

    /// Waits for the end; gives what it came to, once.
    ///
    /// # Panics
    /// If it would wait for another process.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Outcome<T>>> {
        let Some(head) = self.head else {
            return Poll::Ready(None);
        };
        // SAFETY: (TASK-2) the handle's reference.
        let found = unsafe { head.as_ref() }.await_end(cx.waker());
        let Found::Ended { has_value } = found else {
            Self::process(head).check();
            Self::look_at(head, false);
            return Poll::Pending;
        };
        Self::look_at(head, true);
        self.head = None;
        let mut outcome = None;
        // SAFETY: (TASK-3) it has ended and this is the handle, which has nothing afterwards; `outcome`
        // is of the type that it came with.
        unsafe {
            if has_value {
                (head.as_ref().table.take)(head, (&raw mut outcome).cast());
            }
            release(head);
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
        let Some(head) = self.head else {
            return;
        };
        Self::look_at(head, true);
        // SAFETY: (TASK-2) the handle's reference.
        unsafe {
            if Self::process(head).is_current() && head.as_ref().word.close() {
                wake(head);
            }
        }
    }

    /// Lets it go on, and drops what it comes to.
    pub(super) fn detach(mut self) {
        self.leave();
    }

    fn leave(&mut self) {
        let Some(head) = self.head.take() else {
            return;
        };
        // SAFETY: (TASK-2, TASK-3) as in `poll`.
        unsafe {
            if let Found::Ended { has_value } = head.as_ref().word.detach() {
                if has_value {
                    (head.as_ref().table.forget)(head);
                }
                release(head);
            }
        }
    }
}

/// As a cancelled task's is dropped.
impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        self.close();
        self.leave();
    }
}

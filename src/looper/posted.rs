//! The right to the result of a posted task.
//!
//! It knows whether the task that awaits it is one on which the result depends.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use super::current;
use super::error::TaskError;
use super::identity::Key;
use super::job::{Job, Outcome};
use crate::error::Deadlock;
use crate::runtime::context;

/// The result of a task that was posted, as a future.
///
/// Dropping it lets the task go on. If the task then panics, the panic reaches
/// [`on_fault`](crate::Builder::on_fault).
///
/// # Errors
/// [`TaskError`] says why there is no result.
///
/// A task that awaits a result of its own looper, or of the world, gets [`TaskError::Deadlock`] at
/// once: that result would have to wait for this task. A task of the world gets it for every result
/// of its controller.
///
/// # Panics
/// When it is polled after it has returned the result.
///
/// # Cancel safety
/// Cancel safe: the result stays here until it is returned.
#[must_use = "a result that is not awaited is dropped; `drop` it to say so"]
pub struct Posted<R> {
    job: Arc<Job<dyn Outcome<R>>>,
    /// The looper whose task awaits this.
    awaited_by: Option<Key>,
    is_over: bool,
}

impl<R> Posted<R> {
    pub(super) fn new(job: Arc<Job<dyn Outcome<R>>>) -> Self {
        Posted {
            job,
            awaited_by: None,
            is_over: false,
        }
    }

    /// Returns the priority with which the task was posted: the `mtllPriority` of MTLL. It is 0 for
    /// a task of the world.
    pub fn priority(&self) -> u8 {
        self.job.priority
    }

    /// Cancels the task, unless it has begun. Returns whether it had not begun.
    ///
    /// The result is [`TaskError::Cancelled`] then. The closure, or the future, is dropped before
    /// this returns, and its locks go to the tasks behind it.
    pub fn cancel(&self) -> bool {
        let job = &self.job;
        let looper = job.origin.seat().map(|seat| seat.key);
        let at = Arc::as_ptr(job).cast::<()>();
        let mut take = || job.body.take(TaskError::Cancelled, false);
        let hub = job.origin.hub();
        let cancelled = hub.cancel((looper, at), job.deadline(), &mut take);
        if cancelled {
            job.body.show(&job.origin);
        }
        cancelled
    }

    /// Returns whether the task has ended, in whichever way.
    pub fn is_finished(&self) -> bool {
        context::apply_effects();
        self.is_over || self.job.body.is_shown()
    }

    /// Returns the deadlock in which the task that runs here would await this forever.
    fn judge(&mut self) -> Option<Deadlock> {
        let job = &self.job;
        if job.body.is_over() {
            // The result is about to be shown.
            return None;
        }
        let own = current::with(|current| {
            let is_same = current.origin.hub().id() == job.origin.hub().id();
            is_same.then(|| current.origin.seat().cloned())
        });
        let own = own.flatten();
        let by = own.iter().flatten().map(|seat| seat.key).next();
        if self.awaited_by != by {
            self.end_await();
        }
        let (own, job) = (own?, &self.job);
        let text = |who: &dyn fmt::Display, whom: &dyn fmt::Display| {
            Deadlock::new(
                format!("{who} waits for {whom}, which waits for {who}"),
                true,
            )
        };
        match (own, job.origin.seat()) {
            (None, None) => Some(text(&"the world", &"a task of its own")),
            (None, Some(seat)) => Some(text(&"the world", &seat.identity)),
            (Some(own), None) => Some(text(&own.identity, &"the world")),
            (Some(own), Some(seat)) if Arc::ptr_eq(&own, seat) => {
                Some(text(&own.identity, &"a task of its own"))
            }
            (Some(own), Some(_)) => {
                self.awaited_by = by;
                let of: Arc<Job> = job.clone();
                job.origin.hub().await_result(own.key, Box::new(of))
            }
        }
    }

    fn end_await(&mut self) {
        if let Some(looper) = self.awaited_by.take() {
            let at = Arc::as_ptr(&self.job).cast();
            self.job.origin.hub().end_await(looper, at);
        }
    }
}

impl<R> Future for Posted<R> {
    type Output = Result<R, TaskError>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        assert!(
            !this.is_over,
            "a result was polled after it had been returned"
        );
        context::apply_effects();
        let polled = match this.job.body.poll_outcome(cx) {
            Poll::Pending => this.judge().map(|deadlock| {
                this.job.body.abandon(&this.job.origin);
                Err(TaskError::Deadlock(deadlock))
            }),
            Poll::Ready(outcome) => Some(outcome),
        };
        let Some(outcome) = polled else {
            return Poll::Pending;
        };
        this.is_over = true;
        this.end_await();
        Poll::Ready(outcome)
    }
}

impl<R> Unpin for Posted<R> {}

impl<R> Drop for Posted<R> {
    fn drop(&mut self) {
        self.end_await();
        if !self.is_over {
            self.job.body.abandon(&self.job.origin);
        }
    }
}

impl<R> fmt::Debug for Posted<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Posted")
            .field("is_finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

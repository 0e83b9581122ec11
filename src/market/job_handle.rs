//! The right to the result of an accepted job.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::board::Ticket;
use super::cell::Outcome;
use super::error::JobError;
use crate::contain::Panic;
use crate::runtime::context;
use crate::sync::LEFT_BEHIND;

/// A market as the handles of its jobs know it.
pub(super) trait Hub: Send + Sync {
    /// Takes a job off the board. Returns whether it had not begun; otherwise tells the job.
    fn cancel(self: Arc<Self>, ticket: Ticket) -> bool;

    /// Returns whether this is the process that has the market's threads.
    fn is_here(&self) -> bool;

    /// Reports a panic that is not awaited.
    fn report(&self, panic: Panic);
}

/// The result of an accepted job, as a future.
///
/// Dropping it lets the job go on. If the job then panics, the panic reaches
/// [`on_fault`](crate::Builder::on_fault).
///
/// # Errors
/// [`JobError`] says why there is no result.
///
/// # Panics
/// When it is polled after it has returned the result. In a child of `fork` all methods panic, and
/// a drop does nothing.
///
/// # Cancel safety
/// Cancel safe: the result stays here until it is returned.
#[must_use = "a result that is not awaited is dropped; `drop` it to say so"]
pub struct JobHandle<T> {
    job: Arc<dyn Outcome<T>>,
    hub: Arc<dyn Hub>,
    ticket: Ticket,
    is_over: bool,
}

impl<T> JobHandle<T> {
    pub(super) fn new(job: Arc<dyn Outcome<T>>, hub: Arc<dyn Hub>, ticket: Ticket) -> Self {
        JobHandle {
            job,
            hub,
            ticket,
            is_over: false,
        }
    }

    /// Cancels the job, unless it has begun. Returns whether it had not begun.
    ///
    /// The result is [`JobError::Cancelled`] then, and the closure is dropped before this returns.
    /// A job that has begun goes on, and [`is_cancelled`](super::is_cancelled) returns true in it.
    pub fn cancel(&self) -> bool {
        !self.is_finished() && self.hub.clone().cancel(self.ticket)
    }

    /// Returns whether the job has ended, in whichever way.
    pub fn is_finished(&self) -> bool {
        // In a child of `fork` a lock may stay locked.
        assert!(self.hub.is_here(), "{LEFT_BEHIND}");
        context::settle();
        self.is_over || self.job.is_over()
    }
}

impl<T> Future for JobHandle<T> {
    type Output = Result<T, JobError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(
            !self.is_over,
            "a result was polled after it had been returned"
        );
        assert!(self.hub.is_here(), "{LEFT_BEHIND}");
        context::settle();
        let polled = self.job.poll(cx);
        self.is_over = polled.is_ready();
        polled
    }
}

impl<T> Unpin for JobHandle<T> {}

impl<T> Drop for JobHandle<T> {
    fn drop(&mut self) {
        // In a child of `fork` a lock may stay locked.
        if !self.hub.is_here() {
            return;
        }
        if let Some(panic) = self.job.abandon() {
            self.hub.report(panic);
        }
    }
}

impl<T> fmt::Debug for JobHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_finished = self.hub.is_here().then(|| self.is_finished());
        f.debug_struct("JobHandle")
            .field("is_finished", &is_finished)
            .finish_non_exhaustive()
    }
}

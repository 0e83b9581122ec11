//! An accepted job: its work, and then its outcome.
//!
//! The work is taken once: by the worker that runs it, or to be dropped with an error. The outcome
//! is there only when the work has been dropped.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::error::JobError;
use crate::contain::{KeptWaker, Panic, attempt, contain, drop_result};
use crate::lock::SpinLock;
use crate::outcome::{self, Outcome};

pub(super) struct JobCell<F, T>(SpinLock<Outcome<F, Result<T, JobError>>>);

/// A job as the market has it.
pub(super) trait Work: Send + Sync {
    /// Runs the work.
    fn run(&self);

    /// Makes the outcome seen. Calls no user code.
    fn show(&self) -> Shown;

    /// Drops an outcome that is not awaited, except for a panic.
    fn discard(&self) -> Option<Panic>;

    /// Drops the work, with this outcome.
    fn refuse(&self, error: JobError);
}

/// What follows when an outcome was shown.
pub(super) struct Shown {
    /// The task that awaits it.
    pub(super) waker: Option<KeptWaker>,
    /// It is not awaited, and code of the user runs when it is discarded.
    pub(super) is_unwanted: bool,
    /// The work has panicked.
    pub(super) has_failed: bool,
}

/// A job as its handle has it.
pub(super) trait AwaitedJob<T>: Send + Sync {
    fn poll(&self, cx: &Context<'_>) -> Poll<Result<T, JobError>>;

    fn is_over(&self) -> bool;

    /// Gives up the outcome. Returns a panic that was there.
    fn abandon(&self) -> Option<Panic>;
}

impl<F, T> JobCell<F, T> {
    pub(super) fn new(work: F) -> Arc<Self> {
        Arc::new(JobCell(SpinLock::new(Outcome::new(work, None))))
    }

    /// Takes the work, unless it was taken.
    pub(super) fn recover(&self) -> Option<F> {
        self.0.with(Outcome::take_work)
    }

    fn end(&self, outcome: Result<T, JobError>) {
        self.0.with(|job| job.put(outcome));
    }
}

/// Drops an outcome that is not awaited, except for a panic.
fn panic_of<T: 'static>(outcome: Option<Result<T, JobError>>) -> Option<Panic> {
    match outcome {
        Some(Err(JobError::Panicked(panic))) => Some(panic),
        Some(Ok(value)) => {
            drop_result(value);
            None
        }
        _ => None,
    }
}

impl<F: FnOnce() -> T + Send, T: Send + 'static> Work for JobCell<F, T> {
    fn run(&self) {
        if let Some(work) = self.recover() {
            self.end(attempt(work).map_err(JobError::Panicked));
        }
    }

    fn show(&self) -> Shown {
        self.0.with(|job| {
            let runs_code = std::mem::needs_drop::<T>() || !matches!(job.value(), Some(Ok(_)));
            Shown {
                has_failed: matches!(job.value(), Some(Err(JobError::Panicked(_)))),
                waker: job.show(),
                is_unwanted: job.is_abandoned() && runs_code,
            }
        })
    }

    fn discard(&self) -> Option<Panic> {
        panic_of(self.0.with(Outcome::take))
    }

    fn refuse(&self, error: JobError) {
        if let Some(work) = self.recover() {
            contain(|| drop(work));
            self.end(Err(error));
            if let Some(waker) = self.show().waker {
                waker.wake();
            }
        }
    }
}

impl<F: Send, T: Send + 'static> AwaitedJob<T> for JobCell<F, T> {
    fn poll(&self, cx: &Context<'_>) -> Poll<Result<T, JobError>> {
        outcome::poll(cx, |waker| self.0.with(|job| job.take_or_leave(waker)))
    }

    fn is_over(&self) -> bool {
        self.0.with(|job| job.is_shown())
    }

    fn abandon(&self) -> Option<Panic> {
        let (outcome, waker) = self.0.with(|job| job.abandon());
        drop(waker);
        panic_of(outcome)
    }
}

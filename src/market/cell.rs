//! An accepted job: its work, and then its outcome.
//!
//! The work is taken once: by the worker that runs it, or to be dropped with an error. The outcome
//! is there only when the work has been dropped. Work that is tried again is put back before the
//! market is told, and taken again by the next worker.

use std::any::Any;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::error::JobError;
use crate::contain::{KeptWaker, Panic, attempt, contain, drop_result};
use crate::lock::SpinLock;
use crate::outcome::{self, Outcome};
use crate::time::RetryIntervals;
use crate::tracer::SentSpan;

pub(super) struct JobCell<F, T>(SpinLock<Outcome<Labor<F>, Result<T, JobError>>>);

/// The work of a job.
pub(super) struct Labor<F> {
    pub(super) work: F,
    pub(super) retry: Option<Box<RetryPlan>>,
    /// The span in which the job was offered.
    pub(super) span: SentSpan,
}

/// How a job is tried again.
pub(super) struct RetryPlan {
    pub(super) intervals: RetryIntervals,
    /// How many attempts have failed.
    pub(super) failures: u64,
    /// Calls the work once, an `F` or a `Box<F>`, and puts its result into an `Option`. Returns
    /// whether the result is an error.
    pub(super) call: fn(&mut dyn Any, &mut dyn Any) -> bool,
}

/// How one run of a job has ended.
pub(super) struct JobAttempt {
    pub(super) has_failed: bool,
    /// After which time the job is to be tried again. Without one it has its outcome.
    pub(super) pause: Option<Duration>,
    /// A panic that is not the outcome.
    pub(super) panic: Option<Panic>,
}

/// A job as the market has it.
pub(super) trait Work: Send + Sync {
    /// Runs the work once.
    fn run(&self) -> JobAttempt;

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
}

/// A job as its handle has it.
pub(super) trait AwaitedJob<T>: Send + Sync {
    fn poll(&self, cx: &Context<'_>) -> Poll<Result<T, JobError>>;

    fn is_over(&self) -> bool;

    /// Gives up the outcome. Returns a panic that was there.
    fn abandon(&self) -> Option<Panic>;
}

impl<F, T> JobCell<F, T> {
    pub(super) fn new(labor: Labor<F>) -> Arc<Self> {
        Arc::new(JobCell(SpinLock::new(Outcome::new(labor, None))))
    }

    /// Takes the work, unless it was taken.
    pub(super) fn recover(&self) -> Option<Labor<F>> {
        self.0.with(Outcome::take_work)
    }

    fn end(&self, outcome: Result<T, JobError>) {
        self.0.with(|job| job.put(outcome));
    }
}

/// Drops an outcome that is not awaited, except for a panic.
fn panic_of<T: 'static>(outcome: Option<Result<T, JobError>>) -> Option<Panic> {
    match outcome?.map(drop_result) {
        Err(JobError::Panicked(panic)) => Some(panic),
        _ => None,
    }
}

impl<F: FnOnce() -> T + Send + 'static, T: Send + 'static> JobCell<F, T> {
    /// Calls work that may be tried again.
    fn try_once(&self, mut work: F, mut retry: Box<RetryPlan>, span: SentSpan) -> JobAttempt {
        let mut result: Option<T> = None;
        let call = || (retry.call)(&mut work, &mut result);
        let failure = span.call_within(true, || attempt(call));
        let has_failed = !matches!(failure, Ok(false));
        let pause = retry.intervals.interval(retry.failures);
        if let Some(pause) = pause.filter(|_| has_failed) {
            contain(|| drop(result));
            retry.failures += 1;
            let labor = Labor {
                work,
                retry: Some(retry),
                span,
            };
            self.0.with(|job| job.put_back(labor));
            return JobAttempt {
                has_failed,
                pause: Some(pause),
                panic: failure.err(),
            };
        }
        contain(|| drop(work));
        let returned = || result.expect("work that returns has a result");
        self.end(failure.map(|_| returned()).map_err(JobError::Panicked));
        JobAttempt::last(has_failed)
    }
}

impl JobAttempt {
    fn last(has_failed: bool) -> Self {
        JobAttempt {
            has_failed,
            pause: None,
            panic: None,
        }
    }
}

impl<F: FnOnce() -> T + Send + 'static, T: Send + 'static> Work for JobCell<F, T> {
    fn run(&self) -> JobAttempt {
        let Some(Labor { work, retry, span }) = self.recover() else {
            return JobAttempt::last(false);
        };
        match retry {
            Some(retry) => self.try_once(work, retry, span),
            None => {
                let result = span.call_within(true, || attempt(work));
                let has_failed = result.is_err();
                self.end(result.map_err(JobError::Panicked));
                JobAttempt::last(has_failed)
            }
        }
    }

    fn show(&self) -> Shown {
        self.0.with(|job| {
            let runs_code = std::mem::needs_drop::<T>() || !matches!(job.value(), Some(Ok(_)));
            Shown {
                waker: job.show(),
                is_unwanted: job.is_abandoned() && runs_code,
            }
        })
    }

    fn discard(&self) -> Option<Panic> {
        panic_of(self.0.with(Outcome::take))
    }

    fn refuse(&self, error: JobError) {
        if let Some(labor) = self.recover() {
            contain(|| drop(labor));
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

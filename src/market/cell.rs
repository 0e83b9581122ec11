//! An accepted job: its work, and then its outcome.
//!
//! The work is taken once: by the worker that runs it, or to be dropped with an error. The outcome
//! is there only when the work has been dropped.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::error::JobError;
use crate::contain::{Panic, attempt, contain, drop_result};
use crate::lock::SpinLock;
use crate::sync::mutant;
use crate::waker::KeptWaker;

pub(super) struct JobCell<F, T>(SpinLock<State<F, T>>);

struct State<F, T> {
    stage: Stage<F, T>,
    /// The waker of the task that awaits the outcome.
    waker: Option<KeptWaker>,
    /// The outcome may be seen.
    is_shown: bool,
    /// The outcome is not awaited any more.
    is_abandoned: bool,
}

enum Stage<F, T> {
    New(F),
    /// The work was taken.
    Begun,
    Over(Result<T, JobError>),
    Gone,
}

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
}

/// A job as its handle has it.
pub(super) trait Outcome<T>: Send + Sync {
    fn poll(&self, cx: &Context<'_>) -> Poll<Result<T, JobError>>;

    fn is_over(&self) -> bool;

    /// Gives up the outcome. Returns a panic that was there.
    fn abandon(&self) -> Option<Panic>;
}

impl<F, T> JobCell<F, T> {
    pub(super) fn new(work: F) -> Arc<Self> {
        Arc::new(JobCell(SpinLock::new(State {
            stage: Stage::New(work),
            waker: None,
            is_shown: false,
            is_abandoned: false,
        })))
    }

    /// Takes the work, unless it was taken.
    pub(super) fn recover(&self) -> Option<F> {
        self.0.with(
            |state| match std::mem::replace(&mut state.stage, Stage::Begun) {
                Stage::New(work) => Some(work),
                other => {
                    state.stage = other;
                    None
                }
            },
        )
    }

    fn end(&self, outcome: Result<T, JobError>) {
        // The previous stage is `Begun`.
        self.0.with(|state| state.stage = Stage::Over(outcome));
    }
}

impl<F, T> State<F, T> {
    /// Returns whether code of the user runs when the outcome is discarded.
    fn runs_code(&self) -> bool {
        std::mem::needs_drop::<T>() || !matches!(self.stage, Stage::Over(Ok(_)))
    }

    /// Takes the outcome, if it may be seen.
    fn take(&mut self) -> Option<Result<T, JobError>> {
        if !self.is_shown {
            return None;
        }
        match std::mem::replace(&mut self.stage, Stage::Gone) {
            Stage::Over(outcome) => Some(outcome),
            other => {
                self.stage = other;
                None
            }
        }
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
        self.0.with(|state| {
            state.is_shown = true;
            Shown {
                waker: state.waker.take(),
                is_unwanted: state.is_abandoned && state.runs_code(),
            }
        })
    }

    fn discard(&self) -> Option<Panic> {
        panic_of(self.0.with(State::take))
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

impl<F: Send, T: Send + 'static> Outcome<T> for JobCell<F, T> {
    fn poll(&self, cx: &Context<'_>) -> Poll<Result<T, JobError>> {
        if let Some(outcome) = self.0.with(State::take) {
            return Poll::Ready(outcome);
        }
        let mut waker = Some(KeptWaker::new(cx.waker()));
        let outcome = self.0.with(|state| {
            std::mem::swap(&mut state.waker, &mut waker);
            match mutant("a_task_awaits_without_a_second_look") {
                true => None,
                false => state.take(),
            }
        });
        drop(waker);
        outcome.map_or(Poll::Pending, Poll::Ready)
    }

    fn is_over(&self) -> bool {
        self.0.with(|state| state.is_shown)
    }

    fn abandon(&self) -> Option<Panic> {
        let (outcome, waker) = self.0.with(|state| {
            state.is_abandoned = true;
            (state.take(), state.waker.take())
        });
        drop(waker);
        panic_of(outcome)
    }
}

//! The work of a job and its outcome, with their types.
//!
//! A closure or a future stays as it came, so that a job that is not accepted gives it back.

use std::future::{Future, Ready};
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::cell::{LooperCell, Want};
use super::claim::Access;
use super::error::TaskError;
use super::job::{JobBody, JobOutcome, JobRun};
use crate::contain::{KeptWaker, Step, attempt, attempt_or_clear, contain, drop_result};
use crate::error::Fault;
use crate::lock::SpinLock;

/// A job of a task `F` with the locks `A`. `B` begins it: it returns the result, or a future that
/// goes on.
pub(super) struct TypedJob<F, A, Fut: Future, B> {
    begin: B,
    access: Option<A>,
    state: SpinLock<TypedJobState<F, Fut>>,
}

struct TypedJobState<F, Fut: Future> {
    work: JobWork<F, Fut>,
    /// It is there when the task has ended or was taken, until it is awaited.
    outcome: Option<Result<Fut::Output, TaskError>>,
    /// The waker of the task that awaits the outcome.
    waker: Option<KeptWaker>,
    /// The outcome may be seen.
    is_shown: bool,
    /// The outcome is not awaited any more.
    is_abandoned: bool,
}

enum JobWork<F, Fut> {
    New(F),
    Future(Pin<Box<Fut>>),
    /// It runs. If there is an outcome, it was taken and is being dropped.
    Busy,
    Gone,
}

/// The begin of a closure, which has no future: its result.
pub(super) fn done<R>(value: R) -> ControlFlow<R, Pin<Box<Ready<R>>>> {
    ControlFlow::Break(value)
}

impl<F, A, Fut, B> TypedJob<F, A, Fut, B>
where
    Fut: Future,
    B: Fn(F, Option<&A>, &Arc<LooperCell>) -> ControlFlow<Fut::Output, Pin<Box<Fut>>>,
{
    pub(super) fn new(task: F, access: Option<A>, begin: B) -> Self {
        TypedJob {
            begin,
            access,
            state: SpinLock::new(TypedJobState {
                work: JobWork::New(task),
                outcome: None,
                waker: None,
                is_shown: false,
                is_abandoned: false,
            }),
        }
    }

    /// Returns the work of a job that was not accepted.
    pub(super) fn recover(&self) -> Option<F> {
        let work = self.state.with(|state| state.take_work(JobWork::Gone));
        match work {
            JobWork::New(task) => Some(task),
            _ => None,
        }
    }

    fn end(&self, outcome: Result<Fut::Output, TaskError>) -> JobRun {
        self.state.with(|state| {
            state.work = JobWork::Gone;
            state.outcome = Some(outcome);
        });
        JobRun::Ended
    }

    /// Polls the future of a task that has begun.
    fn poll(&self, future: Pin<Box<Fut>>, looper: &Arc<LooperCell>) -> JobRun {
        let waker = Waker::from(looper.clone());
        let mut cx = Context::from_waker(&waker);
        // A future that panics is dropped while the panic unwinds, so that a guard of a `std` mutex
        // in it poisons that mutex.
        let (mut future, mut polled) = (Some(future), Poll::Pending);
        let attempted = attempt_or_clear(&mut |step| match (step, &mut future) {
            (Step::Clear, future) => *future = None,
            (Step::Run, Some(future)) => polled = future.as_mut().poll(&mut cx),
            (Step::Run, None) => {}
        });
        match (attempted, polled) {
            (Err(panic), _) => self.end(Err(TaskError::Panicked(panic))),
            (Ok(()), Poll::Ready(value)) => {
                contain(|| drop(future));
                self.end(Ok(value))
            }
            (Ok(()), Poll::Pending) => {
                if let Some(future) = future {
                    self.state
                        .with(|state| state.take_work(JobWork::Future(future)));
                }
                JobRun::Waits
            }
        }
    }
}

impl<F, Fut: Future> TypedJobState<F, Fut> {
    fn take_work(&mut self, leave: JobWork<F, Fut>) -> JobWork<F, Fut> {
        std::mem::replace(&mut self.work, leave)
    }

    /// Shows the outcome. Returns whom to wake, and an outcome that nobody awaits.
    fn show(&mut self) -> (Option<KeptWaker>, Option<Result<Fut::Output, TaskError>>) {
        self.is_shown = true;
        let unwanted = self.outcome.take_if(|_| self.is_abandoned);
        (self.waker.take(), unwanted)
    }
}

impl<F, A, Fut, B> JobBody for TypedJob<F, A, Fut, B>
where
    F: Send + 'static,
    A: Access,
    Fut: Future<Output: Send + 'static> + Send,
    B: Fn(F, Option<&A>, &Arc<LooperCell>) -> ControlFlow<Fut::Output, Pin<Box<Fut>>>,
    B: Send + Sync,
{
    fn want(&self) -> Option<&Want> {
        self.access.as_ref()?.want()
    }

    fn run(&self, looper: &Arc<LooperCell>) -> JobRun {
        let work = self
            .state
            .with(|state| match (&state.work, &state.outcome) {
                (JobWork::New(_) | JobWork::Future(_), None) => state.take_work(JobWork::Busy),
                _ => JobWork::Gone,
            });
        match work {
            JobWork::New(task) => {
                match attempt(|| (self.begin)(task, self.access.as_ref(), looper)) {
                    Ok(ControlFlow::Break(value)) => self.end(Ok(value)),
                    Ok(ControlFlow::Continue(future)) => self.poll(future, looper),
                    Err(panic) => self.end(Err(TaskError::Panicked(panic))),
                }
            }
            JobWork::Future(future) => self.poll(future, looper),
            JobWork::Busy | JobWork::Gone => JobRun::Never,
        }
    }

    fn take(&self, error: TaskError, even_begun: bool) -> bool {
        let mut error = Some(error);
        self.state.with(|state| {
            let may_take = match (&state.work, &state.outcome) {
                (JobWork::New(_), None) => true,
                (JobWork::Future(_), None) => even_begun,
                _ => false,
            };
            if may_take {
                state.outcome = error.take().map(Err);
            }
            may_take
        })
    }

    fn is_over(&self) -> bool {
        self.state
            .with(|state| state.outcome.is_some() || matches!(state.work, JobWork::Gone))
    }

    fn show(&self, looper: &LooperCell) {
        let mut unused = None;
        let show = |state: &mut TypedJobState<F, Fut>| match &state.work {
            // What is left of work that was taken is dropped first, without the lock.
            JobWork::New(_) | JobWork::Future(_) if state.outcome.is_some() => {
                unused = Some(state.take_work(JobWork::Busy));
                (None, None)
            }
            JobWork::Gone if state.outcome.is_some() => state.show(),
            // It has not ended, or another call drops the work and then shows the outcome.
            _ => (None, None),
        };
        let mut shown = self.state.with(show);
        if let Some(unused) = unused {
            contain(|| drop(unused));
            shown = self.state.with(|state| {
                state.work = JobWork::Gone;
                state.show()
            });
        }
        let (waker, unwanted) = shown;
        if let Some(waker) = waker {
            waker.wake();
        }
        drop_unwanted(unwanted, looper);
    }
}

impl<F, A, Fut, B> JobOutcome<Fut::Output> for TypedJob<F, A, Fut, B>
where
    F: Send + 'static,
    A: Access,
    Fut: Future<Output: Send + 'static> + Send,
    B: Fn(F, Option<&A>, &Arc<LooperCell>) -> ControlFlow<Fut::Output, Pin<Box<Fut>>>,
    B: Send + Sync,
{
    fn poll_outcome(&self, cx: &Context<'_>) -> Poll<Result<Fut::Output, TaskError>> {
        let take = |state: &mut TypedJobState<F, Fut>| state.outcome.take_if(|_| state.is_shown);
        if let Some(outcome) = self.state.with(take) {
            return Poll::Ready(outcome);
        }
        let mut waker = Some(KeptWaker::new(cx.waker()));
        let outcome = self.state.with(|state| {
            if !state.is_shown {
                std::mem::swap(&mut state.waker, &mut waker);
            }
            take(state)
        });
        drop(waker);
        outcome.map_or(Poll::Pending, Poll::Ready)
    }

    fn is_shown(&self) -> bool {
        self.state.with(|state| state.is_shown)
    }

    fn abandon(&self, looper: &LooperCell) {
        let (outcome, waker) = self.state.with(|state| {
            state.is_abandoned = true;
            let outcome = state.outcome.take_if(|_| state.is_shown);
            (outcome, state.waker.take())
        });
        drop(waker);
        drop_unwanted(outcome, looper);
    }
}

/// Drops an outcome that is not awaited, and reports its panic.
fn drop_unwanted<R: 'static>(outcome: Option<Result<R, TaskError>>, looper: &LooperCell) {
    match outcome {
        None => {}
        Some(Err(TaskError::Panicked(panic))) => {
            let name = looper.to_string();
            looper.monitor.report(&name, &Fault::Panicked(panic));
        }
        Some(Err(error)) => contain(|| drop(error)),
        Some(Ok(value)) => drop_result(value),
    }
}

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
use crate::outcome::{self, Outcome};

/// A job of a task `F` with the locks `A`. `B` begins it: it returns the result, or a future that
/// goes on.
pub(super) struct TypedJob<F, A, Fut: Future, B> {
    begin: B,
    access: Option<A>,
    state: SpinLock<Outcome<JobWork<F, Fut>, WorkEnd<F, Fut>>>,
}

enum JobWork<F, Fut> {
    New(F),
    Future(Pin<Box<Fut>>),
}

/// What a task has left behind.
struct WorkEnd<F, Fut: Future> {
    result: Result<Fut::Output, TaskError>,
    /// The work of a job that was taken. It is dropped before the result is shown.
    left: Option<JobWork<F, Fut>>,
    /// That work is being dropped.
    is_dropping: bool,
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
            state: SpinLock::new(Outcome::new(JobWork::New(task), None)),
        }
    }

    /// Returns the work of a job that was not accepted.
    pub(super) fn recover(&self) -> Option<F> {
        match self.state.with(Outcome::take_work) {
            Some(JobWork::New(task)) => Some(task),
            _ => None,
        }
    }

    fn end(&self, result: Result<Fut::Output, TaskError>) -> JobRun {
        let end = WorkEnd {
            result,
            left: None,
            is_dropping: false,
        };
        self.state.with(|state| state.put(end));
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
                    let work = JobWork::Future(future);
                    self.state.with(|state| state.put_back(work));
                }
                JobRun::Waits
            }
        }
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
        match self.state.with(Outcome::take_work) {
            Some(JobWork::New(task)) => {
                match attempt(|| (self.begin)(task, self.access.as_ref(), looper)) {
                    Ok(ControlFlow::Break(value)) => self.end(Ok(value)),
                    Ok(ControlFlow::Continue(future)) => self.poll(future, looper),
                    Err(panic) => self.end(Err(TaskError::Panicked(panic))),
                }
            }
            Some(JobWork::Future(future)) => self.poll(future, looper),
            None => JobRun::Never,
        }
    }

    fn take(&self, error: TaskError, even_begun: bool) -> bool {
        self.state.with(|state| {
            let may = |work: &JobWork<F, Fut>| even_begun || matches!(work, JobWork::New(_));
            let left = state.take_work_if(may);
            let is_taken = left.is_some();
            if is_taken {
                state.put(WorkEnd {
                    result: Err(error),
                    left,
                    is_dropping: false,
                });
            }
            is_taken
        })
    }

    fn is_over(&self) -> bool {
        self.state
            .with(|state| state.is_shown() || state.value().is_some())
    }

    fn show(&self, looper: &LooperCell) {
        let shown = self.state.with(|state| match state.value_mut() {
            // What is left of work that was taken is dropped first, without the lock.
            Some(WorkEnd {
                left, is_dropping, ..
            }) if left.is_some() => {
                *is_dropping = true;
                Err(left.take())
            }
            Some(end) if !end.is_dropping => Ok(show_end(state)),
            // It has not ended, or another call drops the work and then shows the end.
            _ => Ok((None, None)),
        });
        let (waker, unwanted) = shown.unwrap_or_else(|left| {
            contain(|| drop(left));
            self.state.with(show_end)
        });
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
        let polled = outcome::poll(cx, |waker| {
            self.state.with(|state| state.take_or_leave(waker))
        });
        polled.map(|end| end.result)
    }

    fn is_shown(&self) -> bool {
        self.state.with(|state| state.is_shown())
    }

    fn abandon(&self, looper: &LooperCell) {
        let (outcome, waker) = self.state.with(Outcome::abandon);
        drop(waker);
        drop_unwanted(outcome, looper);
    }
}

/// Shows the end of a job, whose work is gone. Returns what to wake, and an end that is not awaited.
fn show_end<F, Fut: Future>(
    state: &mut Outcome<JobWork<F, Fut>, WorkEnd<F, Fut>>,
) -> (Option<KeptWaker>, Option<WorkEnd<F, Fut>>) {
    let waker = state.show();
    (waker, state.is_abandoned().then(|| state.take()).flatten())
}

/// Drops an outcome that is not awaited, and reports its panic.
fn drop_unwanted<F, Fut>(end: Option<WorkEnd<F, Fut>>, looper: &LooperCell)
where
    Fut: Future<Output: 'static>,
{
    match end.map(|end| end.result) {
        None => {}
        Some(Err(TaskError::Panicked(panic))) => {
            let name = looper.to_string();
            looper.monitor.report(&name, &Fault::Panicked(panic));
        }
        Some(Err(error)) => contain(|| drop(error)),
        Some(Ok(value)) => drop_result(value),
    }
}

//! A posted task: what it runs, which locks it needs, and its outcome.
//!
//! Exactly one party takes the work of a job: the lane that begins it, or the table, with an error.
//! The outcome is shown only after the captures of the task were dropped and its locks were
//! released.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};

use super::error::TaskError;
use super::hub::{Awaited, Hub};
use super::identity::Key;
use super::seat::Seat;
use super::want::Wants;
use crate::contain::{Step, attempt, attempt_or_clear, contain, drop_result};
use crate::error::Fault;
use crate::instant::Instant;
use crate::lock::SpinLock;
use crate::waker::KeptWaker;

pub(super) struct Job<B: ?Sized = dyn Body> {
    pub(super) origin: Origin,
    pub(super) priority: u8,
    pub(super) wants: Wants,
    pub(super) extras: Option<Box<JobExtras>>,
    /// The task gets guards that may outlive it.
    pub(super) is_owning: bool,
    pub(super) body: B,
}

/// What few jobs have.
#[derive(Default)]
pub(super) struct JobExtras {
    /// When its locks must have been granted, with a number that no other deadline has.
    pub(super) deadline: Option<(Instant, u64)>,
    /// The waker of a task that is a future.
    pub(super) waker: Option<KeptWaker>,
}

impl<B: ?Sized> Job<B> {
    pub(super) fn deadline(&self) -> Option<(Instant, u64)> {
        self.extras.as_ref()?.deadline
    }

    pub(super) fn waker(&self) -> Option<&Waker> {
        self.extras
            .as_ref()?
            .waker
            .as_ref()
            .map(KeptWaker::as_waker)
    }
}

impl Awaited for Arc<Job> {
    fn at(&self) -> *const () {
        Arc::as_ptr(self).cast()
    }

    fn looper(&self) -> Option<Key> {
        self.origin.seat().map(|seat| seat.key)
    }

    fn is_over(&self) -> bool {
        self.body.is_over()
    }
}

/// Where a job was posted.
pub(super) enum Origin {
    Looper(Arc<Seat>),
    World(Arc<dyn Hub>),
}

impl Origin {
    pub(super) fn hub(&self) -> &Arc<dyn Hub> {
        match self {
            Origin::Looper(seat) => &seat.hub,
            Origin::World(hub) => hub,
        }
    }

    pub(super) fn seat(&self) -> Option<&Arc<Seat>> {
        match self {
            Origin::Looper(seat) => Some(seat),
            Origin::World(_) => None,
        }
    }
}

/// The work of a job.
pub(super) trait Work: Send + 'static {
    type Output: Send + 'static;

    /// Runs the task, or makes its future.
    fn begin(self, at: &Origin) -> Begun<Self::Output>;
}

pub(super) enum Begun<R> {
    Done(R),
    Future(Pin<Box<dyn Future<Output = R> + Send>>),
}

/// How a turn of a job has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ran {
    Ended,
    Waits,
    /// The work was taken before it began.
    Never,
}

/// The part of a job whose type is erased for lanes and the table.
pub(super) trait Body: Send + Sync {
    /// Begins the task, or polls its future.
    fn run(&self, at: &Origin, cx: &mut TaskContext<'_>) -> Ran;

    /// Takes the work, unless it was taken. Its outcome is this error, which [`Body::show`] shows.
    fn take(&self, error: TaskError, even_begun: bool) -> bool;

    /// Returns whether the task has ended or was taken.
    fn is_over(&self) -> bool;

    /// Drops what was left of the work, and makes the outcome seen.
    fn show(&self, at: &Origin);
}

/// The part of a job that its [`Posted`](super::Posted) knows.
pub(super) trait Outcome<R>: Body {
    fn poll_outcome(&self, cx: &TaskContext<'_>) -> Poll<Result<R, TaskError>>;
    fn is_shown(&self) -> bool;
    /// Gives up the right to the outcome.
    fn abandon(&self, at: &Origin);
}

/// The state of a job: its work, then its outcome, until that is taken.
pub(super) struct Cell<W: Work>(SpinLock<State<W>>);

struct State<W: Work> {
    stage: Stage<W>,
    /// The waker of the task that awaits the outcome.
    waker: Option<KeptWaker>,
    /// The outcome may be seen.
    is_shown: bool,
    /// The outcome is not awaited any more.
    is_abandoned: bool,
}

enum Stage<W: Work> {
    New(W),
    Future(Pending<W::Output>),
    /// The work runs.
    Running,
    /// The work was taken, and is to be dropped before the error is shown.
    Refused(TaskError, Unused<W>),
    Over(Result<W::Output, TaskError>),
    Gone,
}

type Pending<R> = Pin<Box<dyn Future<Output = R> + Send>>;

enum Unused<W: Work> {
    New(W),
    Future(Pending<W::Output>),
    /// It is being dropped.
    Gone,
}

impl<W: Work> Cell<W> {
    pub(super) fn new(work: W) -> Self {
        Cell(SpinLock::new(State {
            stage: Stage::New(work),
            waker: None,
            is_shown: false,
            is_abandoned: false,
        }))
    }

    /// Returns the work of a job that was not accepted.
    pub(super) fn recover(&self) -> Option<W> {
        match self.swap(Stage::Gone) {
            Stage::New(work) => Some(work),
            _ => None,
        }
    }

    fn swap(&self, stage: Stage<W>) -> Stage<W> {
        self.0
            .with(|state| std::mem::replace(&mut state.stage, stage))
    }

    fn end(&self, outcome: Result<W::Output, TaskError>) -> Ran {
        // The previous stage is `Running`.
        self.swap(Stage::Over(outcome));
        Ran::Ended
    }

    /// Polls the future of a task that has begun.
    fn poll(&self, future: Pending<W::Output>, cx: &mut TaskContext<'_>) -> Ran {
        let (mut future, mut polled) = (Some(future), Poll::Pending);
        let attempted = attempt_or_clear(&mut |step| match (step, &mut future) {
            (Step::Clear, future) => *future = None,
            (Step::Run, Some(future)) => polled = future.as_mut().poll(cx),
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
                    self.swap(Stage::Future(future));
                }
                Ran::Waits
            }
        }
    }
}

impl<W: Work> State<W> {
    /// Makes the error of work that was taken and dropped the outcome.
    fn refuse(&mut self) {
        self.stage = match std::mem::replace(&mut self.stage, Stage::Gone) {
            Stage::Refused(error, _) => Stage::Over(Err(error)),
            other => other,
        };
    }

    /// Takes the outcome, if it is there.
    fn take_outcome(&mut self) -> Option<Result<W::Output, TaskError>> {
        match std::mem::replace(&mut self.stage, Stage::Gone) {
            Stage::Over(outcome) => Some(outcome),
            other => {
                self.stage = other;
                None
            }
        }
    }
}

impl<W: Work> Body for Cell<W> {
    fn run(&self, at: &Origin, cx: &mut TaskContext<'_>) -> Ran {
        let stage = self.0.with(|state| match state.stage {
            Stage::New(_) | Stage::Future(_) => std::mem::replace(&mut state.stage, Stage::Running),
            _ => Stage::Gone,
        });
        match stage {
            Stage::New(work) => match attempt(|| work.begin(at)) {
                Ok(Begun::Done(value)) => self.end(Ok(value)),
                Ok(Begun::Future(future)) => self.poll(future, cx),
                Err(panic) => self.end(Err(TaskError::Panicked(panic))),
            },
            Stage::Future(future) => self.poll(future, cx),
            _ => Ran::Never,
        }
    }

    fn take(&self, error: TaskError, even_begun: bool) -> bool {
        let mut error = Some(error);
        self.0.with(|state| {
            let may_take = match state.stage {
                Stage::New(_) => true,
                Stage::Future(_) => even_begun,
                _ => false,
            };
            let Some(error) = error.take_if(|_| may_take) else {
                return false;
            };
            state.stage = match std::mem::replace(&mut state.stage, Stage::Running) {
                Stage::New(work) => Stage::Refused(error, Unused::New(work)),
                Stage::Future(future) => Stage::Refused(error, Unused::Future(future)),
                other => other,
            };
            true
        })
    }

    fn is_over(&self) -> bool {
        self.0.with(|state| {
            let stage = &state.stage;
            matches!(stage, Stage::Refused(..) | Stage::Over(_) | Stage::Gone)
        })
    }

    fn show(&self, at: &Origin) {
        let unused = self.0.with(|state| match &mut state.stage {
            Stage::Refused(_, unused) => Some(std::mem::replace(unused, Unused::Gone)),
            _ => None,
        });
        match unused {
            None => {}
            Some(Unused::New(work)) => contain(|| drop(work)),
            Some(Unused::Future(future)) => contain(|| drop(future)),
            // Another call drops the work, and then shows the outcome.
            Some(Unused::Gone) => return,
        }
        self.0.with(State::refuse);
        let (waker, unwanted) = self.0.with(|state| {
            state.is_shown |= matches!(state.stage, Stage::Over(_));
            let waker = state.waker.take_if(|_| state.is_shown);
            let unwanted = state.is_abandoned.then(|| state.take_outcome());
            (waker, unwanted.flatten())
        });
        if let Some(waker) = waker {
            waker.wake();
        }
        drop_unwanted(unwanted, at);
    }
}

impl<W: Work> Outcome<W::Output> for Cell<W> {
    fn poll_outcome(&self, cx: &TaskContext<'_>) -> Poll<Result<W::Output, TaskError>> {
        let take = |state: &mut State<W>| match state.is_shown {
            true => state.take_outcome(),
            false => None,
        };
        if let Some(outcome) = self.0.with(take) {
            return Poll::Ready(outcome);
        }
        let mut waker = Some(KeptWaker::new(cx.waker()));
        let outcome = self.0.with(|state| {
            if !state.is_shown {
                std::mem::swap(&mut state.waker, &mut waker);
            }
            take(state)
        });
        drop(waker);
        outcome.map_or(Poll::Pending, Poll::Ready)
    }

    fn is_shown(&self) -> bool {
        self.0.with(|state| state.is_shown)
    }

    fn abandon(&self, at: &Origin) {
        let (outcome, waker) = self.0.with(|state| {
            state.is_abandoned = true;
            let outcome = state.is_shown.then(|| state.take_outcome());
            (outcome.flatten(), state.waker.take())
        });
        drop(waker);
        drop_unwanted(outcome, at);
    }
}

/// Drops an outcome that is not awaited, and reports its panic.
fn drop_unwanted<R: 'static>(outcome: Option<Result<R, TaskError>>, at: &Origin) {
    match outcome {
        None => {}
        Some(Err(TaskError::Panicked(panic))) => {
            let seat = at.seat().map(|seat| &seat.identity);
            at.hub().report(seat, &Fault::Panicked(panic));
        }
        Some(Err(error)) => contain(|| drop(error)),
        Some(Ok(value)) => drop_result(value),
    }
}

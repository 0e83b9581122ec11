//! A posted task: where it was posted, which locks it needs, its work behind a pointer, and the
//! right to its result.
//!
//! Exactly one party takes the work of a job: the lane that begins it, or the table, with an error.
//! The outcome of a task that ran is shown last: its captures were dropped, and its locks given back.
//! Excepted are kept locks, and those of guards that left the task. If the work is taken when a lane is
//! about to run it, the error may be seen before that lane gives back the locks. The right to a result
//! knows whether the task that awaits it is one on which the result depends.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::cell::{LooperCell, Want};
use super::error::TaskError;
use crate::error::Deadlock;
use crate::instant::Instant;
use crate::runtime::context;
use crate::task::{WaitsFor, run};

pub(super) struct PostedJob<B: ?Sized = dyn JobBody> {
    /// The looper, or the world.
    pub(super) looper: Arc<LooperCell>,
    pub(super) priority: u8,
    /// The task gets guards that may outlive it.
    pub(super) is_owning: bool,
    /// When its locks must have been granted, with a number that no other deadline has.
    pub(super) deadline: Option<Box<(Instant, u64)>>,
    /// A set of locks, in the order of their numbers, in which they are taken.
    pub(super) set: Box<[Want]>,
    pub(super) body: B,
}

/// How a turn of a job has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum JobRun {
    Ended,
    Waits,
    /// The work was taken after the table had begun the job, and before the lane ran it.
    Never,
}

/// The part of a job whose type is erased for lanes and the table.
pub(super) trait JobBody: Send + Sync {
    /// Returns the lock that the task needs, if it needs one and that is no set.
    fn want(&self) -> Option<&Want>;

    /// Begins the task, or polls its future.
    fn run(&self, looper: &Arc<LooperCell>) -> JobRun;

    /// Takes the work, unless it was taken. Its outcome is this error, which [`JobBody::show`]
    /// shows.
    fn take(&self, error: TaskError, even_begun: bool) -> bool;

    /// Returns whether the task has ended or was taken.
    fn is_over(&self) -> bool;

    /// Drops what was left of the work, and makes the outcome seen.
    fn show(&self, looper: &LooperCell);
}

/// The part of a job that its [`Posted`] knows.
pub(super) trait JobOutcome<R>: JobBody {
    fn poll_outcome(&self, cx: &Context<'_>) -> Poll<Result<R, TaskError>>;

    fn is_shown(&self) -> bool;

    /// Gives up the right to the outcome.
    fn abandon(&self, looper: &LooperCell);
}

impl<B: JobBody + ?Sized> PostedJob<B> {
    /// Returns the locks that the task needs, in the order in which they are taken.
    pub(super) fn wants(&self) -> &[Want] {
        match self.body.want() {
            Some(want) => std::slice::from_ref(want),
            None => &self.set,
        }
    }

    pub(super) fn deadline(&self) -> Option<(Instant, u64)> {
        self.deadline.as_deref().copied()
    }

    /// Returns the number of guards that an owning task gets.
    pub(super) fn guards(&self) -> usize {
        match self.is_owning {
            true => self.wants().iter().filter(|it| it.lock.has_value).count(),
            false => 0,
        }
    }

    pub(super) fn show(&self) {
        self.body.show(&self.looper);
    }
}

/// Returns whether two pointers lead to the same job, whatever is known of its type.
pub(super) fn is_same<A: ?Sized, B: ?Sized>(a: &Arc<PostedJob<A>>, b: &Arc<PostedJob<B>>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b))
}

crate::sync::thread_local! {
    /// The job that runs on this thread.
    static CURRENT: RefCell<Option<Arc<PostedJob>>> = const { RefCell::new(None) };
}
crate::sync::thread_local! {
    /// The turn of the lane that runs it. The job counts only in this turn: a task that waits in
    /// `block_on` may lend its thread to other tasks.
    static TURN: Cell<Option<NonNull<()>>> = const { Cell::new(None) };
}

/// Runs a job as the current one of this turn. It contains the panics of the task.
pub(super) fn run_as_current(job: &Arc<PostedJob>) -> JobRun {
    let outer = CURRENT.try_with(|it| it.replace(Some(job.clone())));
    let outer_turn = TURN.try_with(|it| it.replace(run::innermost_turn()));
    let run = job.body.run(&job.looper);
    drop(CURRENT.try_with(|it| it.replace(outer.ok().flatten())));
    let _ = TURN.try_with(|it| it.set(outer_turn.ok().flatten()));
    run
}

/// Calls `look` with the job that runs on this thread.
pub(super) fn with_current<R>(look: impl FnOnce(&PostedJob) -> R) -> Option<R> {
    let turn = TURN.try_with(Cell::get).ok()?;
    let job = CURRENT.try_with(|it| it.borrow().clone()).ok()??;
    (turn == run::innermost_turn()).then(|| look(&job))
}

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
    job: Arc<PostedJob<dyn JobOutcome<R>>>,
    /// The looper whose task awaits this.
    awaited_by: Option<u32>,
    is_over: bool,
}

impl<R> Posted<R> {
    pub(super) fn new(job: Arc<PostedJob<dyn JobOutcome<R>>>) -> Self {
        Posted {
            job,
            awaited_by: None,
            is_over: false,
        }
    }

    /// Returns the priority with which the task was posted. It is 0 for a task of the world.
    #[doc(alias = "mtllPriority")]
    pub fn priority(&self) -> u8 {
        self.job.priority
    }

    /// Cancels the task, unless it has begun. Returns whether it had not begun.
    ///
    /// The result is [`TaskError::Cancelled`] then. The closure, or the future, is dropped before
    /// this returns, and its locks go to the tasks behind it.
    pub fn cancel(&self) -> bool {
        let job: Arc<PostedJob> = self.job.clone();
        let take = || job.body.take(TaskError::Cancelled, false);
        let monitor = &job.looper.monitor;
        let cancelled = monitor.change(|table, follow_up| table.cancel(&job, take, follow_up));
        if cancelled {
            job.show();
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
        let own = with_current(|current| current.looper.clone());
        let own = own.filter(|own| own.monitor.id == self.job.looper.monitor.id);
        let by = own
            .as_ref()
            .filter(|own| !own.is_world())
            .map(|own| own.key);
        if self.awaited_by != by {
            self.end_await();
        }
        let (own, job) = (own?, &self.job);
        if job.body.is_over() {
            // The result is about to be shown.
            return None;
        }
        let whom = &job.looper;
        if Arc::ptr_eq(&own, whom) || own.is_world() && whom.is_world() {
            return Some(deadlock(&own, &"a task of its own"));
        }
        if own.is_world() || whom.is_world() {
            return Some(deadlock(&own, whom));
        }
        self.awaited_by = by;
        let of: Arc<PostedJob> = job.clone();
        own.monitor
            .change(|table, _| table.await_result(own.key, &of))
    }

    fn end_await(&mut self) {
        if let Some(looper) = self.awaited_by.take() {
            let of: Arc<PostedJob> = self.job.clone();
            let monitor = &of.looper.monitor;
            monitor.change(|table, _| table.end_await(looper, &of));
        }
    }
}

/// Returns the deadlock of two that wait for each other.
fn deadlock(who: &dyn fmt::Display, whom: &dyn fmt::Display) -> Deadlock {
    let text = format!("{who} waits for {whom}, which waits for {who}");
    Deadlock::new(text, true)
}

impl<R> Future for Posted<R> {
    type Output = Result<R, TaskError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        assert!(
            !this.is_over,
            "a result was polled after it had been returned"
        );
        context::apply_effects();
        // The waker is stored before the wait is judged, so that no outcome is missed.
        let polled = match this.job.body.poll_outcome(cx) {
            Poll::Pending => this.judge().map(|deadlock| {
                this.job.body.abandon(&this.job.looper);
                Err(TaskError::Deadlock(deadlock))
            }),
            Poll::Ready(outcome) => Some(outcome),
        };
        let Some(outcome) = polled else {
            run::note_wait_for(cx.waker(), WaitsFor::Other("a task of a looper"), || 0);
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
            self.job.body.abandon(&self.job.looper);
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

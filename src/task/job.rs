//! A job: a closure that runs once, elsewhere, and its result for the caller, in one allocation.
//!
//! A job never waits, so it has no waker of its own. However it ends, its caller is woken once.
//!
//! # Invariants
//! - JOB-1: the runnable of a job is one reference of its `Arc`, and the only one that runs it
//!   (RUNNABLE-1 in runnable.rs).
#![expect(
    unsafe_code,
    reason = "a runnable is an `Arc` as a raw pointer; see JOB-1"
)]

#[cfg(all(test, greenroom_loom))]
mod loom;

use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::executor::Executor;
use super::key::TaskKey;
use super::runnable::{RunVTable, Runnable};
use crate::contain::{Panic, attempt, contain};
use crate::lock::SpinLock;
use crate::sync::mutant;
use crate::waker::KeptWaker;

#[repr(C)]
struct JobCell<H, F, R> {
    vtable: &'static RunVTable,
    state: SpinLock<JobState<F, R>>,
    /// The executor, if it is to observe the end.
    watcher: Option<H>,
}

enum JobState<F, R> {
    Waits(F, KeptWaker),
    Runs(KeptWaker),
    Done(Result<R, Panic>),
    /// The job was dropped without having run.
    Lost,
    /// The caller has taken the result or dropped the job.
    Unwanted,
}

impl<H: Executor, F: FnOnce() -> R, R> JobCell<H, F, R> {
    const VTABLE: &'static RunVTable = &RunVTable {
        run: Self::run,
        discard: Self::discard,
    };

    /// # Safety
    /// As [`RunVTable::run`].
    unsafe fn run(job: NonNull<()>) {
        // SAFETY: (JOB-1) the pointer comes from `into_raw`.
        let this = unsafe { Arc::from_raw(job.cast::<Self>().as_ptr()) };
        let job = this
            .state
            .with(|state| match std::mem::replace(state, JobState::Unwanted) {
                JobState::Waits(job, waker) => {
                    *state = JobState::Runs(waker);
                    Some(job)
                }
                _ => None,
            });
        let end = job.map(|job| JobState::Done(attempt(job)));
        this.end(end.unwrap_or(JobState::Unwanted));
    }

    /// # Safety
    /// As [`RunVTable::discard`].
    unsafe fn discard(job: NonNull<()>) {
        // SAFETY: (JOB-1) the pointer comes from `into_raw`.
        let this = unsafe { Arc::from_raw(job.cast::<Self>().as_ptr()) };
        this.end(JobState::Lost);
    }

    /// Notifies the executor, then stores the result and wakes the caller, unless it dropped the
    /// job.
    fn end(&self, end: JobState<F, R>) {
        if let Some(watcher) = &self.watcher {
            watcher.hooks().task_completed();
        }
        let previous = self.state.with(|state| match state {
            JobState::Unwanted => end,
            _ => std::mem::replace(state, end),
        });
        match previous {
            JobState::Runs(waker) if !mutant("caller_is_not_woken") => waker.wake(),
            JobState::Waits(job, waker) => {
                contain(|| drop(job));
                waker.wake();
            }
            unneeded => unneeded.give_up(),
        }
    }
}

impl<F, R> JobState<F, R> {
    /// Drops the state. The closure and the waker are dropped separately, so that both drops may
    /// panic.
    fn give_up(self) {
        match self {
            JobState::Waits(job, _waker) => contain(|| drop(job)),
            unneeded => contain(|| drop(unneeded)),
        }
    }
}

impl<H, F, R> JobCell<H, F, R> {
    /// Takes the final state, or calls `waits` with the stored waker if the job has not ended.
    fn take(&self, waits: impl FnOnce(&mut KeptWaker)) -> Option<JobState<F, R>> {
        self.state.with(|state| match state {
            JobState::Waits(_, waker) | JobState::Runs(waker) => {
                waits(waker);
                None
            }
            _ => Some(std::mem::replace(state, JobState::Unwanted)),
        })
    }
}

/// A job in progress, as its caller sees it. If it is dropped before the closure starts, the
/// closure does not run.
pub(crate) struct HostedJob<H, F, R>(Arc<JobCell<H, F, R>>);

/// The end of a job.
pub(crate) enum JobEnd<R> {
    Done(R),
    Panicked(Panic),
    /// The job was dropped without having run.
    Lost,
}

impl<H, F, R> HostedJob<H, F, R>
where
    H: Executor,
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    /// Schedules `job` on `executor`. `waker` is that of the task that polls the returned future
    /// next.
    ///
    /// `is_watching`: the executor observes the end of the job.
    pub(crate) fn new(executor: &H, is_watching: bool, job: F, waker: KeptWaker) -> Self {
        let cell = Arc::new(JobCell {
            vtable: JobCell::<H, F, R>::VTABLE,
            state: SpinLock::new(JobState::Waits(job, waker)),
            watcher: is_watching.then(|| executor.clone()),
        });
        let raw = Arc::into_raw(cell.clone()).cast_mut().cast();
        // SAFETY: (JOB-1) this reference belongs to the runnable, which is the only one.
        let runnable = unsafe { Runnable::from_vtable(NonNull::new_unchecked(raw)) };
        executor.schedule(runnable, false);
        HostedJob(cell)
    }
}

impl<H: Executor, F, R> Future for HostedJob<H, F, R> {
    type Output = JobEnd<R>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<JobEnd<R>> {
        // A task that polls again was most likely woken by the end, so the first attempt clones no
        // waker.
        let end = self.0.take(|_| {}).or_else(|| {
            let mut waker = KeptWaker::new(cx.waker());
            self.0.take(|left| std::mem::swap(left, &mut waker))
        });
        if let (Some(_), Some(watcher)) = (&end, &self.0.watcher) {
            let job = TaskKey::at(Arc::as_ptr(&self.0).cast());
            watcher.hooks().looked_at(job, true);
        }
        match end {
            None => Poll::Pending,
            Some(JobState::Done(Ok(value))) => Poll::Ready(JobEnd::Done(value)),
            Some(JobState::Done(Err(panic))) => Poll::Ready(JobEnd::Panicked(panic)),
            Some(_) => Poll::Ready(JobEnd::Lost),
        }
    }
}

impl<H, F, R> Drop for HostedJob<H, F, R> {
    fn drop(&mut self) {
        let unneeded = self
            .0
            .state
            .with(|state| std::mem::replace(state, JobState::Unwanted));
        unneeded.give_up();
    }
}

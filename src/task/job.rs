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
use crate::contain::{KeptWaker, Panic, attempt, contain};
use crate::info::TaskInfo;
use crate::lock::SpinLock;
use crate::outcome::{self, Outcome};
use crate::sync::mutant;

#[repr(C)]
struct HostedJobCell<H, F, R> {
    vtable: &'static RunVTable,
    state: SpinLock<Outcome<F, JobEnd<R>>>,
    /// The executor, if it is to observe the end.
    watcher: Option<H>,
}

impl<H: Executor, F: FnOnce() -> R, R> HostedJobCell<H, F, R> {
    const VTABLE: &'static RunVTable = &RunVTable {
        run: Self::run,
        discard: Self::discard,
        info: |job| TaskInfo::of_task(TaskKey::at(job.as_ptr()).number()),
    };

    /// # Safety
    /// As [`RunVTable::run`].
    unsafe fn run(job: NonNull<()>) {
        // SAFETY: (JOB-1) the pointer comes from `into_raw`.
        let this = unsafe { Arc::from_raw(job.cast::<Self>().as_ptr()) };
        let work = this.state.with(Outcome::take_work);
        this.end(work.map(|work| match attempt(work) {
            Ok(value) => JobEnd::Done(value),
            Err(panic) => JobEnd::Panicked(panic),
        }));
    }

    /// # Safety
    /// As [`RunVTable::discard`].
    unsafe fn discard(job: NonNull<()>) {
        // SAFETY: (JOB-1) the pointer comes from `into_raw`.
        let this = unsafe { Arc::from_raw(job.cast::<Self>().as_ptr()) };
        this.end(Some(JobEnd::Lost));
    }

    /// Notifies the executor, then shows the end and wakes the caller, unless it dropped the job.
    /// There is no end if the caller did so before the closure began.
    fn end(&self, end: Option<JobEnd<R>>) {
        if let Some(watcher) = &self.watcher {
            let job = TaskKey::at(std::ptr::from_ref(self).cast());
            watcher
                .hooks()
                .task_completed(&TaskInfo::of_task(job.number()));
        }
        // Dropped without the lock, and before the caller is woken.
        let (work, waker, unwanted) = self.state.with(|state| {
            let work = state.take_work();
            if let Some(end) = end {
                state.put(end);
            }
            let waker = state.show();
            let is_abandoned = state.is_abandoned();
            (work, waker, is_abandoned.then(|| state.take()).flatten())
        });
        contain(|| drop(work));
        contain(|| drop(unwanted));
        if let Some(waker) = waker
            && !mutant("caller_is_not_woken")
        {
            waker.wake();
        }
    }
}

/// A job in progress, as its caller sees it. If it is dropped before the closure starts, the
/// closure does not run.
pub(crate) struct HostedJob<H, F, R>(Arc<HostedJobCell<H, F, R>>);

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
        let cell = Arc::new(HostedJobCell {
            vtable: HostedJobCell::<H, F, R>::VTABLE,
            state: SpinLock::new(Outcome::new(job, Some(waker))),
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
        let polled = outcome::poll(cx, |waker| {
            self.0.state.with(|state| state.take_or_leave(waker))
        });
        if let (Poll::Ready(_), Some(watcher)) = (&polled, &self.0.watcher) {
            let job = TaskKey::at(Arc::as_ptr(&self.0).cast());
            watcher.hooks().looked_at(job, true);
        }
        polled
    }
}

impl<H, F, R> Drop for HostedJob<H, F, R> {
    fn drop(&mut self) {
        let (work, (end, waker)) = self
            .0
            .state
            .with(|state| (state.take_work(), state.abandon()));
        contain(|| drop(work));
        contain(|| drop(end));
        drop(waker);
    }
}

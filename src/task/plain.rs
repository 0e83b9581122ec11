//! A plain task: any future on an executor, with a handle as in smol.
//!
//! A task whose wakers were all dropped lives until its executor shuts down. A panic in the drop of
//! a future or of a value is contained.

#![expect(unsafe_code, reason = "futures that need not be `Send`")]

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{Location, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::cell;
use super::executor::Executor;
use super::handle::TaskHandle;
use super::handle::TaskOutcome;
use crate::error::Fault;

/// The handle of a spawned future.
///
/// - Awaiting it waits until the future completes, and returns the value.
/// - Dropping it cancels the task, without waiting: the future is dropped at its next suspension.
/// - [`detach`](Task::detach) lets the task continue without a handle.
///
/// # Panics
/// Awaiting resumes the panic of the future. It also panics if the runtime or pinned thread of the
/// task was shut down first; [`fallible`](Task::fallible) returns `None` then. If the task is not
/// awaited, a panic of the future goes to [`on_fault`](crate::Builder::on_fault).
///
/// # Cancel safety
/// A `&mut Task` can be awaited, too. If that await is dropped, the task continues and can be
/// awaited again.
///
/// # Examples
/// ```
/// greenroom::run(async {
///     let task = greenroom::spawn(async { 40 + 2 });
///     assert_eq!(task.await, 42);
/// });
/// ```
#[must_use = "dropping a task cancels it; use `detach` to let it continue"]
pub struct Task<T>(TaskHandle<T>);

impl<T> Task<T> {
    /// Lets the task continue without a handle. Its value is dropped.
    ///
    /// The task lives until its future completes, or until its runtime or pinned thread is shut
    /// down, which cancels it. A task that waits for something that cannot happen any more, and
    /// whose wakers were all dropped, is not dropped earlier.
    pub fn detach(self) {
        self.0.detach();
    }

    /// Cancels the task and waits until its future is dropped. Returns the value if the future had
    /// completed.
    ///
    /// # Panics
    /// Resumes the panic of a future that had panicked.
    ///
    /// # Cancel safety
    /// If this future is dropped, the task is cancelled all the same; a value is dropped.
    pub async fn cancel(self) -> Option<T> {
        self.0.cancel().await.map(open)
    }

    /// Waits for the value of the task, or returns `None` if the task was cancelled.
    ///
    /// # Panics
    /// The future resumes the panic of the task.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the task, as dropping the [`Task`] does.
    pub fn fallible(self) -> impl Future<Output = Option<T>> + use<T> {
        FallibleTask(self.0)
    }

    /// Returns whether the task has ended: its future has completed or panicked, or was dropped by
    /// a cancellation.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl<T> Task<T> {
    /// Cancels the task at its next suspension, and waits for nothing.
    pub(crate) fn close(&self) {
        self.0.close();
    }

    /// Waits for the end of the task, whose outcome is dropped.
    pub(crate) async fn ended(mut self) {
        drop(poll_fn(|cx| self.0.poll(cx)).await);
    }

    /// Polls a task without a value for the fault that has ended it.
    pub(crate) fn poll_fault(&mut self, cx: &mut Context<'_>) -> Poll<Fault> {
        let has_begun = !self.0.is_over();
        self.0.poll(cx).map(|outcome| match outcome {
            Some(Err(unobserved)) => Fault::Panicked(unobserved.take_panic()),
            _ if has_begun => Fault::Cancelled,
            _ => Fault::NotStarted,
        })
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    /// Polls the task for the value of its future.
    ///
    /// # Panics
    /// Resumes the panic of the future. Also panics
    ///
    /// - if the task was cancelled by the shutdown of its runtime or pinned thread,
    /// - if it is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let is_over = self.0.is_over();
        match ready!(self.0.poll(cx)) {
            Some(outcome) => Poll::Ready(open(outcome)),
            None if is_over => panic!(
                "the task was cancelled by the shutdown of its runtime before it began, \
                 or polled after it was ready"
            ),
            None => panic!("the task was cancelled by the shutdown of its runtime"),
        }
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("finished", &self.is_finished())
            .finish()
    }
}

/// The future of [`Task::fallible`].
struct FallibleTask<T>(TaskHandle<T>);

impl<T> Future for FallibleTask<T> {
    type Output = Option<T>;

    /// Polls the task. Returns `None` if it was cancelled, or if it is polled again after it was
    /// ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.poll(cx).map(|outcome| outcome.map(open))
    }
}

fn open<T>(outcome: TaskOutcome<T>) -> T {
    outcome.unwrap_or_else(|unobserved| resume_unwind(unobserved.take_panic().into_payload()))
}

/// Spawns a future of the user on `executor`. Without a name it is called after the type `Of`.
#[track_caller]
pub(crate) fn spawn<Of, H, Fut>(executor: H, future: Fut) -> Task<Fut::Output>
where
    Of: 'static,
    H: Executor,
    Fut: Future + Send + 'static,
    Fut::Output: Send + 'static,
{
    // SAFETY: the future is `Send`, so it may be polled and dropped on any thread.
    unsafe { spawn_unchecked::<Of, _, _>(executor, future, Some(Location::caller())) }
}

/// Spawns a future of this crate, for which no location of the program can be named.
pub(crate) fn spawn_own<H, Fut>(executor: H, future: Fut) -> Task<Fut::Output>
where
    H: Executor,
    Fut: Future + Send + 'static,
    Fut::Output: Send + 'static,
{
    // SAFETY: as in `spawn`.
    unsafe { spawn_unchecked::<Fut, _, _>(executor, future, None) }
}

/// Spawns a future that need not be `Send`, at `location` in the program. If its value is not `Send`,
/// neither is the task.
///
/// # Safety
/// From its first poll on, the executor polls and drops the future on one thread only. Before that,
/// it may be dropped on any thread, or only this thread drops it.
pub(crate) unsafe fn spawn_unchecked<Of, H, Fut>(
    executor: H,
    future: Fut,
    location: Option<&'static Location<'static>>,
) -> Task<Fut::Output>
where
    Of: 'static,
    H: Executor,
    Fut: Future + 'static,
    Fut::Output: 'static,
{
    // SAFETY: by the caller's promise.
    Task(unsafe { cell::new::<Of, _, _>(executor, future, location) })
}

/// Returns the handle of a task that was cancelled before it began.
pub(crate) fn cancelled<T>() -> Task<T> {
    Task(TaskHandle::CANCELLED)
}

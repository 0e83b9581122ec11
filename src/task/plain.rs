//! A plain task: any future on an executor, with a handle that smol's users know.
//!
//! A task whose wakers are all gone lives until its executor is shut down; a panic in the drop of a future or of a
//! value goes no further.

#![expect(unsafe_code, reason = "futures that need not be `Send`")]

use std::fmt;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::cell;
use super::executor::Executor;
use super::handle::TaskHandle;
use super::outcome::Outcome;

/// A spawned future: await it for its value, drop it to cancel, or let it go with `detach`.
///
/// Awaiting resumes the panic of a future that panicked. If the runtime was shut down first,
/// awaiting panics with a text that says so; [`fallible`](Task::fallible) gives `None` then.
/// A panic that nobody awaits goes to [`on_fault`](crate::Builder::on_fault).
///
/// ```
/// greenroom::run(async {
///     let task = greenroom::spawn(async { 40 + 2 });
///     assert_eq!(task.await, 42);
/// });
/// ```
#[must_use = "a task that is dropped is cancelled; use `detach` to let it go on"]
pub struct Task<T>(TaskHandle<T>);

impl<T> Task<T> {
    /// Lets the task go on by itself; its value is dropped.
    ///
    /// It lives until its future is done or its runtime or pinned thread is shut down, which cancels it. So does
    /// one that waits for what can't come any more, and whose wakers are all gone: nothing else drops it.
    pub fn detach(self) {
        self.0.detach();
    }

    /// Cancels the task and waits until its future is dropped; gives the value if it was ready.
    ///
    /// # Panics
    /// Resumes the panic of a future that had panicked.
    pub async fn cancel(self) -> Option<T> {
        self.0.cancel().await.map(open)
    }

    /// A task that, awaited, gives `None` where this one would panic for being cancelled.
    pub fn fallible(self) -> FallibleTask<T> {
        FallibleTask(self.0)
    }

    /// Whether the future is done or cancelled.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    /// # Panics
    /// Resumes the panic of a future that panicked. If the task was cancelled by the shutdown of its
    /// runtime, if it is polled again after it was ready, and in a child of `fork` if it would wait for the parent.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let is_over = self.0.is_over();
        match ready!(self.0.poll(cx)) {
            Some(outcome) => Poll::Ready(open(outcome)),
            None if is_over => panic!(
                "the task was cancelled by the shutdown of its runtime before it began, or polled after it was ready"
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

/// A [`Task`] that gives `None` if it was cancelled.
#[must_use = "a task that is dropped is cancelled; use `detach` to let it go on"]
pub struct FallibleTask<T>(TaskHandle<T>);

impl<T> FallibleTask<T> {
    /// As [`Task::detach`].
    pub fn detach(self) {
        self.0.detach();
    }

    /// As [`Task::cancel`].
    ///
    /// # Panics
    /// Resumes the panic of a future that had panicked.
    pub async fn cancel(self) -> Option<T> {
        self.0.cancel().await.map(open)
    }

    /// As [`Task::is_finished`].
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl<T> Future for FallibleTask<T> {
    type Output = Option<T>;

    /// Polled again after it was ready it gives `None`.
    ///
    /// # Panics
    /// Resumes the panic of a future that panicked.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.poll(cx).map(|outcome| outcome.map(open))
    }
}

impl<T> fmt::Debug for FallibleTask<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FallibleTask")
            .field("finished", &self.is_finished())
            .finish()
    }
}

fn open<T>(outcome: Outcome<T>) -> T {
    outcome.unwrap_or_else(|unheard| resume_unwind(unheard.hear().into_payload()))
}

/// Spawns a future on `executor`.
pub(crate) fn spawn<H, Fut>(executor: H, future: Fut) -> Task<Fut::Output>
where
    H: Executor,
    Fut: Future + Send + 'static,
    Fut::Output: Send + 'static,
{
    // SAFETY: the future is `Send`, so it may be polled and dropped anywhere.
    unsafe { spawn_unchecked(executor, future) }
}

/// Spawns a future that need not be `Send`.
///
/// # Safety
/// From its first poll on, the executor polls and drops the future on one thread only; before, it may
/// be dropped on any.
pub(crate) unsafe fn spawn_unchecked<H, Fut>(executor: H, future: Fut) -> Task<Fut::Output>
where
    H: Executor,
    Fut: Future + 'static,
    Fut::Output: Send + 'static,
{
    // SAFETY: by the caller's promise.
    Task(unsafe { cell::new(executor, future) })
}

/// A task that was cancelled before it began.
pub(crate) fn cancelled<T>() -> Task<T> {
    Task(TaskHandle::CANCELLED)
}

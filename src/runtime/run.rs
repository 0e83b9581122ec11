//! Running a future on a new runtime, and spawning plain tasks.

use std::future::Future;
use std::sync::Arc;
use std::task::Poll;

use super::context;
use super::handle::Runtime;
use super::inner::Inner;
use crate::contain::drop_refused;
use crate::stderr::print_line;
use crate::task::{Task, cancelled, is_large, spawn as spawn_on};
use crate::tracer::Lines;

/// Runs `future` on a new runtime with the default options and then shuts the runtime down.
///
/// If the variable `GREENROOM_LOG` is the name of a [level](crate::trace::Level), the runtime is
/// traced on stderr, by [`trace::Lines`](crate::trace::Lines). For another value there is a
/// complaint on stderr, and no trace.
///
/// Blocks the calling thread until the future has completed and the [shutdown](Runtime::shutdown),
/// with its grace of 5 s, is over. The function may be called in a task, under the same conditions
/// as [`Runtime::block_on`].
///
/// # Panics
/// If the runtime cannot be built (see [`Builder::build`](crate::Builder::build)), and as
/// [`Runtime::block_on`]. A panic of the future is propagated.
///
/// # Examples
///
/// ```
/// assert_eq!(greenroom::run(async { 40 + 2 }), 42);
/// ```
#[track_caller]
pub fn run<F: Future>(future: F) -> F::Output {
    let mut builder = Runtime::builder();
    match Lines::from_env() {
        Ok(None) => {}
        Ok(Some(lines)) => builder = builder.tracer(lines),
        Err(error) => print_line(format_args!("GREENROOM_LOG: {error}, so nothing is traced")),
    }
    let runtime = match builder.build() {
        Ok(runtime) => runtime,
        Err(error) => panic!("the runtime could not be built: {error}"),
    };
    let value = runtime.block_on(future);
    runtime.inner.close_in_order();
    value
}

impl Runtime {
    /// Spawns a plain task: a future without a mailbox.
    ///
    /// The task starts without being awaited. On a runtime that is shutting down the future is
    /// dropped and the task is cancelled. [`greenroom::spawn`](crate::spawn()) describes the
    /// lifetime of a task that can no longer be woken.
    ///
    /// # Panics
    /// In a child of a `fork`, if the runtime belongs to the parent.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        spawn_in(self.inner.clone(), future)
    }
}

/// Spawns a plain task on the [current](Runtime::current) runtime: a future without a mailbox.
///
/// The task starts without being awaited. Dropping its [`Task`] cancels it;
/// [`detach`](Task::detach) lets it run on. If the runtime is shutting down, the future is dropped
/// and the task is cancelled.
///
/// A suspended task that can no longer be woken lives until its `Task` is dropped or, if it is
/// detached, until the runtime shuts down.
///
/// # Panics
/// If no runtime is current on this thread. In a child of a `fork`, if the current runtime belongs
/// to the parent.
///
/// # Examples
///
/// ```
/// greenroom::run(async {
///     let answer = greenroom::spawn(async { 40 + 2 });
///     greenroom::spawn(async { println!("on its own") }).detach();
///     assert_eq!(answer.await, 42);
/// });
/// ```
#[track_caller]
pub fn spawn<F>(future: F) -> Task<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match context::runtime() {
        Some(runtime) => spawn_in(runtime, future),
        None => panic!("{}", crate::SpawnProblem::NoRuntime),
    }
}

#[track_caller]
fn spawn_in<F>(runtime: Arc<Inner>, future: F) -> Task<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    if const { is_large::<F>() } {
        return spawn_inline(runtime, Box::pin(future));
    }
    spawn_inline(runtime, future)
}

#[track_caller]
fn spawn_inline<F>(runtime: Arc<Inner>, future: F) -> Task<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    runtime.check_process();
    if runtime.shutdown.has_begun() {
        drop_refused(future);
        return cancelled();
    }
    spawn_on(runtime, future)
}

/// Yields once: the task goes to the back of the queue, so that other tasks get a turn.
///
/// A task that computes for a long time without awaiting anything holds its worker. Call this
/// between parts of such a computation. The future works on any executor.
///
/// # Cancel safety
/// Cancel safe: nothing is lost.
///
/// # Examples
///
/// ```
/// greenroom::run(async {
///     for _part in 0..3 {
///         // A part of a long computation.
///         greenroom::yield_now().await;
///     }
/// });
/// ```
pub async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

//! How plain tasks are spawned and run.

use std::future::Future;
use std::sync::Arc;
use std::task::Poll;

use super::context;
use super::handle::Runtime;
use super::inner::Inner;
use crate::contain::drop_refused;
use crate::task::{Task, cancelled, spawn as spawn_on};

/// Runs `future` on a new runtime with default options, then shuts that down in order.
///
/// It waits for the future, and then as [`Runtime::shutdown`] does; in a task as
/// [`Runtime::block_on`] does.
///
/// # Panics
/// If the runtime can't be built (see [`Builder::build`](crate::Builder::build)), and as [`Runtime::block_on`].
///
/// ```
/// assert_eq!(greenroom::run(async { 40 + 2 }), 42);
/// ```
#[track_caller]
pub fn run<F: Future>(future: F) -> F::Output {
    let runtime = match Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => panic!("the runtime could not be built: {error}"),
    };
    let value = runtime.block_on(future);
    runtime.inner.close_in_order();
    value
}

impl Runtime {
    /// Spawns a plain task: any future, without a mailbox.
    ///
    /// On a runtime that is shutting down the task is a cancelled one. What becomes of one that nothing can wake
    /// is said at [`greenroom::spawn`](crate::spawn()).
    pub fn spawn<F>(&self, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        spawn_in(self.inner.clone(), future)
    }
}

/// Spawns a plain task on the current runtime: any future, without a mailbox.
///
/// If that is shutting down the task is a cancelled one. A task that waits, and that nothing can wake any more,
/// lives until its [`Task`] is dropped or, [detached](Task::detach), until the shutdown.
///
/// # Panics
/// If no runtime is current on this thread.
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
    runtime.check_process();
    if runtime.shutdown.has_begun() {
        drop_refused(future);
        return cancelled();
    }
    spawn_on(runtime, future)
}

/// Lets others run: the task goes to the back of the queue, once.
///
/// ```
/// greenroom::run(async {
///     greenroom::yield_now().await;
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

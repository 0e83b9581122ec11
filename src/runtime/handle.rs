//! The handle of a runtime that programs hold, and the plain tasks that are spawned with it.
//!
//! A future that is spawned through the `futures` crates is a detached plain task: its panic goes
//! to `on_fault`.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_task::{FutureObj, Spawn, SpawnError};

use super::context;
use super::inner::Inner;
use crate::contain::drop_refused;
use crate::stderr::print_line;
use crate::sync::atomic::Ordering;
use crate::task::{Executor, Named, Task, TaskName, cancelled, is_large, spawn as spawn_on};
use crate::tracer::Lines;

/// A runtime: worker threads with their queues and timers, which run tasks and actors.
///
/// Cloning is cheap, and a clone refers to the same runtime. A runtime is created by
/// [`Runtime::new`], [`Runtime::builder`] or [`greenroom::run`](crate::run()).
///
/// # Dropping
///
/// The runtime shuts down when its last *counting* clone is dropped. The runtime that
/// [`build`](crate::Builder::build) returns counts, and so do its clones. Clones from
/// [`current`](Runtime::current) and [`try_current`](Runtime::try_current), and clones of these, do
/// not count. Addresses, handles, tasks and pinned threads do not keep a runtime alive either.
///
/// This shutdown is like [`shutdown`](Runtime::shutdown) with a grace of zero. It blocks the
/// dropping thread. If that is one of the runtime's own threads, the shutdown does not wait for
/// that thread. This also holds if the clone is dropped with a thread-local of such a thread.
///
/// A counting clone that is moved into a task of the runtime keeps the runtime alive until that
/// task ends.
///
/// # In a child of `fork`
///
/// A process that was forked from the process of the runtime has a copy of its memory but none of
/// its threads. In the child:
///
/// - Operations that would wait for the runtime, spawn on it or wake a task there return an error
///   if they have one for this case, such as [`SpawnProblem::Forked`](crate::SpawnProblem::Forked)
///   and [`HostFault::Gone`](crate::HostFault::Gone). Otherwise they panic with a text that gives
///   the reason. A [`tell`](crate::Address::tell) that wakes no task is accepted, and the message
///   stays in the mailbox.
/// - Dropping the runtime, and everything that belongs to it, returns at once and drops nothing
///   that lives on the runtime.
/// - A new runtime works as in any other process, wherever the fork happened.
/// - If the fork happened in a task or an actor, the child continues with that turn. At the end of
///   the turn the child aborts, with a message on stderr. Call `exec` or `_exit` before that.
///
/// A child that was made by a raw system call, and not by the C library's `fork`, is taken for its
/// parent.
///
/// # Examples
///
/// ```
/// let runtime = greenroom::Runtime::builder().workers(2).build()?;
/// let sum = runtime.block_on(async {
///     let tasks: Vec<_> = (1..=4).map(|n| greenroom::spawn(async move { n * n })).collect();
///     let mut sum = 0;
///     for task in tasks {
///         sum += task.await;
///     }
///     sum
/// });
/// assert_eq!(sum, 30);
/// # Ok::<(), greenroom::BuildError>(())
/// ```
pub struct Runtime {
    pub(super) inner: Arc<Inner>,
    counts: bool,
}

impl Runtime {
    pub(super) fn counting(inner: Arc<Inner>) -> Self {
        Runtime {
            inner,
            counts: true,
        }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Returns the current runtime: the one whose task, actor or [`block_on`](Runtime::block_on)
    /// runs on this thread. On the thread of a [`Stage`](crate::Stage) it is the runtime of the
    /// stage. In a task of tokio it is the runtime that is [bound](crate::docs::with_tokio) to that
    /// tokio runtime.
    ///
    /// The handle does not keep the runtime alive.
    ///
    /// # Panics
    /// If there is no current runtime.
    #[track_caller]
    pub fn current() -> Runtime {
        // No closure, so that the panic has the caller's location.
        match Runtime::try_current() {
            Some(runtime) => runtime,
            None => panic!("{}", crate::SpawnProblem::NoRuntime),
        }
    }

    /// Returns the [current](Runtime::current) runtime, or `None` if there is none.
    pub fn try_current() -> Option<Runtime> {
        context::runtime().map(Runtime::not_counting)
    }

    pub(crate) fn not_counting(inner: Arc<Inner>) -> Self {
        Runtime {
            inner,
            counts: false,
        }
    }
}

impl Clone for Runtime {
    fn clone(&self) -> Self {
        if self.counts {
            // Relaxed: the clone is made from a counting one, so the count is not zero.
            self.inner.counting.fetch_add(1, Ordering::Relaxed);
        }
        Runtime {
            inner: self.inner.clone(),
            counts: self.counts,
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // AcqRel: the effects of the other clones happen before the shutdown.
        if !self.counts || self.inner.counting.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        if !self.inner.is_here() {
            return;
        }
        if !context::is_inside(&self.inner) {
            return self.inner.close(Duration::ZERO);
        }
        // A shutdown that has begun waits for this thread, or is running on this stack.
        if !self.inner.shutdown.has_begun() {
            // The shutdown waits for the end of this turn, so this turn must not wait for the
            // shutdown.
            self.inner.begin_close(Duration::ZERO);
        }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("workers", &self.inner.options().workers)
            .field("thread_name", &self.inner.options().thread_name)
            .finish_non_exhaustive()
    }
}

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
/// If no runtime is current on this thread.
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
    let is_open = runtime.is_open();
    spawn_boxed_if_large::<F, _, _>(runtime, is_open, future)
}

/// Spawns a plain task that may have a name. Without one it is called after the type `Of`.
#[track_caller]
pub(crate) fn spawn_named<Of, F>(
    runtime: Arc<Inner>,
    name: Option<TaskName>,
    future: F,
) -> Task<F::Output>
where
    Of: 'static,
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let is_open = runtime.is_open();
    let executor = Named {
        executor: runtime,
        name,
    };
    spawn_boxed_if_large::<Of, _, _>(executor, is_open, future)
}

#[track_caller]
fn spawn_boxed_if_large<Of, H, F>(executor: H, is_open: bool, future: F) -> Task<F::Output>
where
    Of: 'static,
    H: Executor,
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    if const { is_large::<F>() } {
        return spawn_inline::<Of, _, _>(executor, is_open, Box::pin(future));
    }
    spawn_inline::<Of, _, _>(executor, is_open, future)
}

#[track_caller]
fn spawn_inline<Of, H, F>(executor: H, is_open: bool, future: F) -> Task<F::Output>
where
    Of: 'static,
    H: Executor,
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    if !is_open {
        drop_refused(future);
        return cancelled();
    }
    spawn_on::<Of, _, _>(executor, future)
}

impl Inner {
    /// Returns whether the runtime accepts tasks.
    #[track_caller]
    fn is_open(&self) -> bool {
        self.check_process();
        !self.shutdown.has_begun()
    }
}

/// Begins the spawn of a plain task with a name, which can be any text and need not be unique.
///
/// The name is in the texts of its faults, in warnings of [long turns](crate::Builder::long_turns),
/// in traces, in the traces of a [simulation](crate::sim), and in [`Runtime::tasks`]. A task
/// without one is [called](crate::policy::TaskInfo::called) after its type: that of
/// `spawn(fetch(url))` is called `fetch`, and an `async` block is called after the function that it
/// is written in.
///
/// ```
/// greenroom::run(async {
///     let reader = greenroom::task("reader").spawn(async { 40 + 2 });
///     assert_eq!(reader.await, 42);
/// });
/// ```
pub fn task(name: impl Into<String>) -> TaskBuilder {
    TaskBuilder {
        name: Arc::new(name.into().into()),
    }
}

/// A plain task that is to be spawned, made by [`task`].
#[derive(Debug, Clone)]
#[must_use = "nothing runs until it is spawned"]
pub struct TaskBuilder {
    name: TaskName,
}

impl TaskBuilder {
    /// Spawns a future on the current runtime, as [`spawn`] does.
    ///
    /// # Panics
    /// If no runtime is current on this thread.
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match context::runtime() {
            Some(runtime) => spawn_named::<F, F>(runtime, Some(self.name), future),
            None => panic!("{}", crate::SpawnProblem::NoRuntime),
        }
    }

    /// Spawns a future on this runtime, as [`Runtime::spawn`] does.
    #[track_caller]
    pub fn spawn_on<F>(self, runtime: &Runtime, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        spawn_named::<F, F>(runtime.inner.clone(), Some(self.name), future)
    }

    pub(crate) fn into_name(self) -> TaskName {
        self.name
    }
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

/// Spawns futures for code that is generic over `futures::task::Spawn`.
///
/// ```
/// use futures::task::SpawnExt;
///
/// fn begin<S: futures::task::Spawn>(executor: &S) -> impl Future<Output = u32> + use<S> {
///     executor.spawn_with_handle(async { 40 + 2 }).unwrap()
/// }
///
/// let runtime = greenroom::Runtime::new()?;
/// assert_eq!(runtime.block_on(begin(&runtime)), 42);
/// # Ok::<(), greenroom::BuildError>(())
/// ```
impl Spawn for Runtime {
    /// Spawns a detached plain task.
    ///
    /// # Errors
    /// `SpawnError::shutdown` if the runtime is shutting down or, after a `fork`, belongs to the
    /// parent process.
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        if let Err(error) = self.status() {
            drop_refused(future);
            return Err(error);
        }
        // Once accepted it is an ordinary task, which a shutdown that begins now cancels.
        crate::task::spawn_own(self.inner.clone(), future).detach();
        Ok(())
    }

    /// Returns whether the runtime accepts tasks.
    ///
    /// # Errors
    /// As [`spawn_obj`](Spawn::spawn_obj).
    fn status(&self) -> Result<(), SpawnError> {
        if self.inner.shutdown.has_begun() || !self.inner.is_here() {
            return Err(SpawnError::shutdown());
        }
        Ok(())
    }
}

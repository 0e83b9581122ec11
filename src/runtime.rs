//! Where tasks run: a fixed set of worker threads that share their work as a policy says.
//!
//! By the default policy every worker has a local queue and everything from outside comes through
//! the injector; a worker whose own queue is empty steals half of another's, one thief at a time, and
//! sleeps when there is nothing. The runtime handles runnables and knows nothing of actors; actors
//! know nothing of it but where to schedule themselves. Behaviour comes from document 1 (Sophie's
//! scheduler), with its tasks that are whole actors, its kinder stealing and the end of its work, and
//! from document 3 (CAF), with its policies.

pub(crate) mod asks;
mod blocking;
mod builder;
mod chosen;
mod closing;
mod crew;
pub(crate) mod current;
mod futures;
mod injector;
mod inner;
#[cfg(all(test, not(greenroom_loom)))]
mod litmus;
#[cfg(all(test, greenroom_loom))]
pub(crate) mod loom;
mod loot;
mod nested;
mod observer;
pub mod policy;
mod queues;
mod quiescence;
mod registry;
mod rest;
mod ring;
mod shutdown;
pub(crate) mod simulation;
mod sleep;
mod slot;
mod stats;
mod waiting;
mod worker;

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

pub use blocking::unblock;
pub use builder::Builder;
pub(crate) use builder::print_fault;
use current::{Place, Role};
pub(crate) use inner::Inner;
pub use observer::Observer;
pub use quiescence::KeepAlive;
use quiescence::Quiescent;
pub(crate) use registry::Registry;
pub use shutdown::ShutdownReport;
pub(crate) use simulation::RunsOn;
pub use stats::{ActorStats, Stats, WorkerStats};
use waiting::Waiting;

use crate::contain::drop_refused;
use crate::error::BuildError;
use crate::instant::RealTime;
use crate::pinned::{Local, Pinned};
use crate::sync::atomic::Ordering;
use crate::task::{Task, cancelled, spawn as spawn_on};

/// Worker threads, their queues and timers: what tasks and actors run on.
///
/// A clone is cheap and means the same runtime. When the last *counting* clone is dropped, the
/// runtime shuts down as by [`shutdown`](Runtime::shutdown) with a grace of zero, on the dropping
/// thread; if that is one of its own threads, without waiting for that one. That also holds if the clone
/// goes with a thread-local of such a thread. The runtime that `builder` gives counts, and so do its
/// clones; those of [`current`](Runtime::current) and [`try_current`](Runtime::try_current) and their
/// clones do not.
///
/// A counting clone that is moved into a task of the runtime keeps it alive until that task ends.
/// Addresses, handles, tasks and pinned threads do not keep it alive.
///
/// # In a child of `fork`
///
/// A process that was forked from that of the runtime has a copy of its memory, and none of its threads.
///
/// - What would wait for the runtime, spawn on it or wake something there gives an error where it has one for
///   that, such as [`SpawnProblem::Forked`](crate::SpawnProblem::Forked) and
///   [`HostFault::Gone`](crate::HostFault::Gone). Otherwise it panics, and says why. A
///   [`tell`](crate::Address::tell) that wakes nobody is accepted, and the message stays in the queue.
/// - To drop the runtime, and all that belongs to it, takes no time, and drops nothing that lives there.
/// - A new runtime works as in any process, wherever this one was forked.
/// - If it was forked in a task or an actor, the child goes on with that turn. At the end of the turn it aborts,
///   with a text on stderr: let it `exec` or `_exit` before.
///
/// A child that is made by a system call, and not by the C library's `fork`, is taken for its parent.
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
    inner: Arc<Inner>,
    counts: bool,
}

impl Runtime {
    /// The options of a new runtime.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// A runtime with the default options.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn new() -> Result<Runtime, BuildError> {
        Runtime::builder().build()
    }

    fn counting(inner: Arc<Inner>) -> Self {
        Runtime {
            inner,
            counts: true,
        }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// The runtime whose task, or whose `block_on`, this is called from.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    pub fn current() -> Runtime {
        // No closure: the panic is the caller's.
        match Runtime::try_current() {
            Some(runtime) => runtime,
            None => panic!("{}", crate::SpawnProblem::NoRuntime),
        }
    }

    /// The runtime whose task, or whose `block_on`, this is called from, if any.
    pub fn try_current() -> Option<Runtime> {
        current::runtime().map(Runtime::not_counting)
    }

    pub(crate) fn not_counting(inner: Arc<Inner>) -> Self {
        Runtime {
            inner,
            counts: false,
        }
    }

    /// Runs a future on this thread to its end, while the workers run everything else.
    ///
    /// Inside, this runtime is the [current](Runtime::current) one. It waits, parked, whenever the
    /// future does.
    ///
    /// It works in a task, too: there the worker first gives its queues and its place to a spare
    /// thread, one of those of [`unblock`] or a new one, and then simply waits. The task goes on on
    /// its thread until its turn ends; then the thread joins those of `unblock`. So each task that
    /// waits like this holds a thread, where one that awaits holds none. A shutdown leaves such a
    /// thread behind if it does not come back in time. A [`Detached`](crate::Detached) actor has its
    /// thread to itself, and simply waits.
    ///
    /// # Panics
    /// - In a task of a pinned thread, whose other tasks could run nowhere else meanwhile.
    /// - In a task, if no spare thread can be started: with the system's error, before the future is
    ///   polled. The worker goes on.
    /// - In a [simulated](policy::Simulated) runtime on another thread than its own, at a deadlock, and
    ///   after too many steps.
    ///
    /// A panic of the future goes through.
    ///
    /// ```
    /// use greenroom::Runtime;
    ///
    /// fn area(side: u32) -> u32 {
    ///     // Not `async`, and called in a task.
    ///     Runtime::current().block_on(async move { greenroom::spawn(async move { side * side }).await })
    /// }
    ///
    /// greenroom::run(async {
    ///     assert_eq!(greenroom::spawn(async { area(6) + 6 }).await, 42);
    /// });
    /// ```
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.block_on_at(None, future)
    }

    /// The same on the thread of this stage, which it need not find in a thread-local.
    #[track_caller]
    pub(crate) fn block_on_at<F: Future>(&self, stage: Option<&Rc<Local>>, future: F) -> F::Output {
        self.inner.check_process();
        // No closure: the panic is the caller's.
        let clock = match nested::make_way() {
            Ok(clock) => clock,
            Err(why) => panic!("{why}"),
        };
        if let Some(simulation) = self.inner.simulation() {
            return simulation.block_on(&self.inner, future);
        }
        let _time = RealTime::enter();
        let stage = || stage.cloned().or_else(|| current::stage_of(&self.inner));
        let clock = clock.or_else(|| {
            let stage = stage()?;
            stage.take_call_back();
            Some(stage.clock())
        });
        let waiting = Waiting::new(&self.inner, clock);
        let place = Place::new(&self.inner, Role::Outside);
        let _entered = place.enter();
        let waker = waiting.waker();
        let mut future = pin!(future);
        loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(value) => return value,
                Poll::Pending => match stage() {
                    Some(stage) => waiting.park_on(&stage),
                    None => waiting.park(),
                },
            }
        }
    }

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

    /// Shuts down on this thread.
    pub(crate) fn close(&self) {
        self.inner.close(self.inner.options().grace);
    }

    /// Starts a thread with a single-thread executor, for what must not leave its thread.
    ///
    /// # Errors
    /// What the system said when it did not start the thread; `InvalidInput` if the name has a NUL;
    /// an error that says so if the runtime is shutting down.
    pub fn spawn_pinned(&self, name: impl Into<String>) -> std::io::Result<Pinned> {
        Pinned::start(&self.inner, name.into())
    }

    /// Waits until the runtime has run out of work: until there was a moment when nothing was under
    /// way, and nothing could come of itself.
    ///
    /// What keeps it alive: tasks and actors that are ready to run or run, the future of a
    /// [`block_on`](Runtime::block_on) among them; its timers, also on its pinned threads; jobs of
    /// [`unblock`] that were begun where it is current; and each [`KeepAlive`]. What does not: actors and tasks that wait, for a message, for
    /// I/O, for another thread; an idle pinned thread. Whoever brings it work from elsewhere holds
    /// a [`KeepAlive`], or the moment may come just before.
    ///
    /// That is exact: nothing is under way at that moment, and it is not missed (document 1). The
    /// task that waits here does not count, once it waits; a job of `unblock` that waits for it does, and
    /// waits for ever. It is also ready when the runtime is shut down.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    ///
    /// ```
    /// use greenroom::{Context, Runtime, spawn};
    ///
    /// async fn save(mut cx: Context<String>) {
    ///     while let Some(game) = cx.recv().await {
    ///         greenroom::unblock(move || println!("saved {game}")).await;
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let save = spawn!(save(_));
    ///     save.tell("level 3".into()).unwrap();
    ///     Runtime::current().quiescent().await; // the game is saved
    /// });
    /// ```
    pub async fn quiescent(&self) {
        Quiescent::new(&self.inner).await;
    }

    /// Blocks this thread until the runtime has run out of work, as [`quiescent`](Runtime::quiescent)
    /// says. The runtime goes on afterwards, and this may be called again.
    ///
    /// # Panics
    /// As [`block_on`](Runtime::block_on).
    ///
    /// ```
    /// let runtime = greenroom::Runtime::new()?;
    /// let task = runtime.spawn(async { 40 + 2 });
    /// runtime.run_until_quiescent();
    /// assert!(task.is_finished());
    /// # Ok::<(), greenroom::BuildError>(())
    /// ```
    #[track_caller]
    pub fn run_until_quiescent(&self) {
        self.block_on(self.quiescent());
    }

    /// Keeps the runtime from [running out of work](Runtime::quiescent) as long as it lives.
    pub fn keep_alive(&self) -> KeepAlive {
        KeepAlive::new(&self.inner)
    }

    /// Stops every actor, waits for them, cancels what is left, and ends the threads.
    ///
    /// Nothing new is accepted from the first poll on. For the time of
    /// [`grace`](Builder::grace) actors may finish what they accepted, and plain tasks run on. When
    /// the last actor has ended or the time is over, and whatever was queued before the call has
    /// had that run, all that is left is cancelled. A thread that user code does not give back
    /// within the grace and a second more is left behind, and counted in the report. So is one that
    /// takes more than half a second, after the grace, to drop its thread-locals.
    ///
    /// The task that awaits this is exempt: it is not waited for, and not cancelled before it has
    /// the report; its worker ends when it next suspends. A second call gives the same report.
    ///
    /// # Cancel safety
    /// Once polled, the shutdown goes on whether or not it is awaited.
    pub async fn shutdown(&self) -> ShutdownReport {
        let runtime = self.inner.clone();
        shutdown::Closed {
            runtime,
            begun: false,
            exempt: None,
            ticket: Default::default(),
        }
        .await
    }
}

impl Clone for Runtime {
    fn clone(&self) -> Self {
        if self.counts {
            // Relaxed: a new clone comes from one that counts, so the count is not zero.
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
        // AcqRel: what was done through the other clones is done before the shutdown.
        if !self.counts || self.inner.counting.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        if !self.inner.is_here() {
            return;
        }
        let runtime = self.inner.clone();
        let close = move || {
            runtime.close(Duration::ZERO);
        };
        if current::is_inside(&self.inner) {
            if self.inner.closing.has_begun() {
                // It is under way, and waits for this thread or is this very stack.
                return;
            }
            if let Some(simulation) = self.inner.simulation() {
                // Whoever drives it goes on with that.
                return simulation.begin_close(&self.inner, Duration::ZERO);
            }
            // It ends when this turn does, so it must not be waited for here.
            let thread = std::thread::Builder::new().name("greenroom-shutdown".into());
            if thread.spawn(close.clone()).is_ok() {
                return;
            }
        }
        close();
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

/// Runs `future` on a new runtime with default options, then shuts that down in order.
///
/// It waits for the future, and then as [`Runtime::shutdown`] does; in a task as
/// [`Runtime::block_on`] does.
///
/// # Panics
/// If the runtime can't be built (see [`Builder::build`]), and as [`Runtime::block_on`].
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
    runtime.close();
    value
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
    match current::runtime() {
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
    if runtime.closing.has_begun() {
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

//! Scheduling policies: where a ready task is queued, and which task a worker runs next.
//!
//! The crate re-exports this module as `policy`, together with the simulation.

mod central;
mod polling;
mod stealing;

use std::any::{Any, TypeId};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, OnceLock};

pub use central::{Prioritized, Sharing};
pub use polling::Polling;
pub use stealing::Stealing;
pub(super) use stealing::{PolicyView, StealingWorker};

use super::activity::ActivityCount;
pub use super::duties::Duties;
pub use crate::task::{Runnable, TaskInfo};

/// A scheduling policy: it queues ready tasks, and decides which one a worker runs next.
///
/// It has eight functions: `central_enqueue`, `external_enqueue`, `internal_enqueue`,
/// `resume_later`, `dequeue`, `before_resume`, `after_resume` and `after_completion`. All workers
/// share the policy itself. Each worker also has a [`Worker`](Policy::Worker) value that no other
/// worker sees. Only `worker`, `central_enqueue` and `dequeue` are required. The runtime does
/// everything else: threads, timers, shutdown and pinned threads.
///
/// # When the functions are called
///
/// A *turn* is one poll of a task or actor.
///
/// | function | is called | on |
/// |---|---|---|
/// | `start` | once, when a runtime is built | the thread that builds it |
/// | `worker` | when a thread becomes a worker | that thread |
/// | `central_enqueue` | when a task is spawned or woken outside the workers, pinned threads included | the thread that spawns or wakes it |
/// | `internal_enqueue` | when a task on a worker spawns or wakes another task | that worker |
/// | `resume_later` | when a task was woken during its own turn: an actor used up its batch or received a message meanwhile, or a task called `yield_now` | that worker |
/// | `external_enqueue` | never by the runtime; a policy may call it to hand a task to a certain worker | |
/// | `dequeue` | when a worker is free | that worker |
/// | `before_resume`, `after_resume` | around each turn, once each | the worker that runs the turn |
/// | `after_completion` | once when a task or actor ends, before its future is dropped | the worker, during the turn; or outside a turn, if the policy drops the runnable there |
/// | `interrupt` | when parked workers have a duty other than a runnable | any thread |
///
/// # Contract
///
/// An implementation must guarantee the following:
///
/// - **No runnable is lost.** Every enqueued runnable is eventually returned by `dequeue`, exactly
///   once, as long as workers call it. Dropping a [`Runnable`] cancels its task. Runnables are
///   stored in the policy itself and not in `Worker`, which is dropped when another thread takes
///   over that worker.
/// - **Every free worker finds queued runnables.** `dequeue` may return `None` at once when the
///   queue is empty. The runtime then parks the worker. At the next enqueue it wakes one parked
///   worker, which may be any of them, so a queued runnable must be available to every worker.
/// - **A `dequeue` that parks by itself wakes up in time.** It wakes when a runnable is enqueued,
///   and returns after at most [`Duties::until_next`]. It checks [`Duties::must_return`] before it
///   parks and after each wake-up. [`interrupt`](Policy::interrupt) wakes all workers that it has
///   parked. See [`Duties`] for an example.
/// - **One value serves one runtime**, and returns only runnables of that runtime. The exception is
///   described below.
/// - **No function waits for a task.** The runtime holds none of its locks during a call.
/// - **No runnable is dropped under a lock that an enqueuing function takes.** Dropping a runnable
///   drops a future. That drop may wake other tasks, and so call the enqueuing functions on the
///   same thread.
///
/// # Panics
///
/// The runtime contains a panic of any of these functions. A runnable that the panic drops is
/// cancelled. If `worker` panics, the runtime [warns](crate::Warning::WorkerPanicked) and continues
/// without that worker.
///
/// # Shutdown
///
/// In a shutdown each worker empties the policy through `dequeue`, without waiting. The runtime
/// runs these tasks in the order in which they came out. Tasks that are woken from outside the
/// workers after that do not go through the policy. Runnables that a policy does not return are
/// neither run nor cancelled.
///
/// # Runnables of another runtime
///
/// Policies that share a queue may return a runnable of another runtime. The worker runs it, even
/// if that other runtime has ended. During the turn, the worker's runtime is the
/// [current](crate::Runtime::current) one. When the task is woken again, its own runtime's policy
/// enqueues it, which wakes no worker of the other runtime. Once its own runtime has ended, the
/// task is cancelled when it suspends. A shutdown runs or cancels everything that it takes out of
/// its policy, whichever runtime it belongs to.
///
/// The activity counts of both runtimes become wrong: [`quiescent`](crate::Runtime::quiescent) may
/// resolve too early or only at the shutdown, and a deadlock may be reported where there is none.
/// `after_completion` is not called for such a task.
///
/// # Example
///
/// A complete policy: the newest task runs first, but a task that yields goes behind all others.
/// Workers never wait in `dequeue`, so the runtime parks them.
///
/// ```
/// use std::collections::VecDeque;
/// use std::sync::Mutex;
///
/// use greenroom::Runtime;
/// use greenroom::policy::{Duties, Policy, Runnable};
///
/// #[derive(Default)]
/// struct NewestFirst(Mutex<VecDeque<Runnable>>);
///
/// impl Policy for NewestFirst {
///     type Worker = ();
///
///     fn worker(&self, _index: usize) {}
///
///     fn central_enqueue(&self, runnable: Runnable) {
///         self.0.lock().unwrap().push_front(runnable);
///     }
///
///     fn resume_later(&self, _worker: &(), runnable: Runnable) {
///         self.0.lock().unwrap().push_back(runnable);
///     }
///
///     fn dequeue(&self, _worker: &(), _duties: &Duties<'_>) -> Option<Runnable> {
///         self.0.lock().unwrap().pop_front()
///     }
/// }
///
/// let runtime = Runtime::builder().workers(2).policy(NewestFirst::default()).build()?;
/// assert_eq!(runtime.block_on(async { greenroom::spawn(async { 40 + 2 }).await }), 42);
/// # Ok::<(), greenroom::BuildError>(())
/// ```
#[doc(alias = "coordinator_data")]
pub trait Policy: Send + Sync + 'static {
    /// The data of one worker; `()` if it needs none. It never leaves the worker's thread.
    #[doc(alias = "worker_data")]
    type Worker: 'static;

    /// Prepares the policy for a runtime. It is called once, before any other function.
    ///
    /// # Errors
    /// Returns why the policy cannot be used with this runtime, worded to follow the option's name,
    /// such as "needs at least two workers". [`build`](crate::Builder::build) then fails with
    /// [`BuildError::Impossible`](crate::BuildError), as it does if `start` panics.
    fn start(&mut self, setup: &Setup) -> Result<(), String> {
        let _ = setup;
        Ok(())
    }

    /// Creates the data of the worker with this index, which counts from 0.
    ///
    /// It is called again when another thread takes over that worker; the previous value may still
    /// exist. It is also called when a shutdown drops the remaining runnables.
    fn worker(&self, index: usize) -> Self::Worker;

    /// Enqueues a task that was spawned or woken outside the workers.
    fn central_enqueue(&self, runnable: Runnable);

    /// Enqueues a task for the worker with this index. Only the policy's own functions call it.
    fn external_enqueue(&self, worker: usize, runnable: Runnable) {
        let _ = worker;
        self.central_enqueue(runnable);
    }

    /// Enqueues a task that a task on this worker has spawned or woken.
    fn internal_enqueue(&self, worker: &Self::Worker, runnable: Runnable) {
        let _ = worker;
        self.central_enqueue(runnable);
    }

    /// Enqueues a task that was woken during its own turn, which ends now on this worker.
    #[doc(alias = "resume_job_later")]
    fn resume_later(&self, worker: &Self::Worker, runnable: Runnable) {
        self.internal_enqueue(worker, runnable);
    }

    /// Returns the next task for this worker, or `None` if there is none or the worker has other
    /// [duties](Duties).
    fn dequeue(&self, worker: &Self::Worker, duties: &Duties<'_>) -> Option<Runnable>;

    /// Observes that a turn of the task begins on this worker.
    fn before_resume(&self, worker: &Self::Worker, task: &TaskInfo) {
        let _ = (worker, task);
    }

    /// Observes that the turn has ended.
    fn after_resume(&self, worker: &Self::Worker, task: &TaskInfo) {
        let _ = (worker, task);
    }

    /// Observes that a task or actor has ended: it has completed, or was cancelled and this worker
    /// drops it.
    ///
    /// Its future has not been dropped yet. Tasks that other threads drop, for example in a
    /// shutdown, are reported only to an [`Observer`](crate::Observer).
    fn after_completion(&self, worker: &Self::Worker, task: &TaskInfo) {
        let _ = (worker, task);
    }

    /// Wakes every worker that is parked in `dequeue`. A policy that leaves parking to the runtime
    /// does not need it.
    fn interrupt(&self) {}
}

/// The properties of the runtime that a policy is built for.
#[derive(Debug)]
#[non_exhaustive]
pub struct Setup {
    /// The number of workers, at least 1.
    pub workers: usize,
    /// The highest priority of an actor, as set by
    /// [`Builder::priorities`](crate::Builder::priorities). The lowest is 0.
    pub highest_priority: u8,
    /// The count of awake workers, for the policy that the runtime calls directly.
    pub(crate) activity: Option<Arc<ActivityCount>>,
    /// What a policy has brought to run all tasks instead of workers, and the type of that policy.
    pub(super) engine: OnceLock<(TypeId, Box<dyn Any + Send + Sync>)>,
}

// No code that panics sees an engine half changed: it is moved in once, and moved out once.
impl UnwindSafe for Setup {}
impl RefUnwindSafe for Setup {}

impl Setup {
    pub(crate) fn new(
        workers: usize,
        highest_priority: u8,
        activity: Option<Arc<ActivityCount>>,
    ) -> Self {
        Setup {
            workers,
            highest_priority,
            activity,
            engine: OnceLock::new(),
        }
    }

    /// Lets an engine run all tasks if this is the setup of a `P`, and not of a policy that
    /// delegates to one.
    pub(crate) fn bring_engine<P: Policy>(&self, engine: Box<dyn Any + Send + Sync>) {
        let _ = self.engine.set((TypeId::of::<P>(), engine));
    }
}

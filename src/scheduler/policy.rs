//! Policies: where a runnable goes when its task is woken, and which one a worker runs next.
//!
//! What users see of this is the module `policy` of the crate, with the simulation beside it.

mod central;
mod polling;
mod prioritized;
mod sharing;
mod stealing;

use std::any::Any;
use std::sync::Arc;

pub use polling::Polling;
pub use prioritized::Prioritized;
pub use sharing::Sharing;
pub use stealing::Stealing;
pub(super) use stealing::{Seen, StealingWorker};

use super::activity::ActivityCount;
pub use super::duties::Duties;
pub use crate::task::{Runnable, TaskInfo};

/// A scheduler, as the functions of document 3: `central_enqueue`, `external_enqueue`,
/// `internal_enqueue`, `resume_later`, `dequeue`, `before_resume`, `after_resume` and
/// `after_completion`.
///
/// The value itself is what the runtime has (document 3's `coordinator_data`), and
/// [`Worker`](Policy::Worker) what each worker has for itself (`worker_data`). Only `worker`,
/// `central_enqueue` and `dequeue` must be written.
///
/// # Who calls what, and where
///
/// | function | called for | on |
/// |---|---|---|
/// | `start` | a new runtime, once | the thread that builds it |
/// | `worker` | a thread that becomes a worker | that thread |
/// | `central_enqueue` | a task spawned or woken outside the workers, pinned threads included | that thread |
/// | `internal_enqueue` | a task spawned or woken by a task on a worker | that worker |
/// | `resume_later` | a task woken during its own run: an actor that has used up its batch, one that got a message meanwhile, `yield_now` | that worker |
/// | `external_enqueue` | never by the runtime: for a policy that hands a task to a certain worker | |
/// | `dequeue` | a worker that is free | that worker |
/// | `before_resume`, `after_resume` | each run, once, in pairs | the worker that runs it |
/// | `after_completion` | the end of a task or actor, once, before its future is dropped | the worker, within the run; or outside one, if the policy drops it there |
/// | `interrupt` | something other than a runnable that workers must see to | any thread |
///
/// # What an implementation guarantees
///
/// - **No runnable is lost.** What was enqueued comes out of `dequeue` once, sooner or later, as long
///   as workers call it. A [`Runnable`] that is dropped cancels its task. They are kept in the policy
///   itself, not in `Worker`, which is dropped when another thread goes on as that worker.
/// - **Whoever is free finds it.** `dequeue` may give `None` at once when there is nothing; the
///   runtime then parks the worker until the next enqueue, for which it wakes one, any one. So what
///   is enqueued must be there for every worker. Or `dequeue` parks by itself: then it wakes for
///   what is enqueued by its own means, comes back by [`Duties::until_next`], and looks at
///   [`Duties::must_return`] before it parks and after each wake-up; and [`interrupt`](Policy::interrupt) wakes all that
///   are parked.
/// - **One value serves one runtime**, and gives that its own runnables; see below for others.
/// - Functions do not wait for tasks, and none is called under a lock of the runtime's. A panic in
///   one of them is contained; a runnable that it dropped is cancelled, and a worker for which
///   `worker` panicked is missing from then on.
/// - Dropping a runnable drops a future, whose drop may wake tasks, and so call the enqueuing
///   functions on the same thread: none is dropped under a lock that these take.
///
/// In a shutdown each worker empties the policy through `dequeue`, without waiting; what came out is
/// run in that order, and what comes from outside from then on does not go through the policy. What a
/// policy keeps is neither run nor cancelled.
///
/// # Runnables of another runtime
///
/// Policies that share something may give a worker the runnable of another runtime. The worker runs it, even if
/// that runtime is over; there the worker's runtime is the [current](crate::Runtime::current) one. If it is woken
/// again, its own policy takes it, which wakes no worker of the other runtime. Once its own runtime is over, a task
/// that suspends is cancelled. A shutdown runs or cancels what it takes out of its policy, whichever runtime that is
/// of. Both runtimes count wrongly: [`quiescent`](crate::Runtime::quiescent) may be told too early, or of nothing
/// but the shutdown, and a deadlock may be seen where there is none. `after_completion` is not called for it.
///
/// # Example
///
/// Last in, first out:
///
/// ```
/// use greenroom::Runtime;
/// use greenroom::policy::{Duties, Policy, Runnable};
/// use std::sync::Mutex;
///
/// #[derive(Default)]
/// struct Stack(Mutex<Vec<Runnable>>);
///
/// impl Policy for Stack {
///     type Worker = ();
///
///     fn worker(&self, _index: usize) {}
///
///     fn central_enqueue(&self, runnable: Runnable) {
///         self.0.lock().unwrap().push(runnable);
///     }
///
///     fn dequeue(&self, _worker: &(), _duties: &Duties<'_>) -> Option<Runnable> {
///         self.0.lock().unwrap().pop()
///     }
/// }
///
/// let runtime = Runtime::builder().workers(2).policy(Stack::default()).build()?;
/// assert_eq!(runtime.block_on(async { greenroom::spawn(async { 40 + 2 }).await }), 42);
/// # Ok::<(), greenroom::BuildError>(())
/// ```
pub trait Policy: Send + Sync + 'static {
    /// What each worker has for itself. It stays on the worker's thread.
    type Worker: 'static;

    /// Prepares for a runtime; called before anything else.
    ///
    /// # Errors
    /// Why it can't be, in words that go with the name of the option, such as "needs two workers":
    /// [`build`](crate::Builder::build) then gives [`BuildError::Impossible`](crate::BuildError).
    fn start(&mut self, setup: &Setup) -> Result<(), String> {
        let _ = setup;
        Ok(())
    }

    /// Makes what the worker of this index has for itself.
    ///
    /// It is called again when another thread goes on as that worker, and when a shutdown takes
    /// what is left.
    fn worker(&self, index: usize) -> Self::Worker;

    /// Takes what comes from outside the workers.
    fn central_enqueue(&self, runnable: Runnable);

    /// Takes what is handed to the worker of this index, by the policy's own functions.
    fn external_enqueue(&self, worker: usize, runnable: Runnable) {
        let _ = worker;
        self.central_enqueue(runnable);
    }

    /// Takes what a task on this worker has spawned or woken.
    fn internal_enqueue(&self, worker: &Self::Worker, runnable: Runnable) {
        let _ = worker;
        self.central_enqueue(runnable);
    }

    /// Takes a task that was woken in the run that ends now on this worker.
    fn resume_later(&self, worker: &Self::Worker, runnable: Runnable) {
        self.internal_enqueue(worker, runnable);
    }

    /// The next runnable for this worker.
    fn dequeue(&self, worker: &Self::Worker, duties: &Duties<'_>) -> Option<Runnable>;

    /// A run begins.
    fn before_resume(&self, worker: &Self::Worker, task: &TaskInfo) {
        let _ = (worker, task);
    }

    /// The run has ended.
    fn after_resume(&self, worker: &Self::Worker, task: &TaskInfo) {
        let _ = (worker, task);
    }

    /// The task or actor has come to its end: it is done, or was cancelled and is dropped by this
    /// worker. Its future and what it holds are still there. What other threads drop, a shutdown for
    /// one, is told to an [`Observer`](crate::Observer) only.
    fn after_completion(&self, worker: &Self::Worker, task: &TaskInfo) {
        let _ = (worker, task);
    }

    /// Wakes every worker that is parked in `dequeue`. For policies that park by themselves.
    fn interrupt(&self) {}

    /// Gives what runs everything in the place of workers, if that is so.
    #[doc(hidden)]
    fn elsewhere(&mut self) -> Option<Box<dyn Any + Send + Sync>> {
        None
    }
}

/// What a policy is told of the runtime that it is for.
#[derive(Debug)]
#[non_exhaustive]
pub struct Setup {
    /// How many workers there are.
    pub workers: usize,
    /// The highest priority an actor may have; the lowest is 0.
    pub highest_priority: u8,
    /// Where a policy that the runtime calls directly counts its workers that are awake.
    pub(crate) activity: Option<Arc<ActivityCount>>,
}

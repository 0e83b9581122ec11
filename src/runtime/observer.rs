//! The observer of a runtime, and the times of turns that the runtime keeps if there is one.

use std::collections::HashMap;
use std::time::Duration;

use crate::error::Fault;
use crate::sync::Mutex;
use crate::task::TaskInfo;

/// Observes every poll of every task and actor of a runtime, on its workers and pinned threads.
///
/// An observer is set with [`Builder::observer`](crate::Builder::observer). Without one the runtime
/// measures nothing, and observation has no cost. With any, it keeps the exact times of each actor's
/// turns. For these alone, use [`Measure`].
///
/// The methods are called on the thread that polls the task, so the time that they take delays that
/// thread. They may be called on several threads at once. A panic in a method is caught and
/// dropped.
///
/// # Examples
///
/// An observer that counts the polls of each actor, and prints the count when the actor ends:
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::{Arc, Mutex};
///
/// use greenroom::policy::TaskInfo;
/// use greenroom::{Context, Observer, Runtime, spawn};
///
/// #[derive(Clone, Default)]
/// struct CountPolls(Arc<Mutex<HashMap<u64, u64>>>);
///
/// impl Observer for CountPolls {
///     fn before_run(&self, task: &TaskInfo) {
///         if task.is_actor() {
///             *self.0.lock().unwrap().entry(task.id()).or_default() += 1;
///         }
///     }
///
///     fn completed(&self, task: &TaskInfo) {
///         if task.is_actor() {
///             let polls = self.0.lock().unwrap().remove(&task.id()).unwrap_or(0);
///             println!("{task} was polled {polls} times");
///         }
///     }
/// }
///
/// async fn sink(mut cx: Context<u32>) {
///     while cx.recv().await.is_some() {}
/// }
///
/// let polls = CountPolls::default();
/// let runtime = Runtime::builder().observer(polls.clone()).build()?;
/// runtime.block_on(async {
///     let sink = spawn!(sink(_), name = "sink");
///     sink.tell(42).unwrap();
///     sink.join().await.unwrap();
/// });
/// assert!(polls.0.lock().unwrap().is_empty()); // the actor has ended
/// # Ok::<(), greenroom::BuildError>(())
/// ```
pub trait Observer: Send + Sync + 'static {
    /// Observes that a poll of the task begins.
    fn before_run(&self, task: &TaskInfo) {
        let _ = task;
    }

    /// Observes that a poll of the task has ended, and how long it took.
    fn after_run(&self, task: &TaskInfo, took: Duration) {
        let _ = (task, took);
    }

    /// Observes that an actor is [restarted](crate::ActorBuilder::restart).
    ///
    /// The incarnation with this [number](crate::Context::incarnation_number) is about to begin.
    /// `fault` is the fault of the one before. It is `None` if that one returned, or was dropped by a
    /// [`Supervisor`](crate::supervise::Supervisor).
    fn restarted(&self, actor: &TaskInfo, incarnation: u64, fault: Option<&Fault>) {
        let _ = (actor, incarnation, fault);
    }

    /// Observes the end of a task or actor, once, before its future is dropped.
    ///
    /// The task or actor has completed, has panicked or is cancelled. If it ends in a poll, this
    /// call is between [`before_run`](Observer::before_run) and [`after_run`](Observer::after_run)
    /// of that poll.
    ///
    /// A call to a [`Hosted`](crate::Hosted) value that is abandoned before it begins drops its
    /// closure at once. It is completed when the thread of the value comes to it.
    fn completed(&self, task: &TaskInfo) {
        let _ = task;
    }
}

/// The [`Observer`] that does nothing itself: with it the runtime times each turn of its actors.
///
/// Then each [`ActorStatus`](crate::ActorStatus) has the exact duration of all turns and of the longest
/// one. Without an observer, one turn in 64 is timed. What waits in a mailbox is not timed.
///
/// Two reads of the clock, and a few entries of a table, are the price of each turn.
///
/// ```
/// use greenroom::{Context, Measure, Runtime, spawn};
///
/// async fn sink(mut cx: Context<u32>) {
///     while cx.recv().await.is_some() {}
/// }
///
/// let runtime = Runtime::builder().observer(Measure).build()?;
/// let sink = spawn!(sink(_), on = &runtime);
/// sink.tell(42).unwrap();
/// runtime.run_until_quiescent();
/// let status = &runtime.stats().actors[0];
/// assert!(status.longest.is_some() && status.busy >= status.longest);
/// # Ok::<(), greenroom::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Measure;

impl Observer for Measure {}

/// The times of the completed turns of an actor.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BusyTimes {
    pub(super) all: Duration,
    pub(super) longest: Duration,
}

impl BusyTimes {
    pub(super) fn add(&mut self, took: Duration) {
        self.all += took;
        self.longest = self.longest.max(took);
    }
}

/// The times of each live actor, if there is an observer.
pub(super) struct Busy([Mutex<HashMap<u64, BusyTimes>>; SHARDS]);

/// The number of shards, which keeps contention between workers low.
const SHARDS: usize = 16;

impl Busy {
    pub(super) fn new() -> Self {
        Busy(std::array::from_fn(|_| Mutex::new(HashMap::new())))
    }

    pub(super) fn with<R>(
        &self,
        actor: u64,
        change: impl FnOnce(&mut HashMap<u64, BusyTimes>) -> R,
    ) -> R {
        change(&mut self.0[actor as usize % SHARDS].lock())
    }

    pub(super) fn of(&self, actor: u64) -> Option<BusyTimes> {
        self.with(actor, |shard| shard.get(&actor).copied())
    }
}

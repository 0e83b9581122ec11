//! Whoever wants to know of each run: what it is told, and what the runtime adds up meanwhile.

use std::collections::HashMap;
use std::time::Duration;

use super::chosen::Local;
use super::current;
use super::inner::Inner;
use crate::contain::contain;
use crate::instant::Instant;
use crate::sync::Mutex;
use crate::task::{Runnable, TaskInfo, TaskKey};

/// Is told of each run of each task and actor, on workers and on pinned threads.
///
/// It is called on the thread that runs the task, so what it does takes time from that. A panic in it
/// is contained. Given to [`Builder::observer`](crate::Builder::observer); without one, nothing is
/// measured and nothing is paid for.
///
/// ```
/// use greenroom::{Observer, Runtime, policy::TaskInfo};
/// use std::time::Duration;
///
/// struct Slow;
///
/// impl Observer for Slow {
///     fn after_run(&self, task: &TaskInfo, took: Duration) {
///         if took > Duration::from_millis(10) {
///             println!("{task:?} held its thread for {took:?}");
///         }
///     }
/// }
///
/// let runtime = Runtime::builder().observer(Slow).build()?;
/// assert_eq!(runtime.block_on(async { 40 + 2 }), 42);
/// # Ok::<(), greenroom::BuildError>(())
/// ```
pub trait Observer: Send + Sync + 'static {
    /// A run begins.
    fn before_run(&self, task: &TaskInfo) {
        let _ = task;
    }

    /// The run has ended, and took so long.
    fn after_run(&self, task: &TaskInfo, took: Duration) {
        let _ = (task, took);
    }

    /// The task or actor has come to its end, once, before its future is dropped: it is done, or it
    /// is cancelled. Within a run that is between the two calls for it. A call of a
    /// [`Hosted`](crate::Hosted) value that is given up before it begins drops its closure at once, and is
    /// completed when its thread comes to it.
    fn completed(&self, task: &TaskInfo) {
        let _ = task;
    }
}

/// How long each actor that lives has run, if somebody observes.
pub(super) struct Busy([Mutex<HashMap<u64, Duration>>; SHARDS]);

/// So that workers seldom meet.
const SHARDS: usize = 16;

impl Busy {
    pub(super) fn new() -> Self {
        Busy(std::array::from_fn(|_| Mutex::new(HashMap::new())))
    }

    fn with<R>(&self, actor: u64, change: impl FnOnce(&mut HashMap<u64, Duration>) -> R) -> R {
        change(&mut self.0[actor as usize % SHARDS].lock())
    }

    pub(super) fn of(&self, actor: u64) -> Option<Duration> {
        self.with(actor, |shard| shard.get(&actor).copied())
    }
}

impl Inner {
    /// Runs it, between the calls of those who are told of that.
    pub(crate) fn run_observed(&self, local: Option<&Local<'_>>, runnable: Runnable) {
        let task = runnable.info();
        if let Some(local) = local {
            local.hook(|desk| desk.before_resume(&task));
        }
        let begun = self.options.observer.as_ref().map(|observer| {
            if task.is_actor() {
                // Here, so that an actor that ends in this run is not added again.
                self.busy.with(task.id(), |shard| {
                    shard.entry(task.id()).or_default();
                });
            }
            contain(|| observer.before_run(&task));
            (observer, Instant::now())
        });
        contain(|| runnable.run());
        if let Some((observer, begun)) = begun {
            let took = begun.elapsed();
            if task.is_actor() {
                self.busy.with(task.id(), |shard| {
                    shard.entry(task.id()).and_modify(|busy| *busy += took);
                });
            }
            contain(|| observer.after_run(&task, took));
        }
        if let Some(local) = local {
            local.hook(|desk| desk.after_resume(&task));
        }
    }

    /// A task or actor has come to its end; called before its future is dropped.
    pub(crate) fn completed(&self, task: &TaskInfo) {
        current::with(|place| {
            if let Some(local) = place.and_then(|place| place.run_of(self)) {
                local.hook(|desk| desk.after_completion(task));
            }
        });
        self.simulation()
            .inspect(|simulation| simulation.completed(task));
        if let Some(observer) = &self.options.observer {
            if task.is_actor() {
                self.busy.with(task.id(), |shard| shard.remove(&task.id()));
            }
            contain(|| observer.completed(task));
        }
    }

    /// The plain task that this thread runs or drops has come to its end.
    pub(crate) fn task_completed(&self) {
        // One that is dropped may be so in the run of another.
        let key = TaskKey::dropped().or_else(|| current::with(|place| place?.running.get()));
        if let Some(key) = key.filter(|key| !key.is_cell()) {
            self.completed(&TaskInfo::of_task(key));
        }
    }
}

//! Controllers, as programs hold them, and their options.
//!
//! A controller ends when its last handle and its last looper are gone, or at a shutdown.

use std::sync::Arc;
use std::{cmp, fmt};

use super::current;
use super::error::{PostError, PostProblem};
use super::handle::Looper;
use super::inbox::Shut;
use super::job::{Cell, Job, Origin};
use super::lane::Lane;
use super::lock::{Guarded, Lock};
use super::monitor::Monitor;
use super::posted::Posted;
use super::stats::LooperStats;
use super::steward::Steward;
use super::table::Limits;
use super::want::Wants;
use super::work::Alone;
use super::world::World;
use crate::actor::ActorBuilder;
use crate::error::BuildError;
use crate::runtime::{Runtime, WaitSource};
use crate::task::is_large;

/// A table of loopers, locks and one world, on a runtime: the `Controller` of MTLL.
///
/// A clone is the same controller. Several controllers may exist, but each looper and lock belongs
/// to one of them.
///
/// When the last handle and all loopers are gone, what was posted runs and the controller ends. A
/// [shutdown](Runtime::shutdown) of the runtime closes the controller, and what was posted runs
/// within the grace. The rest ends with [`NotStarted`](super::TaskError::NotStarted), or with
/// [`Cancelled`](super::TaskError::Cancelled) if it had begun.
#[derive(Clone)]
pub struct Controller(Arc<Held>);

/// Is dropped with the last clone of a handle.
struct Held(Arc<Monitor>);

/// The options of a [`Controller`].
#[must_use = "a builder does nothing until `build`"]
#[derive(Debug, Clone)]
pub struct ControllerBuilder {
    runtime: Option<Runtime>,
    concurrency: Option<usize>,
    priorities: u8,
    aging: u32,
    detects_deadlocks: Option<bool>,
}

impl Controller {
    /// Creates a handle of a controller that may have none any more.
    pub(super) fn of(monitor: Arc<Monitor>) -> Self {
        monitor.change(|table, _| table.holds += 1);
        Controller(Arc::new(Held(monitor)))
    }

    /// Creates the options of a controller.
    pub fn builder() -> ControllerBuilder {
        ControllerBuilder {
            runtime: None,
            concurrency: None,
            priorities: 0,
            aging: 0,
            detects_deadlocks: None,
        }
    }

    /// Creates a looper.
    ///
    /// After a shutdown the looper is closed.
    pub fn looper(&self) -> Looper {
        Looper::new(&self.0.0, None)
    }

    /// Creates a looper with a name, for errors and [`on_fault`](crate::Builder::on_fault).
    pub fn looper_named(&self, name: impl Into<String>) -> Looper {
        Looper::new(&self.0.0, Some(name.into().into()))
    }

    /// Creates a lock without a value.
    pub fn lock(&self) -> Lock {
        Lock::new(&self.0.0, None)
    }

    /// Creates a lock without a value, with a name for errors.
    pub fn lock_named(&self, name: impl Into<String>) -> Lock {
        Lock::new(&self.0.0, Some(name.into().into()))
    }

    /// Puts a value behind a lock.
    pub fn guarded<T: Send + Sync + 'static>(&self, value: T) -> Guarded<T> {
        Guarded::new(&self.0.0, None, value)
    }

    /// Puts a value behind a lock with a name for errors.
    pub fn guarded_named<T: Send + Sync + 'static>(
        &self,
        name: impl Into<String>,
        value: T,
    ) -> Guarded<T> {
        Guarded::new(&self.0.0, Some(name.into().into()), value)
    }

    /// Runs a task alone: the `enqueueAndStopTheWorld` of MTLL.
    ///
    /// It waits until every task that has begun has ended, async ones too. Meanwhile no other task
    /// begins. The world's tasks then run in order, and after the last of them the loopers go on.
    /// Priorities and locks have no effect on them. Any thread, task or stopped world may call
    /// this.
    ///
    /// # Errors
    /// [`PostError`] returns the closure if the controller is closed.
    ///
    /// ```
    /// use greenroom::looper::Controller;
    ///
    /// greenroom::run(async {
    ///     let controller = Controller::builder().build().unwrap();
    ///     let accounts = controller.guarded(vec![100, 200]);
    ///     let sum = controller.stop_the_world(move |world| {
    ///         world.get(&accounts).map(|accounts| accounts.iter().sum::<i32>())
    ///     });
    ///     assert_eq!(sum.unwrap().await.unwrap(), Ok(300));
    /// });
    /// ```
    pub fn stop_the_world<F, R>(&self, task: F) -> Result<Posted<R>, PostError<F>>
    where
        F: FnOnce(&mut World) -> R + Send + 'static,
        R: Send + 'static,
    {
        if const { is_large::<F>() } {
            let posted = self.post_alone(Box::new(task));
            return posted.or_else(|task| PostError::unbox(task, PostProblem::Closed));
        }
        let posted = self.post_alone(task);
        posted.map_err(|task| PostError::new(task, PostProblem::Closed))
    }

    fn post_alone<F, R>(&self, task: F) -> Result<Posted<R>, F>
    where
        F: FnOnce(&mut World) -> R + Send + 'static,
        R: Send + 'static,
    {
        let monitor = &self.0.0;
        let job = Arc::new(Job {
            origin: Origin::World(monitor.clone()),
            priority: 0,
            wants: Wants::default(),
            extras: None,
            is_owning: false,
            body: Cell::new(Alone(task)),
        });
        let erased: Arc<Job> = job.clone();
        let accepted = monitor.change(|table, effects| table.post_alone(erased, effects));
        let refused = (!accepted).then(|| job.body.recover()).flatten();
        match refused {
            Some(Alone(task)) => Err(task),
            None => Ok(Posted::new(job)),
        }
    }

    /// Returns the state of the controller. It looks at each looper.
    pub fn stats(&self) -> LooperStats {
        self.0.0.look(|table| table.stats())
    }

    /// Accepts no more tasks, and waits until all that were posted have ended.
    ///
    /// A second call waits as well. A call by a task of this controller does not wait.
    ///
    /// # Cancel safety
    /// The controller stays closed when the future is dropped.
    pub async fn shutdown(&self) {
        let monitor = &self.0.0;
        let is_own = current::with(|job| job.origin.hub().id() == monitor.id) == Some(true);
        monitor.change_after(Shut::Controller, |table, effects| table.close_all(effects));
        if !is_own {
            let is_over = || monitor.look(|table| table.is_over);
            monitor.waiters.until(is_over).await;
        }
    }
}

impl ControllerBuilder {
    /// Sets the runtime of the controller, by default the current one.
    pub fn on(mut self, runtime: &Runtime) -> Self {
        self.runtime = Some(runtime.clone());
        self
    }

    /// Sets how many tasks run at the same time: at least 1, by default the number of workers.
    ///
    /// A task that waits, for a lock or in an `await`, does not count. A closure that blocks, in
    /// [`block_on`](Runtime::block_on) for example, keeps its place.
    pub fn concurrency(mut self, lanes: usize) -> Self {
        self.concurrency = Some(lanes);
        self
    }

    /// Sets the highest priority, by default 0. The lowest is 0.
    ///
    /// Priorities order loopers among themselves, not against actors and other tasks.
    pub fn priorities(mut self, highest: u8) -> Self {
        self.priorities = highest;
        self
    }

    /// Lets every `turns`-th choice serve the lowest priority, so that none starves.
    ///
    /// It holds for the loopers that are ready, and for the line of each lock, where shared
    /// requests come after exclusive ones of the same priority. 0, the default, means never.
    pub fn aging(mut self, turns: u32) -> Self {
        self.aging = turns;
        self
    }

    /// Sets whether waits are checked for deadlocks when they begin.
    ///
    /// The default is true in builds with debug assertions, and false otherwise.
    pub fn detect_deadlocks(mut self, detects: bool) -> Self {
        self.detects_deadlocks = Some(detects);
        self
    }

    /// Creates the controller.
    ///
    /// # Errors
    /// [`BuildError::Impossible`] if the concurrency is 0, if there is no current runtime, or if it
    /// is shutting down.
    pub fn build(self) -> Result<Controller, BuildError> {
        let impossible = |option, reason: String| BuildError::Impossible { option, reason };
        if self.concurrency == Some(0) {
            return Err(impossible(
                "concurrency",
                "is 0, below the least value, 1".into(),
            ));
        }
        let runtime = self.runtime.or_else(Runtime::try_current);
        let Some(runtime) = runtime else {
            return Err(impossible(
                "runtime",
                crate::SpawnProblem::NoRuntime.to_string(),
            ));
        };
        let inner = runtime.inner().clone();
        let lanes = self.concurrency.unwrap_or(inner.options().workers);
        let limits = Limits {
            lanes: cmp::max(lanes, 1),
            highest: self.priorities,
            aging: self.aging,
            detects: self.detects_deadlocks.unwrap_or(cfg!(debug_assertions)),
        };
        let monitor = Monitor::new(limits, Some(inner.clone()));
        let waits: Arc<dyn WaitSource> = monitor.clone();
        inner.engine().reports_waits(Arc::downgrade(&waits));
        let steward = ActorBuilder::new(Steward::new(monitor.clone()), Steward::run);
        let spawned = steward.name("controller").on(&runtime).try_spawn();
        let steward =
            spawned.map_err(|error| impossible("runtime", error.problem().to_string()))?;
        steward.detach();
        // The first lane exists from the beginning: a shutdown starts no new one.
        let first = monitor.change(|table, _| table.lanes.make());
        Lane::start(&monitor, first);
        Ok(Controller(Arc::new(Held(monitor))))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.change(|table, effects| {
            table.holds -= 1;
            table.judge_handles(effects);
        });
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("id", &self.0.0.id)
            .field("stats", &self.stats())
            .finish()
    }
}

//! Controllers, as programs hold them, and their options.
//!
//! A controller ends when its last handle and its last looper are gone, or at a shutdown.

use std::sync::Arc;
use std::{cmp, fmt};

use super::cell::LooperCell;
use super::claim::Claim;
use super::error::{PostError, PostProblem};
use super::handle::{Looper, WeakLooper};
use super::job::{Posted, PostedJob, with_current};
use super::lane::{Lane, Steward};
use super::lock::{Guarded, Lock};
use super::monitor::Monitor;
use super::table::{LooperStatus, LooperTable};
use super::work::{TypedJob, done};
use super::world::World;
use crate::actor::ActorBuilder;
use crate::error::BuildError;
use crate::runtime::{Inner, Runtime, WaitSource};
use crate::sync::atomic::Ordering;
use crate::task::is_large;

/// A table of loopers, locks and one world, on a runtime.
///
/// A clone is the same controller. Several controllers may exist, but each looper and lock belongs
/// to one of them.
///
/// When the last handle and all loopers are gone, what was posted runs and the controller ends. A
/// [shutdown](Runtime::shutdown) of the runtime closes the controller, and what was posted runs
/// within the grace. The rest ends with [`NotStarted`](super::TaskError::NotStarted), or with
/// [`Cancelled`](super::TaskError::Cancelled) if it had begun.
pub struct Controller(Arc<Monitor>);

/// The options of a [`Controller`].
#[must_use = "a builder does nothing until `build`"]
#[derive(Debug, Clone)]
pub struct ControllerBuilder {
    runtime: Option<Runtime>,
    lanes: Option<usize>,
    priorities: u8,
    aging: u32,
    detects_deadlocks: Option<bool>,
}

impl Controller {
    /// Creates a handle of a controller that may have none any more.
    pub(super) fn of(monitor: Arc<Monitor>) -> Self {
        // Relaxed: the table's lock orders what the handle is used for.
        monitor.handles.fetch_add(1, Ordering::Relaxed);
        Controller(monitor)
    }

    /// Creates the options of a controller.
    pub fn builder() -> ControllerBuilder {
        ControllerBuilder {
            runtime: None,
            lanes: None,
            priorities: 0,
            aging: 0,
            detects_deadlocks: None,
        }
    }

    /// Creates a looper.
    ///
    /// After a shutdown the looper is closed.
    pub fn looper(&self) -> Looper {
        Looper::new(&self.0, None)
    }

    /// Creates a looper with a name, for errors and [`on_fault`](crate::Builder::on_fault).
    pub fn looper_named(&self, name: impl Into<String>) -> Looper {
        Looper::new(&self.0, Some(name.into().into()))
    }

    /// Creates a lock without a value.
    pub fn lock(&self) -> Lock {
        Lock::new(&self.0, None)
    }

    /// Creates a lock without a value, with a name for errors.
    pub fn lock_named(&self, name: impl Into<String>) -> Lock {
        Lock::new(&self.0, Some(name.into().into()))
    }

    /// Puts a value behind a lock.
    pub fn guarded<T: Send + Sync + 'static>(&self, value: T) -> Guarded<T> {
        Guarded::new(&self.0, None, value)
    }

    /// Puts a value behind a lock with a name for errors.
    pub fn guarded_named<T: Send + Sync + 'static>(
        &self,
        name: impl Into<String>,
        value: T,
    ) -> Guarded<T> {
        Guarded::new(&self.0, Some(name.into().into()), value)
    }

    /// Runs a task alone.
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
    #[doc(alias = "enqueueAndStopTheWorld")]
    pub fn stop_the_world<F, R>(&self, task: F) -> Result<Posted<R>, PostError<F>>
    where
        F: FnOnce(&mut World) -> R + Send + 'static,
        R: Send + 'static,
    {
        if const { is_large::<F>() } {
            let posted = self.post_alone(Box::new(task), |task, world| task(world));
            return posted.map_err(PostError::unbox);
        }
        self.post_alone(task, |task, world| task(world))
    }

    fn post_alone<F, R>(
        &self,
        task: F,
        run: impl Fn(F, &mut World) -> R + Send + Sync + 'static,
    ) -> Result<Posted<R>, PostError<F>>
    where
        F: Send + 'static,
        R: Send + 'static,
    {
        let begin = move |task, _: Option<&Claim<()>>, looper: &Arc<LooperCell>| {
            done(run(task, &mut World::new(&looper.monitor)))
        };
        let job = Arc::new(PostedJob {
            looper: LooperCell::world(&self.0),
            priority: 0,
            is_owning: false,
            deadline: None,
            set: [].into(),
            body: TypedJob::new(task, None, begin),
        });
        // The table has one pointer, which knows no type, and the caller the other one.
        let erased: Arc<PostedJob> = job.clone();
        let post = |table: &mut LooperTable, follow_up: &mut _| table.post_alone(erased, follow_up);
        let is_accepted = self.0.change(post);
        match (!is_accepted).then(|| job.body.recover()).flatten() {
            Some(task) => Err(PostError::new(task, PostProblem::Closed)),
            None => Ok(Posted::new(job)),
        }
    }

    /// Returns the state of the controller. It looks at each looper.
    pub fn status(&self) -> LooperStatus {
        self.0.look(|table| table.status())
    }

    /// Accepts no more tasks, and waits until all that were posted have ended.
    ///
    /// A second call waits as well. A call by a task of this controller does not wait.
    ///
    /// # Cancel safety
    /// The controller stays closed when the future is dropped.
    pub async fn shutdown(&self) {
        let monitor = &self.0;
        let is_own = with_current(|job| job.looper.monitor.id == monitor.id);
        monitor.change(LooperTable::close_all);
        if is_own != Some(true) {
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
    /// [`block_on`](Runtime::block_on) for example, keeps its lane.
    ///
    /// Implementation detail: with short tasks, of about a microsecond, one lane alone is often faster
    /// than two. The others stand by meanwhile, and take part at most 50 microseconds after that one
    /// has become slower.
    #[doc(alias = "threadCount")]
    pub fn lanes(mut self, lanes: usize) -> Self {
        self.lanes = Some(lanes);
        self
    }

    /// Sets the highest priority, by default 0. The lowest is 0.
    ///
    /// Priorities order loopers among themselves, not against actors and other tasks.
    #[doc(alias = "maxPriority")]
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
    /// [`BuildError::Impossible`] if the number of lanes is 0, if there is no current runtime, or if it
    /// is shutting down.
    #[track_caller]
    pub fn build(self) -> Result<Controller, BuildError> {
        let impossible = |option, reason: String| BuildError::Impossible { option, reason };
        if self.lanes == Some(0) {
            return Err(impossible("lanes", "is 0, below the least value, 1".into()));
        }
        let runtime = self.runtime.clone().or_else(Runtime::try_current);
        let Some(runtime) = runtime else {
            let reason = format!("is missing: {}", crate::SpawnProblem::NoRuntime);
            return Err(impossible("runtime", reason));
        };
        let inner = runtime.inner().clone();
        let lanes = self.lanes.unwrap_or(inner.options().workers);
        let monitor = self.monitor(lanes, Some(inner.clone()));
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
        Ok(Controller(monitor))
    }

    /// Creates the controller without a lane and without its steward.
    pub(super) fn monitor(&self, lanes: usize, runtime: Option<Arc<Inner>>) -> Arc<Monitor> {
        let is_simulated = runtime.as_ref().is_some_and(|it| it.is_simulated());
        let detects = self.detects_deadlocks.unwrap_or(cfg!(debug_assertions));
        let (lanes, highest) = (cmp::max(lanes, 1), self.priorities);
        let table = LooperTable::new(lanes, highest, self.aging, detects, is_simulated);
        Monitor::new(table, highest, runtime)
    }
}

impl Clone for Controller {
    fn clone(&self) -> Self {
        Controller::of(self.0.clone())
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // AcqRel pairs with itself: what the other handles did happens before the close.
        if self.0.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            let judge = |table: &mut LooperTable, follow_up: &mut _| {
                table.judge_handles(&self.0, follow_up);
            };
            self.0.change(judge);
        }
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("id", &self.0.id)
            .field("status", &self.status())
            .finish()
    }
}

/// The task of a looper or of the world that runs on this thread.
#[derive(Clone)]
pub struct CurrentTask {
    looper: Arc<LooperCell>,
    priority: u8,
}

/// Returns the task that runs on this thread, if it is one of a looper or of the world.
///
/// ```
/// use greenroom::looper::{self, Controller};
///
/// greenroom::run(async {
///     let controller = Controller::builder().priorities(3).build().unwrap();
///     let looper = controller.looper_named("teller");
///     let task = looper.priority(2).post(|| {
///         let current = looper::current().unwrap();
///         (current.priority(), current.looper().unwrap().name().map(str::to_owned))
///     });
///     assert_eq!(task.unwrap().await.unwrap(), (2, Some("teller".to_owned())));
///     assert!(looper::current().is_none());
/// });
/// ```
pub fn current() -> Option<CurrentTask> {
    with_current(|job| CurrentTask {
        looper: job.looper.clone(),
        priority: job.priority,
    })
}

impl CurrentTask {
    /// Returns the controller of the task.
    ///
    /// It is closed if the task runs during its shutdown, or when the last handle of the controller
    /// and all loopers are gone.
    ///
    /// ```
    /// use greenroom::looper::{self, Controller};
    ///
    /// greenroom::run(async {
    ///     let controller = Controller::builder().build().unwrap();
    ///     let looper = controller.looper();
    ///     drop(controller);
    ///     let task = looper.post(|| {
    ///         let controller = looper::current().unwrap().controller();
    ///         controller.looper().post(|| 5).unwrap()
    ///     });
    ///     assert_eq!(task.unwrap().await.unwrap().await.unwrap(), 5);
    /// });
    /// ```
    #[doc(alias = "mtllRun")]
    pub fn controller(&self) -> Controller {
        Controller::of(self.looper.monitor.clone())
    }

    /// Returns the looper of the task, or `None` for a task of the world.
    pub fn looper(&self) -> Option<WeakLooper> {
        (!self.looper.is_world()).then(|| WeakLooper::new(&self.looper))
    }

    /// Returns the priority of the task. It is 0 for a task of the world.
    #[doc(alias = "mtllPriority")]
    pub fn priority(&self) -> u8 {
        self.priority
    }
}

impl fmt::Debug for CurrentTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurrentTask")
            .field("looper", &self.looper())
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}

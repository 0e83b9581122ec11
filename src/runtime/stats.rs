//! The statistics of a runtime: what its workers have done, and what is queued.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::engine::DueEffects;
use super::faults::beginning;
use super::handle::Runtime;
use super::inner::Inner;
use super::status::{ActorStatus, Stats, WorkerTurn};
use super::warning::{Topic, Warning};
use crate::directory::Registrations;
use crate::task::{Look, TaskInfo, TaskKey};

impl Runtime {
    /// Returns statistics: what this runtime has done since it was built, and what it has to do.
    ///
    /// The call takes time in proportion to the number of actors. Programs that never call it pay
    /// only for the counters. It also works after the runtime has shut down.
    ///
    /// # Blocking
    /// Only for short critical sections, among them one for every mailbox.
    ///
    /// # Examples
    ///
    /// ```
    /// use greenroom::{Context, Runtime, spawn};
    ///
    /// let runtime = Runtime::builder().workers(1).build()?;
    /// let actor = spawn!(
    ///     |mut cx: Context<u32>| async move { while cx.recv().await.is_some() {} },
    ///     name = "sink",
    ///     on = &runtime,
    /// );
    /// runtime.run_until_quiescent();
    ///
    /// let stats = runtime.stats();
    /// assert_eq!(stats.total().runs, 1); // the first turn of the actor
    /// assert_eq!(stats.queued, 0);
    /// assert_eq!(stats.actors.len(), 1);
    /// assert_eq!(stats.actors[0].task.name(), Some("sink"));
    /// assert_eq!(stats.actors[0].mailbox, 0);
    /// # drop(actor);
    /// # Ok::<(), greenroom::BuildError>(())
    /// ```
    #[track_caller]
    pub fn stats(&self) -> Stats {
        self.inner.check_process();
        self.inner.stats()
    }

    /// Returns the states of the busiest live actors, at most `limit`, the busiest first.
    ///
    /// Those are the actors with the longest turns in all if the runtime has an
    /// [`observer`](crate::Builder::observer), then those with the most messages in their
    /// mailboxes, then the oldest.
    ///
    /// # Blocking
    /// As [`stats`](Runtime::stats), with memory for `limit` states.
    ///
    /// ```
    /// use greenroom::{Context, Runtime, spawn};
    ///
    /// let runtime = Runtime::builder().workers(1).build()?;
    /// let sinks = ["a", "b", "c"].map(|name| {
    ///     let sink = |mut cx: Context<u32>| async move { while cx.recv().await.is_some() {} };
    ///     spawn!(sink, name = name, on = &runtime)
    /// });
    /// runtime.run_until_quiescent();
    /// let names = runtime.actors(2).into_iter().map(|it| it.task.called().into_owned());
    /// assert!(names.eq(["a", "b"]));
    /// # drop(sinks);
    /// # Ok::<(), greenroom::BuildError>(())
    /// ```
    #[track_caller]
    pub fn actors(&self, limit: usize) -> Vec<ActorStatus> {
        self.inner.check_process();
        self.inner.busiest(limit)
    }
}

impl Runtime {
    /// Returns the live plain tasks that have gone pending at least once, as [`Stats::tasks`]
    /// counts them. They are in no particular order.
    ///
    /// Each has its [name](crate::task()) or, without one, is
    /// [called](crate::policy::TaskInfo::called) after its type. So a count of the names tells what
    /// a program of many tasks waits in.
    ///
    /// # Blocking
    /// As [`stats`](Runtime::stats), with time and memory for each task.
    ///
    /// ```
    /// use greenroom::Runtime;
    /// use std::future::pending;
    ///
    /// async fn fetch(_page: u32) {
    ///     pending::<()>().await;
    /// }
    ///
    /// let runtime = Runtime::builder().workers(1).build()?;
    /// let reader = greenroom::task("reader").spawn_on(&runtime, pending::<()>());
    /// let fetches = [1, 2].map(|page| runtime.spawn(fetch(page)));
    /// runtime.run_until_quiescent();
    /// let tasks = runtime.tasks();
    /// let mut names: Vec<_> = tasks.iter().map(|task| task.called()).collect();
    /// names.sort();
    /// assert_eq!(names, ["fetch", "fetch", "reader"]);
    /// # drop((reader, fetches));
    /// # Ok::<(), greenroom::BuildError>(())
    /// ```
    #[track_caller]
    pub fn tasks(&self) -> Vec<TaskInfo> {
        self.inner.check_process();
        // In a simulation, effects of turns may be deferred, and would be missed here (SIM-4).
        self.inner.engine().apply(&self.inner, DueEffects::All);
        let mut tasks = Vec::new();
        self.inner.live.describe_tasks(&mut |task| tasks.push(task));
        self.inner
            .hosts
            .describe_tasks(&mut |task| tasks.push(task));
        tasks
    }
}

impl Inner {
    fn stats(&self) -> Stats {
        let mut actors = Vec::new();
        self.describe_actors(|status| actors.push(status));
        self.name(&mut actors);
        Stats {
            actors,
            ..self.figures()
        }
    }

    /// Returns the statistics without the actors.
    pub(super) fn figures(&self) -> Stats {
        let (injector, own, mut elsewhere) = self.scheduler.lens();
        elsewhere += self.engine().len();
        let counters = self.scheduler.counters.iter().zip(&own);
        let workers = counters.map(|(counters, &queued)| counters.stats(queued));
        Stats {
            workers: workers.collect(),
            queued: injector + own.iter().sum::<usize>() + elsewhere,
            injector,
            running: self.running(),
            tasks: self.live.tasks() + self.hosts.tasks(),
            timers: self.timers.len() + self.hosts.timers(),
            pinned: self.hosts.len(),
            blocking: self.blocking.stats(),
            is_counting: self.options.counting,
            turn_times: self.live.turn_times(),
            ask_times: self.ask_times.read(),
            actors: Vec::new(),
        }
    }

    /// Returns what each worker runs, as far as turns are timed for warnings.
    pub(super) fn running(&self) -> Vec<Option<WorkerTurn>> {
        match &self.long_turns {
            Some(turns) => turns.running(),
            None => vec![None; self.options.workers],
        }
    }

    fn busiest(&self, limit: usize) -> Vec<ActorStatus> {
        let mut busiest = BTreeMap::new();
        self.describe_actors(|status| {
            let rank = (status.busy, status.mailbox, Reverse(status.task.id()));
            busiest.insert(Reverse(rank), status);
            if busiest.len() > limit {
                busiest.pop_last();
            }
        });
        let mut busiest: Vec<_> = busiest.into_values().collect();
        self.name(&mut busiest);
        busiest
    }

    /// Adds what actors are registered as.
    fn name(&self, actors: &mut [ActorStatus]) {
        let registered = Registrations::of(self.directory());
        actors.iter_mut().for_each(|it| it.name(&registered));
    }

    /// Warns of the dormant actors without a handle that no such warning has named.
    pub(super) fn warn_of_lonely_actors(&self) {
        let Some(locations) = &self.locations else {
            return;
        };
        let mut lonely = Vec::new();
        self.describe_actors(|status| lonely.extend(status.is_lonely().then_some(status)));
        lonely.retain(|actor| {
            let spawned = locations.of(&actor.task);
            spawned.is_some_and(|spawned| locations.is_news(&actor.task, spawned, Topic::LeftAlone))
        });
        if !lonely.is_empty() {
            lonely.sort_by_key(|actor| actor.task.id());
            self.warnings.warn(&Warning::LeftAlone(lonely));
        }
    }

    /// Warns of the actors for which a shutdown waits, in the order of their ids.
    pub(super) fn warn_of_actors_that_stay(&self) {
        let mut stay = Vec::new();
        self.describe_others(&self.shutdown.exempted(), |status| stay.push(status));
        if !stay.is_empty() {
            stay.sort_by_key(|actor| actor.task.id());
            self.warnings.warn(&Warning::ShutdownWaits(stay));
        }
    }

    /// Describes each live actor, after everything that was done before this call.
    pub(super) fn describe_actors(&self, each: impl FnMut(ActorStatus)) {
        self.describe_others(&[], each);
    }

    /// Describes each live actor that is not in `spare`, as `describe_actors` does.
    fn describe_others(&self, spare: &[TaskKey], mut each: impl FnMut(ActorStatus)) {
        // In a simulation, effects of turns may be deferred, and would be missed here (SIM-4).
        self.engine().apply(self, DueEffects::All);
        let turns = self.running();
        self.describe_cells(spare, |task, look| {
            let mut status = self.status(task, &look);
            self.place(&mut status, &turns);
            each(status);
        });
    }

    /// Describes each cell that is not in `spare`, on the workers and elsewhere.
    pub(crate) fn describe_cells(&self, spare: &[TaskKey], mut each: impl FnMut(TaskInfo, Look)) {
        self.live.describe_cells(spare, &mut each);
        self.hosts.describe_cells(spare, &mut each);
    }

    /// Names the worker that runs an actor in one of these turns.
    pub(super) fn place(&self, status: &mut ActorStatus, turns: &[Option<WorkerTurn>]) {
        if !status.is_dormant
            && status.thread.is_none()
            && let Some(worker) = worker_of(status.task.id(), turns)
        {
            let name = format!("{}-{worker}", self.options.thread_name);
            status.thread = Some(name.into());
        }
    }

    /// Returns the state of an actor, as it was at a look.
    pub(super) fn status(&self, task: TaskInfo, look: &Look) -> ActorStatus {
        let times = || self.busy.of(task.id()).unwrap_or_default();
        let times = self.has_observer().then(times);
        let spawned = (self.locations.as_ref()).and_then(|locations| locations.of(&task));
        let spawner = spawned.map(|spawned| spawned.by).filter(|&by| by != 0);
        ActorStatus {
            busy: times.map(|times| times.all),
            longest: times.map(|times| times.longest),
            mailbox: look.mailbox,
            is_dormant: look.is_dormant,
            has_handle: look.has_handle,
            incarnation: look.incarnation,
            displaced: look.displaced,
            turns: look.turns,
            messages: look.messages,
            highest: look.highest,
            sampled: look.sampled,
            addresses: look.addresses,
            spawned_at: spawned.map(|spawned| spawned.location),
            parent: look.parent.or(spawner),
            capacity: look.capacity,
            thread: look.thread.clone(),
            state: look.state,
            fault: look.fault.as_deref().map(beginning),
            names: Vec::new(),
            groups: Vec::new(),
            key: None,
            task,
        }
    }
}

/// Returns the worker that runs the actor with this number, if one of these turns is its.
pub(super) fn worker_of(id: u64, turns: &[Option<WorkerTurn>]) -> Option<usize> {
    let is_its = |turn: &WorkerTurn| turn.task.is_actor() && turn.task.id() == id;
    (turns.iter()).position(|turn| turn.as_ref().is_some_and(is_its))
}

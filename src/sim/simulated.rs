//! Simulation: one thread, an order drawn from a seed, and a clock of its own.

use std::any::Any;
use std::fmt;
use std::time::Duration;

use super::engine::{Draw, Plan, Ready, Schedule, Simulation, TurnScript};
use crate::runtime::Engine;
use crate::scheduler::policy::{Duties, Policy, Runnable};
use crate::sync::Mutex;

/// Simulation: everything on the thread that builds the runtime, in an order drawn from a seed, with
/// virtual time.
///
/// Tasks, actors, timers, pinned threads, detached actors and jobs of [`unblock`](crate::unblock) are
/// the same; no thread is started. They run while that thread is in
/// [`block_on`](crate::Runtime::block_on), `run_until_quiescent` or the shutdown, one at a time. Each
/// run takes a microsecond of virtual time, which all of [`time`](crate::time) follows, and when
/// nothing is ready it jumps to the next deadline. [`sim`](crate::sim) has the usual ways in, and says
/// more.
///
/// # What it means for a runtime
///
/// - The thread that built it is the only one that may call `block_on`; on any other it panics. Dropped
///   or shut down on another thread, it cancels what may be dropped there, and what lives on its
///   pinned threads is never dropped.
/// - When nothing is ready, no timer is armed and the future of `block_on` is not done, that is a
///   deadlock, and `block_on` panics with a text that names it. A
///   [`KeepAlive`](crate::KeepAlive) says that somebody else will bring work; here nobody does.
/// - Deadlocks are always [detected](crate::Builder::detect_deadlocks).
/// - The number of workers makes no difference: any ready task may be the next. An
///   [`Observer`](crate::Observer) is told that each run took no time.
/// - A job of `unblock`, like every run, must not wait for another thread. In a task `block_on` runs
///   the others meanwhile, on the same stack: two that wait like this come back the inner one first.
///
/// ```
/// use greenroom::{Runtime, policy, time};
/// use std::time::Duration;
///
/// let runtime = Runtime::builder().policy(policy::Simulated::new(7)).build()?;
/// runtime.block_on(async {
///     let start = time::Instant::now();
///     time::sleep(Duration::from_secs(3600)).await; // at once
///     assert!(start.elapsed() >= Duration::from_secs(3600));
/// });
/// # Ok::<(), greenroom::BuildError>(())
/// ```
pub struct Simulated {
    pub(crate) plan: Plan,
    /// In which order it runs, instead of a drawn one.
    pub(crate) script: Option<TurnScript>,
    /// Used only inside a policy of the user's own.
    ready: Mutex<Ready<Runnable>>,
}

impl Simulated {
    /// Everything is drawn from this seed, also which kind of schedule it is: [`random`](Self::random),
    /// or [`priorities`](Self::priorities) with 0 to 3 changes within 16 to 4096 steps. Of the latter, in half of all
    /// runs a task that is woken in its own run keeps its priority.
    ///
    /// In an eighth of all runs every turn is [split](crate::sim#what-it-finds), in another eighth each with a
    /// probability of a half.
    pub fn new(seed: u64) -> Self {
        let plan = Plan::new(seed);
        Simulated {
            plan,
            script: None,
            ready: Mutex::new(Ready::new(Schedule::Random, Draw::new(seed))),
        }
    }

    /// Each step runs any of the ready tasks, all with the same probability.
    pub fn random(mut self) -> Self {
        self.plan.schedule = Some(Schedule::Random);
        self
    }

    /// Each task gets a priority when it is spawned, drawn from the seed, and the highest of those that
    /// are ready runs. At `changes` moments, drawn from the first `within` steps, the one that would run
    /// gets one below all of those first, and whoever is woken in its own run the lowest of all. After that it goes on as
    /// [`random`](Self::random) does, so that nobody starves.
    ///
    /// This is PCT (Burckhardt, Kothari, Musuvathi, Nagarakatte: *A Randomized Scheduler with
    /// Probabilistic Guarantees of Finding Bugs*, 2010): a bug that takes `changes + 1` orderings to
    /// come about, in a program of `n` tasks that takes `within` steps, is found with a probability of at
    /// least 1 / (`n` · `within`^`changes`) a seed, where nothing is woken in its own run.
    pub fn priorities(mut self, changes: u32, within: u64) -> Self {
        self.plan.schedule = Some(Schedule::Priorities {
            changes,
            within,
            keeps: false,
        });
        self
    }

    /// Sets how late a timer fires at most, by default a millisecond. Half of them are in time, the others
    /// late by an amount that is drawn, or when another one fires if that is close.
    pub fn timer_jitter(mut self, most: Duration) -> Self {
        self.plan.timer_jitter = most;
        self
    }

    /// After how many steps a run has failed, by default a million. A step is a run of a task, or the effect of one
    /// thing that a split turn did.
    /// The shutdown that follows a run may take as many again. In
    /// [`block_on`](crate::Runtime::block_on), which panics then, they are counted from its beginning.
    pub fn steps(mut self, most: u64) -> Self {
        self.plan.steps = most;
        self
    }

    /// Has all that a turn does take effect at once, as if no other thread ran meanwhile.
    ///
    /// For programs that pass something on in plain shared memory; see
    /// [what the simulator does not find](crate::sim#what-it-does-not-find).
    pub fn whole_turns(mut self) -> Self {
        self.plan.whole_turns = true;
        self
    }

    /// How many of the last steps a trace shows, by default 200.
    pub fn trace(mut self, steps: usize) -> Self {
        self.plan.trace = steps;
        self
    }
}

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.plan, f)
    }
}

/// What a runtime does with it is not this: it sees by the type that it is to be simulated. A policy
/// of the user's own that passes its calls on to one has a queue that is random, and threads.
impl Policy for Simulated {
    type Worker = ();

    fn elsewhere(&mut self) -> Option<Box<dyn Any + Send + Sync>> {
        let simulation = Simulation::new(self.plan, self.script.take());
        let engine: Box<dyn Engine> = Box::new(simulation);
        Some(Box::new(engine))
    }

    fn worker(&self, _index: usize) {}

    fn central_enqueue(&self, runnable: Runnable) {
        self.ready.lock().push(runnable, 0);
    }

    fn dequeue(&self, _worker: &(), _duties: &Duties<'_>) -> Option<Runnable> {
        let (runnable, _) = self.ready.lock().pop()?;
        Some(runnable)
    }
}

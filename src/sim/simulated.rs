//! `Simulated`: the policy that simulates a runtime on one thread, and its options.

use std::fmt;
use std::time::Duration;

use super::engine::{Draw, Plan, Ready, Schedule, Simulation, TurnScript};
use crate::runtime::RuntimeEngine;
use crate::scheduler::policy::{Duties, Policy, Runnable, Setup};
use crate::sync::Mutex;

/// Simulation: runs everything on the thread that builds the runtime, in an order drawn from a seed
/// and in virtual time.
///
/// Tasks, actors, timers, pinned threads, detached actors and jobs of [`unblock`](crate::unblock)
/// behave as usual, but on no threads of their own. They run one at a time while that thread is in
/// [`block_on`](crate::Runtime::block_on), in `run_until_quiescent` or in the shutdown. Each turn
/// takes a microsecond of virtual time, which everything in [`time`](crate::time) follows. When
/// nothing is ready, the clock jumps to the next deadline. The functions of [`sim`](crate::sim) are
/// the usual entry points; that module says more.
///
/// # What it means for a runtime
///
/// - Only the thread that built the runtime may call `block_on`; it panics on any other. A drop or
///   shutdown on another thread cancels what may be dropped there. Futures and values on its pinned
///   threads are then never dropped.
/// - It is a deadlock if nothing is ready, no timer is armed and the future of `block_on` is not
///   done. Then `block_on` panics with a text that names the deadlock. A
///   [`KeepAlive`](crate::KeepAlive) says that work will come from outside; in a simulation nothing
///   comes from outside.
/// - Deadlocks are always [detected](crate::Builder::detect_deadlocks).
/// - The number of workers makes no difference: any ready task may be next. An
///   [`Observer`](crate::Observer) sees turns that take no time.
/// - No turn and no job of `unblock` may wait for another thread. A `block_on` inside a task runs
///   the other tasks meanwhile, on the same stack. Of two nested calls, the inner one returns
///   first.
///
/// ```
/// use greenroom::{Runtime, policy, time};
/// use std::time::Duration;
///
/// let runtime = Runtime::builder().policy(policy::Simulated::new(7)).build()?;
/// runtime.block_on(async {
///     let start = time::Instant::now();
///     time::sleep(Duration::from_secs(3600)).await; // takes no real time
///     assert!(start.elapsed() >= Duration::from_secs(3600));
/// });
/// # Ok::<(), greenroom::BuildError>(())
/// ```
#[must_use = "a simulation does nothing until it is run"]
pub struct Simulated {
    pub(crate) plan: Plan,
    /// The order of the run, if it is not drawn.
    pub(crate) script: Option<TurnScript>,
    /// Used only inside a custom policy.
    ready: Mutex<Ready<Runnable>>,
}

impl Simulated {
    /// Creates the options with a seed, from which everything is drawn.
    ///
    /// That includes the kind of schedule: [`random`](Self::random), or
    /// [`priorities`](Self::priorities) with 0 to 3 changes within 16 to 4096 steps. In half of the
    /// latter runs, a task that is woken during its own turn keeps its priority.
    ///
    /// In an eighth of all runs, every turn is [split](crate::sim#what-it-finds). In another
    /// eighth, each turn is split with a probability of one half.
    pub fn new(seed: u64) -> Self {
        let plan = Plan::new(seed);
        Simulated {
            plan,
            script: None,
            ready: Mutex::new(Ready::new(Schedule::Random, Draw::new(seed))),
        }
    }

    /// Sets the schedule that draws each step from all ready tasks, with equal probability.
    pub fn random(mut self) -> Self {
        self.plan.schedule = Some(Schedule::Random);
        self
    }

    /// Sets the schedule in which every task has a priority, drawn from the seed when it is
    /// spawned.
    ///
    /// The ready task with the highest priority runs. At `changes` steps, drawn from the first
    /// `within` ones, the task that would run gets a priority below all initial ones first. A task
    /// that is woken during its own turn gets the lowest of all. After `within` steps the schedule
    /// continues as [`random`](Self::random), so that no task starves.
    ///
    /// This is PCT (Burckhardt, Kothari, Musuvathi, Nagarakatte: *A Randomized Scheduler with
    /// Probabilistic Guarantees of Finding Bugs*, 2010). Take a program of `n` tasks and `within`
    /// steps with a bug that needs `changes + 1` orderings. A seed finds it with a probability of
    /// at least 1 / (`n` · `within`^`changes`), if no task is woken during its own turn.
    pub fn priorities(mut self, changes: u32, within: u64) -> Self {
        self.plan.schedule = Some(Schedule::Priorities {
            changes,
            within,
            keeps: false,
        });
        self
    }

    /// Sets the maximum lateness of timers; the default is 1 ms.
    ///
    /// Half of all timers fire in time. The others fire late by a drawn amount, or together with
    /// another timer that is close.
    pub fn timer_jitter(mut self, most: Duration) -> Self {
        self.plan.timer_jitter = most;
        self
    }

    /// Sets the number of steps after which a run has failed; the default is a million.
    ///
    /// A step is a turn of a task, or one effect of a split turn. The shutdown that follows a run
    /// may take as many steps again. In [`block_on`](crate::Runtime::block_on), which panics then,
    /// steps are counted from its beginning.
    pub fn steps(mut self, most: u64) -> Self {
        self.plan.steps = most;
        self
    }

    /// Makes all effects of a turn happen at once, as if no other thread ran meanwhile.
    ///
    /// For programs that pass data in plain shared memory; see [what the simulator does not
    /// find](crate::sim#what-it-does-not-find).
    pub fn whole_turns(mut self) -> Self {
        self.plan.whole_turns = true;
        self
    }

    /// Sets how many of the last steps a trace shows; the default is 200.
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

/// A runtime does not use these methods: it recognises the type and simulates. They serve a custom
/// policy that delegates to a `Simulated`; its runtime has real threads and a queue in random
/// order.
impl Policy for Simulated {
    type Worker = ();

    fn start(&mut self, setup: &Setup) -> Result<(), String> {
        let simulation = Simulation::new(self.plan, self.script.take());
        let engine: Box<dyn RuntimeEngine> = Box::new(simulation);
        setup.bring_engine::<Self>(Box::new(engine));
        Ok(())
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

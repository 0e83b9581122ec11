//! A simulated runtime: everything on one thread, in an order drawn from a seed, in virtual time.
//!
//! The thread that built it runs tasks, pinned threads' tasks and blocking jobs while it waits in
//! `block_on`, each such call a *frame*: one *step* is the run of one thing that is ready, or a poll of
//! a frame's future.
//!
//! # Invariants
//! - V1: only the thread that built the runtime takes anything out to run it, and only there is
//!   dropped what lives on its pinned threads (E1 in seat.rs).
//! - V2: no user code runs under the lock: wakers, runnables and futures are used outside.
//! - V3: each runnable that is ready is counted in the pulse from before it is until its turn has
//!   ended or it is dropped, and each frame while its future does not wait (K1 in quiescence.rs).

mod closing;
mod effects;
mod frames;
mod judging;
mod messages;
mod pending;
mod ready;
mod script;
mod simulator;
mod state;
mod trace;
mod waits;

use std::any::Any;
use std::sync::Arc;
use std::thread::ThreadId;

use closing::Closing;
pub use judging::Problem;
pub(crate) use judging::{Failed, Ran};
pub(crate) use ready::{Draw, Ready, Schedule};
pub(crate) use script::Script;
use state::{Next, State};
use trace::What;
pub(crate) use waits::Lines;

use super::simulated::Plan;
use crate::contain::contain;
use crate::instant::{self, Instant};
use crate::runtime::context::{self, Role, ThreadContext};
use crate::runtime::deadlock::Who;
use crate::runtime::{Inner, RunsOn, key_of};
use crate::scheduler::WorkerLocal;
use crate::sync::Mutex;
use crate::task::{Runnable, TaskInfo};

pub(crate) struct Simulation {
    plan: Plan,
    /// The one that built it.
    thread: ThreadId,
    state: Mutex<State>,
}

/// What a step came to.
enum Step {
    /// Something has run, or time has passed.
    Done,
    /// Nothing is ready and no deadline is left.
    Rest,
    /// It has taken too many steps.
    TooMany,
    /// A judged run has failed.
    Failed,
}

impl Simulation {
    pub(crate) fn new(plan: Plan, script: Option<Script>) -> Self {
        Simulation {
            plan,
            thread: std::thread::current().id(),
            state: Mutex::new(State::new(&plan, script)),
        }
    }

    /// Returns that of a runtime, if it is simulated.
    pub(crate) fn of(runtime: &Inner) -> Option<&Simulation> {
        (runtime.simulator()? as &dyn Any).downcast_ref()
    }

    /// Calls `f` with the simulation that this thread drives, if it drives one.
    pub(crate) fn current<R>(f: impl FnOnce(&Simulation) -> R) -> Option<R> {
        context::with(|context| Some(f(Simulation::of(context?.runtime)?)))
    }

    /// Whether this thread is the one that may run what there is (V1).
    fn is_here(&self) -> bool {
        std::thread::current().id() == self.thread
    }

    // -- what becomes ready -------------------------------------------------------------------

    /// Takes a runnable; `again`: it was woken in its own run.
    pub(crate) fn push(&self, inner: &Inner, runnable: Runnable, again: bool, runs_on: &RunsOn) {
        let task = runnable.info();
        // (V3) First.
        inner.inc_activity();
        let own = (self.plan.judged, self.is_here());
        self.state.lock().push(runnable, &task, again, runs_on, own);
        if inner.shutdown.is_settled() {
            self.drain(inner);
        }
    }

    /// When a timer fires that is due then.
    pub(crate) fn fires_at(&self, deadline: Instant) -> Instant {
        let most = u64::try_from(self.plan.timer_jitter.as_nanos()).unwrap_or(u64::MAX);
        let mut state = self.state.lock();
        state.fires_at(deadline, most)
    }

    /// Writes a line into the trace.
    pub(crate) fn note(&self, text: String) {
        self.state.lock().add(What::Notes(text));
    }

    /// A number from the seed, for whoever runs.
    pub(crate) fn random(&self) -> u64 {
        self.state.lock().origin().draw()
    }

    /// A task or actor has come to its end.
    pub(crate) fn completed(&self, task: &TaskInfo) {
        let mut state = self.state.lock();
        let ended = state.forget(task);
        drop(state);
        drop(ended);
    }

    /// How many tasks, actors and jobs are ready.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().ready_tasks()
    }

    // -- steps --------------------------------------------------------------------------------

    /// Does one thing; `is_late`: also when the run has failed.
    fn step(&self, inner: &Arc<Inner>, is_late: bool) -> Step {
        self.see_to_closing(inner);
        let mut state = self.state.lock();
        if state.failure.is_some() && !is_late {
            return Step::Failed;
        }
        if state.step >= state.last_step {
            return Step::TooMany;
        }
        let now = state.now;
        instant::simulate(Some(now));
        if inner.timers.is_due(now) {
            let before = std::mem::replace(&mut state.running, Who::Other("a timer"));
            drop(state);
            inner.fire(now);
            state = self.state.lock();
            state.running = before;
        }
        match state.next() {
            Some(Next::Frame(id, call)) => {
                drop(state);
                self.poll(inner, id, call);
                Step::Done
            }
            Some(Next::Task(runnable, runs_on)) => {
                drop(state);
                self.run(inner, runnable, &runs_on);
                Step::Done
            }
            Some(Next::Effect(runner)) => {
                drop(state);
                self.arrive(inner, runner);
                Step::Done
            }
            None => {
                let is_closing = state.closing.is_some();
                let deadline = state.closing.as_ref().and_then(Closing::deadline);
                if let Some(next) = inner.timers.next().into_iter().chain(deadline).min() {
                    state.now = next.max(now);
                    return Step::Done;
                }
                drop(state);
                if !is_closing {
                    return Step::Rest;
                }
                // Nobody is left who could end by himself.
                self.end_closing(inner);
                Step::Done
            }
        }
    }

    /// What the last turn of a pinned thread did takes effect before the next one there.
    fn settle_last(&self, inner: &Inner, seat: usize) {
        let mut state = self.state.lock();
        let runner = state.turn.map(|turn| turn.runner);
        let last = runner.and_then(|runner| state.last_turns.insert(seat, runner));
        drop(state);
        if let Some(last) = last {
            self.settle(inner, last, |_| true);
        }
    }

    /// Runs it where it lives.
    fn run(&self, inner: &Arc<Inner>, runnable: Runnable, runs_on: &RunsOn) {
        let key = runnable.key();
        let job = match runs_on {
            RunsOn::Blocking => Some(runnable.info()),
            _ => None,
        };
        match runs_on {
            RunsOn::Host(host) => {
                self.settle_last(inner, key_of(host));
                host.clone().run_simulated(runnable);
            }
            RunsOn::Workers => {
                let local = WorkerLocal::new(&inner.scheduler, &**inner, 0);
                let context = ThreadContext::new(inner, Role::Worker(&local));
                let _entered = context.enter();
                inner.scheduler.counters[0].begin_run();
                context.running.set(Some(key));
                inner.run_observed(Some(&local), runnable);
            }
            RunsOn::Blocking => {
                // Its end is heard of in other ways.
                self.state.lock().turn = None;
                let context = ThreadContext::new(inner, Role::Blocking);
                let _entered = context.enter();
                contain(|| runnable.run());
            }
        }
        job.inspect(|job| self.completed(job));
        self.state.lock().rests();
        // (V3) It was counted.
        inner.dec_activity();
        if inner.shutdown.is_settled() {
            self.had_its_turn(inner, key);
        }
    }
}

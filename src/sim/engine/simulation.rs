//! A simulation: what it was asked for, the thread that runs it, and what it knows.

use std::any::Any;
use std::thread::ThreadId;

use super::plan::Plan;
use super::script::TurnScript;
use super::state::State;
use super::trace::What;
use crate::instant::Instant;
use crate::runtime::{Inner, RunsOn, context};
use crate::sync::Mutex;
use crate::task::{Runnable, TaskInfo};

pub(crate) struct Simulation {
    pub(super) plan: Plan,
    /// The one that built it.
    thread: ThreadId,
    pub(super) state: Mutex<State>,
}

impl Simulation {
    pub(crate) fn new(plan: Plan, script: Option<TurnScript>) -> Self {
        Simulation {
            plan,
            thread: std::thread::current().id(),
            state: Mutex::new(State::new(&plan, script)),
        }
    }

    /// Returns that of a runtime, if it is simulated.
    pub(crate) fn of(runtime: &Inner) -> Option<&Simulation> {
        (runtime.engine() as &dyn Any).downcast_ref()
    }

    /// Calls `f` with the simulation that this thread drives, if it drives one.
    pub(crate) fn current<R>(f: impl FnOnce(&Simulation) -> R) -> Option<R> {
        context::with(|context| Some(f(Simulation::of(context?.runtime)?)))
    }

    /// Whether this thread is the one that may run what there is (SIM-1).
    pub(super) fn is_here(&self) -> bool {
        std::thread::current().id() == self.thread
    }

    // -- what becomes ready -------------------------------------------------------------------

    /// Takes a runnable; `again`: it was woken in its own run.
    pub(crate) fn push(&self, inner: &Inner, runnable: Runnable, again: bool, runs_on: &RunsOn) {
        let task = runnable.info();
        // (SIM-3) First.
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
}

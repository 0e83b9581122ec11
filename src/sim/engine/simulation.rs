//! `Simulation`: the options of a simulated runtime, the thread that drives it, and its state.

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
    /// The thread that built the runtime.
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

    /// Returns the simulation of a runtime, if it is simulated.
    pub(crate) fn of(runtime: &Inner) -> Option<&Simulation> {
        (runtime.engine() as &dyn Any).downcast_ref()
    }

    /// Calls `f` with the simulation that this thread drives, if it drives one.
    pub(crate) fn current<R>(f: impl FnOnce(&Simulation) -> R) -> Option<R> {
        context::with(|context| Some(f(Simulation::of(context?.runtime)?)))
    }

    /// Returns whether this thread may run tasks of the simulation (SIM-1).
    pub(super) fn is_here(&self) -> bool {
        std::thread::current().id() == self.thread
    }

    // -- what becomes ready -------------------------------------------------------------------

    /// Takes a ready runnable; `again` means that it was woken during its own turn.
    pub(crate) fn push(&self, inner: &Inner, runnable: Runnable, again: bool, runs_on: &RunsOn) {
        let task = runnable.info();
        // (SIM-3) Counted before it is ready.
        inner.inc_activity();
        let own = (self.plan.judged, self.is_here());
        self.state.lock().push(runnable, &task, again, runs_on, own);
        if inner.shutdown.is_settled() {
            self.drain(inner);
        }
    }

    /// Returns when a timer with this deadline fires.
    pub(crate) fn fires_at(&self, deadline: Instant) -> Instant {
        let most = u64::try_from(self.plan.timer_jitter.as_nanos()).unwrap_or(u64::MAX);
        let mut state = self.state.lock();
        state.fires_at(deadline, most)
    }

    /// Writes a line to the trace.
    pub(crate) fn note(&self, text: String) {
        self.state.lock().add(What::Notes(text));
    }

    /// Draws a number from the seed, for the task whose turn it is.
    pub(crate) fn random(&self) -> u64 {
        self.state.lock().origin().draw()
    }

    /// Notes that a task or actor has ended.
    pub(crate) fn completed(&self, task: &TaskInfo) {
        let mut state = self.state.lock();
        let ended = state.forget(task);
        drop(state);
        drop(ended);
    }

    /// Returns how many tasks, actors and jobs are ready.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().ready_tasks()
    }
}

//! `Simulation`: the options of a simulated runtime, the thread that drives it, its state, and the
//! interface to its runtime.

use std::any::Any;
use std::sync::{Arc, Weak};
use std::thread::ThreadId;
use std::time::Duration;

use super::plan::Plan;
use super::script::TurnScript;
use super::state::SimState;
use super::trace::What;
use crate::error::UnhandledFault;
use crate::instant::Instant;
use crate::runtime::deadlock::{Edge, Who};
use crate::runtime::{
    BlockingCall, Deferred, DueEffects, Inner, RunsOn, RuntimeEngine, WaitSource, context,
};
use crate::sync::Mutex;
use crate::task::{MessageEvent, Runnable, TaskInfo};

pub(crate) struct Simulation {
    pub(super) plan: Plan,
    /// The thread that built the runtime.
    thread: ThreadId,
    pub(super) state: Mutex<SimState>,
}

impl Simulation {
    pub(crate) fn new(plan: Plan, script: Option<TurnScript>) -> Self {
        Simulation {
            plan,
            thread: std::thread::current().id(),
            state: Mutex::new(SimState::new(&plan, script)),
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
        if inner.shutdown.is_completed() {
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

impl RuntimeEngine for Simulation {
    fn take(
        &self,
        runtime: &Inner,
        runnable: Runnable,
        again: bool,
        runs_on: &RunsOn,
    ) -> Result<(), Runnable> {
        self.push(runtime, runnable, again, runs_on);
        Ok(())
    }

    fn block_on(
        &self,
        runtime: &Arc<Inner>,
        call: &mut dyn BlockingCall,
    ) -> Result<(), Option<String>> {
        Simulation::block_on(self, runtime, call)
    }

    fn len(&self) -> usize {
        Simulation::len(self)
    }

    fn now(&self) -> Instant {
        self.state.lock().now
    }

    fn fires_at(&self, deadline: Instant) -> Instant {
        Simulation::fires_at(self, deadline)
    }

    fn close(&self, runtime: &Arc<Inner>, grace: Duration) -> bool {
        Simulation::close(self, runtime, grace);
        true
    }

    fn begin_close(&self, runtime: &Arc<Inner>, grace: Duration) -> bool {
        Simulation::begin_close(self, runtime, grace);
        true
    }

    fn completed(&self, task: &TaskInfo) {
        Simulation::completed(self, task);
    }

    fn trace(&self, actor: TaskInfo, event: MessageEvent) {
        Simulation::trace(self, actor, event);
    }

    fn note(&self, text: &str) {
        Simulation::note(self, text.to_owned());
    }

    fn awaits_message(&self) {
        Simulation::awaits_message(self);
    }

    fn awaits_end(&self, of: &TaskInfo) {
        Simulation::awaits_end(self, of);
    }

    fn reply_dropped(&self, key: usize) {
        Simulation::reply_dropped(self, key);
    }

    fn judges(&self, unhandled: &UnhandledFault<'_>) -> bool {
        Simulation::judges(self, unhandled)
    }

    fn judges_end(&self, runtime: &Inner) -> bool {
        Simulation::judges_end(self, runtime)
    }

    fn has_failed(&self) -> bool {
        Simulation::has_failed(self)
    }

    fn reports_waits(&self, source: Weak<dyn WaitSource>) {
        self.state.lock().wait_sources.push(source);
    }

    fn random(&self) -> Option<u64> {
        Some(Simulation::random(self))
    }

    /// Returns the edge from the running task, with its number in this simulation.
    fn edge(&self, _from: Who, asked: TaskInfo) -> Edge {
        Simulation::edge(self, asked)
    }

    fn label_of(&self, actor: &TaskInfo) -> Option<TaskInfo> {
        self.state.lock().known_label(actor)
    }

    fn defers_to(&self, runtime: &Inner, actor: u64) -> bool {
        Simulation::defers_to(self, runtime, actor)
    }

    fn defer(&self, runtime: &Inner, effect: Deferred) {
        match effect {
            Deferred::Message(to, info, deliver) => self.defer_message(runtime, to, info, deliver),
            Deferred::Stop(actor, deliver) => self.defer_close(runtime, actor, deliver),
            Deferred::Act(act) => self.defer_act(runtime, act),
            Deferred::Answer(asker) => self.defer_answer(runtime, asker),
        }
    }

    fn next_effect(&self) -> Option<u32> {
        Simulation::next_effect(self)
    }

    fn has_own(&self) -> bool {
        Simulation::has_own(self)
    }

    fn apply(&self, runtime: &Inner, due: DueEffects<'_>) {
        match due {
            DueEffects::Own => self.apply_own(runtime),
            DueEffects::Elsewhere(actor) => self.apply_elsewhere(runtime, actor),
            DueEffects::ByActor(id) => self.apply_of_actor(runtime, id),
            DueEffects::ByTask(task) => self.apply_of_task(runtime, task),
            DueEffects::ToAnswer(number) => self.apply_to_answer(runtime, number),
            DueEffects::All => self.apply_all(runtime),
        }
    }
}

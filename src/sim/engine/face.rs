//! `Engine` for a simulation: the interface to its runtime.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::simulation::Simulation;
use crate::error::UnhandledFault;
use crate::instant::Instant;
use crate::runtime::deadlock::{Edge, Who};
use crate::runtime::{BlockingCall, Deferred, Done, Engine, Inner, RunsOn, WaitSource};
use crate::task::{MessageEvent, Runnable, TaskInfo};

impl Engine for Simulation {
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

    fn defers_to(&self, runtime: &Inner, actor: u64) -> bool {
        Simulation::defers_to(self, runtime, actor)
    }

    fn defer(&self, runtime: &Inner, effect: Deferred) {
        match effect {
            Deferred::Message(to, info, deliver) => self.defer_message(runtime, to, info, deliver),
            Deferred::Close(actor, deliver) => self.defer_close(runtime, actor, deliver),
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

    fn settle(&self, runtime: &Inner, done: Done<'_>) {
        match done {
            Done::Own => self.settle_own(runtime),
            Done::Elsewhere(actor) => self.settle_elsewhere(runtime, actor),
            Done::ByActor(id) => self.settle_actor(runtime, id),
            Done::ByTask(task) => self.settle_task(runtime, task),
            Done::ToAnswer(number) => self.settle_answer(runtime, number),
            Done::All => self.settle_all(runtime),
        }
    }
}

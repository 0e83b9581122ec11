//! A simulation as its runtime sees it.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::simulation::Simulation;
use crate::error::UnhandledFault;
use crate::instant::Instant;
use crate::runtime::deadlock::Edge;
use crate::runtime::{BlockingCall, Inner, RunsOn, Simulator};
use crate::task::{Delivery, MessageEvent, MessageInfo, Runnable, TaskInfo};

impl Simulator for Simulation {
    fn push(&self, runtime: &Inner, runnable: Runnable, again: bool, runs_on: &RunsOn) {
        Simulation::push(self, runtime, runnable, again, runs_on);
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

    fn fires_at(&self, deadline: Instant) -> Instant {
        Simulation::fires_at(self, deadline)
    }

    fn close(&self, runtime: &Arc<Inner>, grace: Duration) {
        Simulation::close(self, runtime, grace);
    }

    fn begin_close(&self, runtime: &Arc<Inner>, grace: Duration) {
        Simulation::begin_close(self, runtime, grace);
    }

    fn completed(&self, task: &TaskInfo) {
        Simulation::completed(self, task);
    }

    fn trace(&self, actor: TaskInfo, event: MessageEvent) {
        Simulation::trace(self, actor, event);
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

    fn edge(&self, asked: TaskInfo) -> Edge {
        Simulation::edge(self, asked)
    }

    fn defers_to(&self, runtime: &Inner, actor: u64) -> bool {
        Simulation::defers_to(self, runtime, actor)
    }

    fn defer_message(&self, runtime: &Inner, to: TaskInfo, info: MessageInfo, deliver: Delivery) {
        Simulation::defer_message(self, runtime, to, info, deliver);
    }

    fn defer_close(&self, runtime: &Inner, actor: u64, deliver: Delivery) {
        Simulation::defer_close(self, runtime, actor, deliver);
    }

    fn defer_leave(&self, runtime: &Inner, leave: Delivery) {
        Simulation::defer_leave(self, runtime, leave);
    }

    fn defer_answer(&self, runtime: &Inner, asker: Option<Waker>) {
        Simulation::defer_answer(self, runtime, asker);
    }

    fn next_effect(&self) -> Option<u32> {
        Simulation::next_effect(self)
    }

    fn has_own(&self) -> bool {
        Simulation::has_own(self)
    }

    fn settle_own(&self, runtime: &Inner) {
        Simulation::settle_own(self, runtime);
    }

    fn settle_elsewhere(&self, runtime: &Inner, actor: u64) {
        Simulation::settle_elsewhere(self, runtime, actor);
    }

    fn settle_actor(&self, runtime: &Inner, id: u64) {
        Simulation::settle_actor(self, runtime, id);
    }

    fn settle_task(&self, runtime: &Inner, task: &TaskInfo) {
        Simulation::settle_task(self, runtime, task);
    }

    fn settle_answer(&self, runtime: &Inner, number: u32) {
        Simulation::settle_answer(self, runtime, number);
    }

    fn settle_all(&self, runtime: &Inner) {
        Simulation::settle_all(self, runtime);
    }
}

//! The shutdown of a simulated runtime, with the same guarantees as on real threads.

use std::sync::Arc;
use std::time::Duration;

use super::entry::ReadyEntry;
use super::problem::RunProblem;
use super::simulation::Simulation;
use super::state::{Closing, SimState};
use super::step::StepOutcome;
use super::watch::Watching;
use crate::contain::{contain, keep};
use crate::instant;
use crate::runtime::context::{Role, ThreadContext};
use crate::runtime::deadlock::Who;
use crate::runtime::{Inner, RunsOn};
use crate::task::{Runnable, TaskKey};

impl Simulation {
    /// Shuts down; on a thread other than its own, without running anything.
    pub(crate) fn close(&self, inner: &Arc<Inner>, grace: Duration) {
        let context = ThreadContext::new(inner, Role::Closing);
        let _entered = context.enter();
        self.begin_close(inner, grace);
        if !self.is_here() {
            return self.finish(inner);
        }
        // A shutdown within a run has the steps of that run. After it, it has steps of its own.
        let mut state = self.state.lock();
        let outer = instant::simulate(Some(state.now));
        let is_outermost = state.frames.is_empty();
        if is_outermost {
            state.last_step = state.step.saturating_add(self.plan.steps);
        }
        drop(state);
        let _watching = is_outermost.then(|| Watching::begin(inner));
        self.run_until_closed(inner);
        instant::simulate(outer);
    }

    fn run_until_closed(&self, inner: &Arc<Inner>) {
        // Each task that awaits the report gets one turn with it.
        while inner.shutdown.report().is_none() || !inner.shutdown.exempted().is_empty() {
            match self.step(inner, false) {
                StepOutcome::Done => {}
                StepOutcome::TooMany if self.plan.judged => {
                    self.fail_waiting(inner, self.too_many(inner));
                }
                _ => break,
            }
        }
        self.finish(inner);
    }

    /// Asks all actors to stop; the loop that drives the simulation does the rest.
    pub(crate) fn begin_close(&self, inner: &Arc<Inner>, grace: Duration) {
        if !inner.shutdown.begin() {
            return;
        }
        // From now on no turn is split, and what was deferred happens before the verdict.
        self.state.lock().has_closed = true;
        self.apply_all(inner);
        self.judge_rest(inner);
        let mut state = self.state.lock();
        let (before, last_before) = (state.ready_tasks(), state.pushed);
        let deadline = state.now.checked_add(grace);
        let running = std::mem::replace(&mut state.running, Who::Other("the shutdown"));
        drop(state);
        let alive = inner.ask_to_stop();
        let mut state = self.state.lock();
        state.running = running;
        state.closing = Some(Closing {
            alive,
            deadline,
            last_before,
            before,
        });
        drop(state);
        if !self.is_here() {
            self.finish(inner);
        }
    }

    /// Fails a judged run if something waits and nothing is ready: it would wait forever without
    /// the shutdown.
    fn judge_rest(&self, inner: &Inner) {
        if self.len() == 0 && inner.timers.is_empty() {
            self.judges_end(inner);
        }
    }

    /// Ends the wait for actors, if it is over.
    pub(super) fn see_to_closing(&self, inner: &Arc<Inner>) {
        let state = self.state.lock();
        let Some(closing) = &state.closing else {
            return;
        };
        let deadline = closing.deadline;
        let is_late = deadline.is_some_and(|deadline| state.now >= deadline);
        let had_runs = closing.before == 0;
        drop(state);
        if had_runs && (is_late || !self.has_actors(inner)) {
            self.end_closing(inner);
        }
    }

    fn has_actors(&self, inner: &Inner) -> bool {
        inner.cells() > inner.shutdown.exempt_cells()
    }

    /// Stops waiting for actors; in a judged run, remaining actors are a failure.
    pub(super) fn end_closing(&self, inner: &Arc<Inner>) {
        if self.plan.judged && self.has_actors(inner) {
            let waits = self.who_waits(inner).map(RunProblem::Deadlock);
            let problem = waits.unwrap_or_else(|| RunProblem::Cancelled(self.actors_left()));
            self.fail_waiting(inner, problem);
        }
        self.finish(inner);
    }

    /// Cancels all that is left, and sets the report.
    fn finish(&self, inner: &Arc<Inner>) {
        let mut state = self.state.lock();
        let Some(closing) = state.closing.take() else {
            return;
        };
        let running = std::mem::replace(&mut state.running, Who::Other("the shutdown"));
        drop(state);
        // In the order of the phases: nothing runs any more, everything is dropped, then the report.
        inner.shutdown.finish();
        inner.declared.end();
        inner.hosts.finish();
        self.cancel_all(inner);
        inner.shutdown.complete();
        self.drain(inner);
        let (mut held, exempt) = (Vec::new(), inner.shutdown.exempted());
        inner.describe_cells(&exempt, |actor, _| held.push(actor));
        inner.trace_end();
        inner.set_report(closing.alive, (inner.cells(), held), 0);
        self.let_hosts_go(inner);
        self.state.lock().running = running;
    }

    /// Drops the pinned threads, which hold the runtime, when nothing can live there any longer.
    fn let_hosts_go(&self, inner: &Inner) {
        if !self.is_here() {
            // (SIM-1) Their futures and values must not be dropped on this thread, so they leak.
            keep(inner.hosts.take());
        } else if inner.shutdown.exempted().is_empty() {
            drop(inner.hosts.take());
        }
    }

    /// Notes that a task that awaited the shutdown has had its turn with the report and is dropped.
    pub(super) fn had_its_turn(&self, inner: &Arc<Inner>, key: TaskKey) {
        inner.had_its_turn(key);
        self.cancel_all(inner);
        self.let_hosts_go(inner);
    }

    /// Drops all but exempt tasks. On a foreign thread, futures that are bound to the thread are
    /// left.
    fn cancel_all(&self, inner: &Inner) {
        let mut left = usize::MAX;
        loop {
            // A drop may wake or cancel others, so this goes on while fewer are left each time.
            self.drain(inner);
            let spare = inner.shutdown.exempted();
            inner.live.cancel_cells(&spare);
            inner.live.wake_tasks(&spare);
            let bound = match self.is_here() {
                true => inner.hosts.clear_simulated(&spare),
                false => 0,
            };
            self.drain(inner);
            let still = inner.live.others(&spare) + bound;
            if still == 0 || still >= left {
                return;
            }
            left = still;
        }
    }

    /// Drops ready runnables that will never run.
    ///
    /// Only one loop at a time does so. A chain of tasks that hold each other is therefore dropped
    /// without recursion.
    pub(super) fn drain(&self, inner: &Inner) {
        while inner.shutdown.begin_drain() {
            let unneeded = self.state.lock().take_unneeded(&inner.shutdown.exempted());
            let is_empty = unneeded.is_empty();
            for (runnable, runs_on) in unneeded {
                let who = self.state.lock().label(runnable.info());
                self.as_who(Some(Who::Task(who)), || self.discard(runnable, &runs_on));
                // (SIM-3) The runnable was counted.
                inner.dec_activity();
            }
            inner.shutdown.end_drain();
            if is_empty {
                return;
            }
        }
    }

    fn discard(&self, runnable: Runnable, runs_on: &RunsOn) {
        match runs_on {
            RunsOn::Host(host) if self.is_here() => host.clone().drop_simulated(runnable),
            // (SIM-1) It must not be dropped on this thread.
            RunsOn::Host(_) => keep(runnable),
            RunsOn::Workers => contain(|| drop(runnable)),
            RunsOn::Blocking => {
                let job = runnable.info();
                contain(|| drop(runnable));
                self.completed(&job);
            }
        }
    }

    /// Returns the actors that have not ended, in the order in which they were spawned.
    fn actors_left(&self) -> Vec<String> {
        let state = self.state.lock();
        let labels = state.tasks.values().map(|tracked| &tracked.label);
        let mut actors: Vec<_> = labels.filter(|label| label.is_actor()).collect();
        actors.sort_unstable_by_key(|label| label.id());
        actors.into_iter().map(ToString::to_string).collect()
    }
}

impl SimState {
    /// Counts the ready runnables. Frames are not counted: one may have ended and still be queued.
    pub(super) fn ready_tasks(&self) -> usize {
        self.ready
            .count(|entry| !matches!(entry, ReadyEntry::Frame(_) | ReadyEntry::Effect(_)))
    }

    /// Counts a runnable that gets its turn, if it was queued before the shutdown.
    pub(super) fn count_out(&mut self, age: u64) {
        if let Some(closing) = &mut self.closing
            && age <= closing.last_before
        {
            closing.before = closing.before.saturating_sub(1);
        }
    }

    fn take_unneeded(&mut self, exempt: &[TaskKey]) -> Vec<(Runnable, RunsOn)> {
        let (mut unneeded, mut kept) = (Vec::new(), Vec::new());
        for entry in self.ready.take_all() {
            let (due, host) = match entry {
                ReadyEntry::Task(due) => (due, None),
                ReadyEntry::Host(key) => (self.take_first(key), Some(key)),
                ReadyEntry::Frame(_) | ReadyEntry::Effect(_) => {
                    let rank = self.ready.rank();
                    self.ready.push(entry, rank);
                    continue;
                }
            };
            if !exempt.contains(&due.runnable.key()) {
                self.count_out(due.age);
                let tracked = self.tasks.get(&due.identity);
                let runs_on = tracked.map_or(RunsOn::Workers, |tracked| tracked.runs_on.clone());
                unneeded.push((due.runnable, runs_on));
                continue;
            }
            let rank = self.ready.rank();
            match host {
                None => self.ready.push(ReadyEntry::Task(due), rank),
                Some(key) => kept.push((due, key)),
            }
        }
        // Not earlier: `take_first` took the other runnables from the same queues.
        for (due, key) in kept {
            let rank = self.ready.rank();
            self.hosts.entry(key).or_default().push_back(due);
            self.ready.push(ReadyEntry::Host(key), rank);
        }
        unneeded
    }
}

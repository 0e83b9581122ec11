//! One step of a simulation: a ready entry runs, or time passes.

use std::sync::Arc;

use super::simulation::Simulation;
use super::state::NextStep;
use crate::contain::{contain, counted};
use crate::instant;
use crate::runtime::context::{Role, ThreadContext};
use crate::runtime::deadlock::Who;
use crate::runtime::{Inner, RunsOn, key_of};
use crate::scheduler::WorkerLocal;
use crate::task::Runnable;

/// The outcome of a step.
pub(super) enum StepOutcome {
    /// An entry has run, or time has passed.
    Done,
    /// Nothing is ready and no deadline is left.
    Rest,
    /// The run has taken too many steps.
    TooMany,
    /// A judged run has failed.
    Failed,
}

impl Simulation {
    /// Runs one step; with `is_late`, also after the run has failed.
    pub(super) fn step(&self, inner: &Arc<Inner>, is_late: bool) -> StepOutcome {
        self.see_to_closing(inner);
        let mut state = self.state.lock();
        if state.failure.is_some() && !is_late {
            return StepOutcome::Failed;
        }
        if state.step >= state.last_step {
            return StepOutcome::TooMany;
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
            Some(NextStep::Frame(id, call)) => {
                drop(state);
                self.poll(inner, id, call);
                StepOutcome::Done
            }
            Some(NextStep::Task(runnable, runs_on)) => {
                drop(state);
                // Counted, since the thread is the program's.
                counted(|| self.run(inner, runnable, &runs_on));
                StepOutcome::Done
            }
            Some(NextStep::Effect(runner)) => {
                drop(state);
                self.arrive(inner, runner);
                StepOutcome::Done
            }
            None => {
                let is_closing = state.closing.is_some();
                let deadline = state.closing.as_ref().and_then(|closing| closing.deadline);
                if let Some(next) = inner.timers.next().into_iter().chain(deadline).min() {
                    state.now = next.max(now);
                    return StepOutcome::Done;
                }
                drop(state);
                if !is_closing {
                    return StepOutcome::Rest;
                }
                // No actor that is left can end any more.
                self.end_closing(inner);
                StepOutcome::Done
            }
        }
    }

    /// Makes the pending effects of a pinned thread's last turn happen before its next turn.
    fn apply_last(&self, inner: &Inner, host: usize) {
        let mut state = self.state.lock();
        let runner = state.turn.map(|turn| turn.runner);
        let last = runner.and_then(|runner| state.last_turns.insert(host, runner));
        drop(state);
        if let Some(last) = last {
            self.apply_turn(inner, last, |_| true);
        }
    }

    /// Runs a runnable in the context of its worker, host or job.
    fn run(&self, inner: &Arc<Inner>, runnable: Runnable, runs_on: &RunsOn) {
        let key = runnable.key();
        let job = match runs_on {
            RunsOn::Blocking => Some(runnable.info()),
            _ => None,
        };
        match runs_on {
            RunsOn::Host(host) => {
                self.apply_last(inner, key_of(host));
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
                // A job has no pending effects: its caller learns of its end in another way.
                self.state.lock().turn = None;
                let context = ThreadContext::new(inner, Role::Blocking);
                let _entered = context.enter();
                contain(|| runnable.run());
            }
        }
        job.inspect(|job| self.completed(job));
        self.state.lock().rests();
        // (SIM-3) The runnable was counted.
        inner.dec_activity();
        if inner.shutdown.is_completed() {
            self.had_its_turn(inner, key);
        }
    }
}

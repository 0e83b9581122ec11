//! The verdict on a run: its length, its failure, and the waits of a run that hangs.

use super::problem::{Failed, Lines, Problem, Ran};
use super::simulation::Simulation;
use super::state::State;
use crate::error::UnhandledFault;
use crate::instant::Instant;
use crate::runtime::Inner;
use crate::runtime::deadlock::{self, Edge};
use crate::task::TaskInfo;

impl Simulation {
    /// Returns how far the run has come.
    pub(crate) fn ran(&self) -> Ran {
        self.state.lock().ran()
    }

    /// Returns the failure of a judged run, if any. Later events are not judged.
    pub(crate) fn judge(&self) -> Option<Failed> {
        let mut state = self.state.lock();
        state.is_over = true;
        state.failure.clone()
    }

    /// Fails a judged run; only the first problem is kept.
    pub(crate) fn fail(&self, problem: Problem) {
        let mut state = self.state.lock();
        if state.failure.is_none() {
            state.failure = Some(Failed {
                problem,
                run: state.ran(),
                trace: state.trace.text(),
                waits: Lines::default(),
                script: state.record.clone(),
            });
        }
    }

    /// Fails a run that hangs, and keeps what each task waits for.
    pub(super) fn fail_waiting(&self, inner: &Inner, problem: Problem) {
        let lines = self.lines(inner);
        self.fail(problem);
        let mut state = self.state.lock();
        if let Some(failure) = &mut state.failure
            && failure.waits.is_empty()
        {
            failure.waits = lines;
        }
    }

    /// Fails a judged run for a panic that is not joined. Returns whether the panic is thereby
    /// handled.
    pub(crate) fn judges(&self, unhandled: &UnhandledFault<'_>) -> bool {
        let state = self.state.lock();
        if !self.plan.judged || state.is_over {
            return false;
        }
        let actor = unhandled.id.and_then(|id| state.actors.get(&id));
        let who = actor.map_or_else(|| "a task".to_owned(), TaskInfo::to_string);
        drop(state);
        let (part, fault) = (unhandled.part(), unhandled.fault);
        self.fail(Problem::Panicked(format!("{part}{who} {fault}")));
        true
    }

    /// Judges a run in which nothing is left to run: an ask or send that waits is a deadlock, and so
    /// is a cycle of waits for ends.
    /// Returns whether that has failed the run.
    pub(crate) fn judges_end(&self, inner: &Inner) -> bool {
        let waits = self.plan.judged.then(|| self.who_waits(inner)).flatten();
        waits
            .map(|waits| self.fail_waiting(inner, Problem::Deadlock(waits)))
            .is_some()
    }

    /// Returns which task waits for which by asks, sends and waits for ends, a cycle if there is
    /// one.
    pub(super) fn who_waits(&self, inner: &Inner) -> Option<String> {
        let asks = inner.asks.waiting();
        let sends = self.state.lock().waiting_sends();
        let ends = inner.waits.for_ends();
        let edges = asks.iter().map(|ask| ask.edge()).chain(&sends);
        let edges: Vec<&Edge> = edges.chain(&ends).collect();
        let named = deadlock::name_all(&edges);
        let found = named.iter().find(|waits| waits.is_cycle());
        // A wait for an end alone is no deadlock.
        let first = named.first().filter(|_| edges.len() > ends.len());
        found.or(first).map(ToString::to_string)
    }

    /// Returns the problem of a run that has taken too many steps.
    pub(super) fn too_many(&self, inner: &Inner) -> Problem {
        Problem::Steps {
            most: self.plan.steps,
            waits: self.who_waits(inner),
        }
    }

    /// Returns the text for a run in which nothing is ready and no deadline is left.
    pub(super) fn rest_text(&self, inner: &Inner) -> String {
        self.who_waits(inner).unwrap_or_else(|| {
            let state = self.state.lock();
            let who = state
                .frames
                .last()
                .map_or(&state.running, |frame| &frame.who);
            let mut beneath = state.frames.iter().rev().skip(1);
            let beneath = match beneath.find(|frame| frame.is_done()) {
                Some(done) => format!(
                    "; {} could return, but an inner `block_on` is above it on the stack",
                    done.who
                ),
                None => String::new(),
            };
            let what = match state.awaited_end() {
                Some(of) => format!(" for the end of {of}"),
                None => String::new(),
            };
            format!("{who} waits{what}, and nothing is left that could wake it{beneath}")
        })
    }

    /// Returns the edge of an ask by the running task, with the numbers of this simulation.
    pub(crate) fn edge(&self, asked: TaskInfo) -> Edge {
        let mut state = self.state.lock();
        let from = state.running.clone();
        let to = state.label(asked);
        let question = Some(state.messages_born + 1);
        Edge {
            question,
            ..Edge::of_ask(from, to)
        }
    }
}

impl State {
    pub(super) fn ran(&self) -> Ran {
        Ran {
            steps: self.step,
            time: self.now.duration_since(Instant::ZERO),
            fingerprint: self.trace.fingerprint(),
        }
    }
}

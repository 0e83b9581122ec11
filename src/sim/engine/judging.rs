//! The verdict on a run: its length, its failure, and what each task of a run that hangs waits for.
//!
//! A pending future of greenroom notes here what it waits for, until its task has another turn.
//! Asks and sends are tracked elsewhere. The holder of a reply is known when the failed run is
//! dropped, because the reply is dropped then.

use std::sync::Weak;

use super::entry::{Runner, identity};
use super::problem::{Failed, Run, RunProblem};
use super::simulation::Simulation;
use super::state::SimState;
use crate::error::UnhandledFault;
use crate::instant::Instant;
use crate::runtime::Inner;
use crate::runtime::deadlock::{self, Edge, Who};
use crate::task::TaskInfo;

impl Simulation {
    /// Returns how far the run has come.
    pub(crate) fn ran(&self) -> Run<()> {
        self.state.lock().ran()
    }

    /// Returns the failure of a judged run, if any. Later events are not judged.
    pub(crate) fn judge(&self) -> Option<Failed> {
        let mut state = self.state.lock();
        state.is_over = true;
        state.failure.clone()
    }

    /// Fails a judged run; only the first problem is kept.
    pub(crate) fn fail(&self, problem: RunProblem) {
        let mut state = self.state.lock();
        if state.failure.is_none() {
            state.failure = Some(Failed {
                problem,
                run: state.ran(),
                trace: state.trace.text(),
                waits: Vec::new(),
                script: state.record.clone(),
            });
        }
    }

    /// Fails a run that hangs, and keeps what each task waits for.
    pub(super) fn fail_waiting(&self, inner: &Inner, problem: RunProblem) {
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
        self.fail(RunProblem::Panicked(format!("{part}{who} {fault}")));
        true
    }

    /// Judges a run in which nothing is left to run: an ask or send that waits is a deadlock, and so
    /// is a cycle of waits for ends.
    /// Returns whether that has failed the run.
    pub(crate) fn judges_end(&self, inner: &Inner) -> bool {
        let waits = self.plan.judged.then(|| self.who_waits(inner)).flatten();
        waits
            .map(|waits| self.fail_waiting(inner, RunProblem::Deadlock(waits)))
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
    pub(super) fn too_many(&self, inner: &Inner) -> RunProblem {
        RunProblem::Steps {
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
            // A `block_on` returns after those above it, so one beneath may be done already.
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

impl SimState {
    pub(super) fn ran(&self) -> Run<()> {
        Run {
            value: (),
            steps: self.step,
            time: self.now.duration_since(Instant::ZERO),
            fingerprint: self.trace.fingerprint(),
        }
    }
}

/// The maximum number of lines: as many as a screen shows beside the trace.
const LINES: usize = 20;

impl Simulation {
    /// Notes that the running turn waits for a message.
    pub(crate) fn awaits_message(&self) {
        self.awaits(|_| None);
    }

    /// Notes that the running turn waits for the end of a task or actor.
    pub(crate) fn awaits_end(&self, of: &TaskInfo) {
        self.awaits(|state| Some(Who::Task(state.label_of(of))));
    }

    fn awaits(&self, of: impl FnOnce(&mut SimState) -> Option<Who>) {
        if !self.plan.judged || !self.is_here() {
            return;
        }
        let mut state = self.state.lock();
        let Some(turn) = state.turn else { return };
        let of = of(&mut state);
        let waits = state.waits.entry(turn.runner).or_default();
        let number = of.as_ref().map(Who::number);
        let is_known = |known: &Option<Who>| known.as_ref().map(Who::number) == number;
        if !waits.iter().any(is_known) {
            waits.push(of);
        }
    }

    /// Returns whether the run has failed and is being dropped.
    pub(crate) fn has_failed(&self) -> bool {
        self.state.lock().failure.is_some()
    }

    /// Notes which task drops the reply of an ask; in a failed run that task was its holder.
    pub(crate) fn reply_dropped(&self, key: usize) {
        let mut state = self.state.lock();
        let holder = state.running.clone();
        if let Some(failure) = &mut state.failure {
            failure.add_holder(key, &holder);
        }
    }

    /// Returns a line for each wait, as in [`Failed::waits`].
    pub(super) fn lines(&self, inner: &Inner) -> Vec<(String, Option<usize>)> {
        // The sources take locks of their own, so they are asked without the lock of the state.
        let asks = inner.asks.waiting();
        let sources = self.state.lock().wait_sources.clone();
        let sources = sources.iter().filter_map(Weak::upgrade);
        let others: Vec<String> = sources.flat_map(|source| source.lines()).collect();
        let state = self.state.lock();
        let mut lines = Vec::new();
        for ask in &asks {
            let Edge {
                from, to, question, ..
            } = ask.edge();
            let mut line = format!("{from} waits for the answer of {to}");
            let is_unread = state.has_unread(to, *question);
            if is_unread {
                line.push_str(", which has not read the question");
            }
            lines.push((line, (!is_unread).then(|| ask.key())));
        }
        lines.extend(others.into_iter().map(|line| (line, None)));
        for Edge { from, to, .. } in state.waiting_sends() {
            let line = format!("{from} waits for room in the mailbox of {to}, which does not read");
            lines.push((line, None));
        }
        for (runner, waits) in &state.waits {
            let Some(who) = state.who(*runner) else {
                continue;
            };
            lines.extend(waits.iter().map(|of| match of {
                Some(of) => (format!("{who} waits for the end of {of}"), None),
                None => (format!("{who} waits for a message"), None),
            }));
        }
        let more = lines.len().saturating_sub(LINES);
        if more > 0 {
            lines.truncate(LINES);
            lines.push((format!("and {more} more wait"), None));
        }
        lines
    }
}

impl SimState {
    /// Returns the task or actor whose end the innermost frame waits for, if it waits for one.
    pub(super) fn awaited_end(&self) -> Option<&Who> {
        let frame = self.frames.last()?;
        let waits = self.waits.get(&Runner::Frame(frame.id))?;
        waits.iter().flatten().next()
    }

    /// Returns whether an actor has not read this message.
    fn has_unread(&self, to: &TaskInfo, number: Option<u64>) -> bool {
        // An actor may have two mirrors, of which each has other messages.
        let mut of_actor = (self.mirrors.values()).filter(|mirror| mirror.to.id() == to.id());
        number.is_some_and(|number| of_actor.any(|mirror| mirror.has(number)))
    }

    /// Returns the label of a task or actor that may have ended.
    fn label_of(&mut self, task: &TaskInfo) -> TaskInfo {
        if task.is_actor() {
            return self.label(task.clone());
        }
        let tracked = self.tasks.get(&identity(task));
        tracked.map_or_else(|| task.clone(), |tracked| tracked.label.clone())
    }
}

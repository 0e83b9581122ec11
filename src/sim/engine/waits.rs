//! Reports which task waits for what when a run hangs.
//!
//! A pending future of greenroom notes here what it waits for, until its task has another turn.
//! Asks and sends are tracked elsewhere. The holder of a reply is known when the failed run is
//! dropped, because the reply is dropped then.

use std::sync::Weak;

use super::entry::{Runner, identity};
use super::problem::Lines;
use super::simulation::Simulation;
use super::state::{Awaited, PendingWait, State};
use crate::runtime::Inner;
use crate::runtime::deadlock::{Edge, Who};
use crate::task::TaskInfo;

/// The maximum number of lines: as many as a screen shows beside the trace.
const LINES: usize = 20;

impl Simulation {
    /// Notes that the running turn waits for a message.
    pub(crate) fn awaits_message(&self) {
        self.awaits(Awaited::Message, |_| None);
    }

    /// Notes that the running turn waits for the end of a task or actor.
    pub(crate) fn awaits_end(&self, of: &TaskInfo) {
        self.awaits(Awaited::End, |state| Some(Who::Task(state.label_of(of))));
    }

    fn awaits(&self, what: Awaited, of: impl FnOnce(&mut State) -> Option<Who>) {
        if !self.plan.judged || !self.is_here() {
            return;
        }
        let mut state = self.state.lock();
        let Some(turn) = state.turn else { return };
        let of = of(&mut state);
        let waits = state.waits.entry(turn.runner).or_default();
        let number = of.as_ref().map(Who::number);
        let is_known = |known: &PendingWait| {
            known.what == what && known.of.as_ref().map(Who::number) == number
        };
        if !waits.iter().any(is_known) {
            waits.push(PendingWait { what, of });
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
            failure.waits.held(key, &holder);
        }
    }

    /// Returns a line for each wait.
    pub(super) fn lines(&self, inner: &Inner) -> Lines {
        let asks = inner.asks.waiting();
        let sources = self.state.lock().wait_sources.clone();
        let sources = sources.iter().filter_map(Weak::upgrade);
        let others: Vec<String> = sources.flat_map(|source| source.lines()).collect();
        let state = self.state.lock();
        let mut lines = Lines::default();
        for ask in &asks {
            let Edge {
                from, to, question, ..
            } = ask.edge();
            let mut line = format!("{from} waits for the answer of {to}");
            match state.has_unread(to, *question) {
                true => line.push_str(", which has not read the question"),
                false => lines.asks.push((ask.key(), lines.lines.len())),
            }
            lines.lines.push(line);
        }
        lines.lines.extend(others);
        for Edge { from, to, .. } in state.waiting_sends() {
            let line = format!("{from} waits for room in the mailbox of {to}, which does not read");
            lines.lines.push(line);
        }
        for (runner, waits) in &state.waits {
            let Some(who) = state.who(*runner) else {
                continue;
            };
            for PendingWait { what, of } in waits {
                match (what, of) {
                    (Awaited::End, Some(of)) => {
                        lines.lines.push(format!("{who} waits for the end of {of}"));
                    }
                    _ => lines.lines.push(format!("{who} waits for a message")),
                }
            }
        }
        let more = lines.lines.len().saturating_sub(LINES);
        if more > 0 {
            lines.lines.truncate(LINES);
            lines.lines.push(format!("and {more} more wait"));
            lines.asks.retain(|(_, line)| *line < LINES);
        }
        lines
    }
}

impl State {
    /// Returns the task or actor whose end the innermost frame waits for, if it waits for one.
    pub(super) fn awaited_end(&self) -> Option<&Who> {
        let frame = self.frames.last()?;
        let waits = self.waits.get(&Runner::Frame(frame.id))?;
        waits.iter().find_map(|waits| waits.of.as_ref())
    }

    /// Returns whether an actor has not read this message.
    fn has_unread(&self, to: &TaskInfo, number: Option<u64>) -> bool {
        let mut lanes = self.lanes.values();
        lanes
            .find(|lane| lane.to.id() == to.id())
            .zip(number)
            .is_some_and(|(lane, number)| lane.has(number))
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

//! What becomes of a run: how far it came, whether it has failed, and who waited for whom.

use std::fmt;
use std::time::Duration;

use super::Simulation;
use super::script::Script;
use super::state::State;
use super::waits::Lines;
use crate::error::UnhandledFault;
use crate::instant::Instant;
use crate::runtime::Inner;
use crate::runtime::deadlock::{self, Edge};
use crate::task::TaskInfo;

/// Why a simulated run has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// An actor, a task or a source panicked, and no join received it: which one, and the text.
    Panicked(String),
    /// Nothing was ready and no timer armed, but somebody waited: who waits for whom.
    Deadlock(String),
    /// These actors had to be cancelled by the shutdown that follows a run.
    Cancelled(Vec<String>),
    /// It did something else than another run with the same seed. See [what it needs](crate::sim#what-it-needs).
    NotDeterministic,
    /// It has taken too many steps, and is not over.
    Steps {
        /// As many as it may take.
        most: u64,
        /// Who waits for whom, by an ask or a send, though something goes on beside them.
        waits: Option<String>,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Panicked(text) => f.write_str(text),
            Problem::Deadlock(who) => write!(f, "deadlock: {who}"),
            Problem::Cancelled(actors) => {
                write!(f, "the shutdown had to cancel {}", actors.join(", "))
            }
            Problem::NotDeterministic => f.write_str(
                "the program is not deterministic: with the same seed it did something else the second time. \
                 Iteration of a HashMap is the usual cause; `sim::random` draws numbers from the seed",
            ),
            Problem::Steps { most, waits } => {
                write!(f, "not over after {most} steps")?;
                match waits {
                    Some(waits) => write!(f, ", and these wait: {waits}"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// How and when a judged run has failed.
#[derive(Clone)]
pub(crate) struct Failed {
    pub(crate) problem: Problem,
    pub(crate) run: Ran,
    pub(crate) trace: String,
    /// Who waits for what, a line each.
    pub(crate) waits: Lines,
    pub(crate) script: Script,
}

/// How far a run has come.
#[derive(Clone, Copy)]
pub(crate) struct Ran {
    pub(crate) steps: u64,
    pub(crate) time: Duration,
    pub(crate) fingerprint: u64,
}

impl Simulation {
    /// How far it has come.
    pub(crate) fn ran(&self) -> Ran {
        self.state.lock().ran()
    }

    /// How a judged run has failed, if it has. What happens from now on is not judged.
    pub(crate) fn judge(&self) -> Option<Failed> {
        let mut state = self.state.lock();
        state.is_over = true;
        state.failure.clone()
    }

    /// Has a judged run end; the first problem counts.
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

    /// The same of a run that hangs: with what everybody waits for.
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

    /// Takes a panic that no join receives for the failure of the run; says whether that is all that is to be
    /// done.
    pub(crate) fn judges(&self, unhandled: &UnhandledFault<'_>) -> bool {
        let state = self.state.lock();
        if !self.plan.judged || state.is_over {
            return false;
        }
        let actor = unhandled.id.and_then(|id| state.actors.get(&id));
        let who = actor.map_or_else(|| "a task".to_owned(), TaskInfo::to_string);
        drop(state);
        let part = if unhandled.is_source {
            "a source of "
        } else {
            ""
        };
        self.fail(Problem::Panicked(format!(
            "{part}{who} {}",
            unhandled.fault
        )));
        true
    }

    /// Nothing is left to run. In a judged run that somebody waits then is a failure; says whether that
    /// has ended the run.
    pub(crate) fn judges_end(&self, inner: &Inner) -> bool {
        let waits = self.plan.judged.then(|| self.who_waits(inner)).flatten();
        waits
            .map(|waits| self.fail_waiting(inner, Problem::Deadlock(waits)))
            .is_some()
    }

    /// Who waits for whom, by the asks and the sends: a cycle, if there is one.
    pub(super) fn who_waits(&self, inner: &Inner) -> Option<String> {
        let asks = inner.asks.waiting();
        let sends = self.state.lock().waiting_sends();
        let edges: Vec<&Edge> = asks.iter().map(|ask| ask.edge()).chain(&sends).collect();
        let named = deadlock::name_all(&edges);
        let found = named.iter().find(|waits| waits.is_cycle());
        found.or(named.first()).map(ToString::to_string)
    }

    /// It has taken as many steps as it may.
    pub(super) fn too_many(&self, inner: &Inner) -> Problem {
        Problem::Steps {
            most: self.plan.steps,
            waits: self.who_waits(inner),
        }
    }

    /// What to say when nothing is ready and no deadline is left.
    pub(super) fn rest_text(&self, inner: &Inner) -> String {
        self.who_waits(inner).unwrap_or_else(|| {
            let state = self.state.lock();
            let who = state
                .frames
                .last()
                .map_or(&state.running, |frame| &frame.who);
            let mut beneath = state.frames.iter().rev().skip(1);
            let beneath = match beneath.find(|frame| frame.is_done()) {
                Some(done) => format!("; {} could go on, but waits beneath it", done.who),
                None => String::new(),
            };
            let what = match state.awaited_end() {
                Some(of) => format!(" for the end of {of}"),
                None => String::new(),
            };
            format!("{who} waits{what}, and nothing is left that could wake it{beneath}")
        })
    }

    /// The ask of whoever runs, under the numbers of this simulation.
    pub(crate) fn edge(&self, asked: TaskInfo) -> Edge {
        let mut state = self.state.lock();
        let from = state.running.clone();
        let to = state.label(asked);
        let question = Some(state.messages_born + 1);
        Edge { from, to, question }
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

//! What becomes of a simulated run: its value and its length, or the reason why it has failed.

use std::fmt;
use std::time::Duration;

use super::script::TurnScript;
use crate::runtime::deadlock::Who;

/// The reason why a simulated run has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunProblem {
    /// An actor, a task or a source panicked and was not joined: its name, and the text of the
    /// panic.
    Panicked(String),
    /// Nothing was ready and no timer was armed, but a task waited: which waits for which.
    Deadlock(String),
    /// The shutdown that follows a run had to cancel these actors.
    Cancelled(Vec<String>),
    /// The run did something else than another run with the same seed. See [what it
    /// needs](crate::sim#what-it-needs).
    NotDeterministic,
    /// The run has taken too many steps and is not over.
    Steps {
        /// The maximum number of steps.
        most: u64,
        /// The asks and sends that wait while other tasks run.
        waits: Option<String>,
    },
}

impl fmt::Display for RunProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunProblem::Panicked(text) => f.write_str(text),
            RunProblem::Deadlock(who) => write!(f, "deadlock: {who}"),
            RunProblem::Cancelled(actors) => {
                write!(f, "the shutdown had to cancel {}", actors.join(", "))
            }
            RunProblem::NotDeterministic => f.write_str(
                "the program is not deterministic: with the same seed it did something else the \
                 second time. Iteration of a HashMap is the usual cause; `sim::random` draws \
                 numbers from the seed",
            ),
            RunProblem::Steps { most, waits } => {
                write!(f, "the run did not end within {most} steps")?;
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
    pub(crate) problem: RunProblem,
    pub(crate) run: Run<()>,
    pub(crate) trace: String,
    /// What each task waits for, a line each. That of an ask has its key in the list of asks, until
    /// the holder of the reply is known.
    pub(crate) waits: Vec<(String, Option<usize>)>,
    pub(crate) script: TurnScript,
}

impl Failed {
    /// Adds the holder of the reply to the line of this ask.
    pub(super) fn add_holder(&mut self, key: usize, holder: &Who) {
        let mut lines = self.waits.iter_mut();
        if let Some((line, ask)) = lines.find(|(_, ask)| *ask == Some(key)) {
            line.push_str(&format!("; {holder} holds the reply"));
            *ask = None;
        }
    }
}

/// A run that succeeded.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Run<T> {
    /// The output of the future.
    pub value: T,
    /// The number of turns of tasks, polls of the future, and effects of split turns.
    pub steps: u64,
    /// The virtual time that passed.
    pub time: Duration,
    /// A hash of everything that happened: the same for the same program and seed, on any machine.
    /// It may differ between versions of greenroom.
    pub fingerprint: u64,
}

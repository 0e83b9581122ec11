//! The reasons for which a simulated run fails.

use std::fmt;
use std::time::Duration;

use super::script::TurnScript;
use crate::runtime::deadlock::Who;

/// The reason why a simulated run has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
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

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Panicked(text) => f.write_str(text),
            Problem::Deadlock(who) => write!(f, "deadlock: {who}"),
            Problem::Cancelled(actors) => {
                write!(f, "the shutdown had to cancel {}", actors.join(", "))
            }
            Problem::NotDeterministic => f.write_str(
                "the program is not deterministic: with the same seed it did something else the \
                 second time. Iteration of a HashMap is the usual cause; `sim::random` draws \
                 numbers from the seed",
            ),
            Problem::Steps { most, waits } => {
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
    pub(crate) problem: Problem,
    pub(crate) run: Ran,
    pub(crate) trace: String,
    /// What each task waits for, a line each.
    pub(crate) waits: Lines,
    pub(crate) script: TurnScript,
}

/// How far a run has come.
#[derive(Clone, Copy)]
pub(crate) struct Ran {
    pub(crate) steps: u64,
    pub(crate) time: Duration,
    pub(crate) fingerprint: u64,
}

/// The lines about tasks that wait, as far as they are known.
#[derive(Clone, Default)]
pub(crate) struct Lines {
    pub(super) lines: Vec<String>,
    /// For each ask, by its key in the list of asks, the index of its line.
    pub(super) asks: Vec<(usize, usize)>,
}

impl Lines {
    /// Adds the holder of the reply to the line of this ask.
    pub(super) fn held(&mut self, key: usize, holder: &Who) {
        let Some(at) = self.asks.iter().position(|(ask, _)| *ask == key) else {
            return;
        };
        let (_, line) = self.asks.swap_remove(at);
        self.lines[line].push_str(&format!("; {holder} holds the reply"));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }
}

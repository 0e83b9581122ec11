//! Why and how a simulated run has failed.

use std::fmt;
use std::time::Duration;

use super::script::TurnScript;
use crate::runtime::deadlock::Who;

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
    pub(crate) script: TurnScript,
}

/// How far a run has come.
#[derive(Clone, Copy)]
pub(crate) struct Ran {
    pub(crate) steps: u64,
    pub(crate) time: Duration,
    pub(crate) fingerprint: u64,
}

/// What is said of those who wait, as far as it is known.
#[derive(Clone, Default)]
pub(crate) struct Lines {
    pub(super) lines: Vec<String>,
    /// Of an ask by its key in the list of asks: which line it has.
    pub(super) asks: Vec<(usize, usize)>,
}

impl Lines {
    /// Adds the holder of the reply of this ask.
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

//! The errors of keyed actors, one type for each operation.

use std::fmt;

use crate::contain::Panic;
use crate::error::{AskError, Deadlock, SpawnProblem};

/// The reason why a key has no actor that could take a message.
///
/// [`Keyed::get_or_spawn`](super::Keyed::get_or_spawn) returns it, and the errors of the other
/// operations contain it.
#[derive(Debug)]
#[non_exhaustive]
pub enum KeyError {
    /// As many actors are open as the [limit](super::KeyedBuilder::limit) allows, and other code has
    /// an address of each.
    #[non_exhaustive]
    Limit {
        /// The limit.
        limit: usize,
    },
    /// The function of the builder has panicked, so that no actor was started.
    Panicked(Panic),
    /// The actor was not started, for this reason. It is
    /// [`ShutDown`](SpawnProblem::ShutDown) if the runtime has shut down meanwhile.
    Spawn(SpawnProblem),
    /// The set was [stopped](super::Keyed::stop).
    Stopped,
    /// The caller is an actor that ends, and would wait for its own end. It is the actor of this key
    /// itself, or that one ends as well and waits for the caller, perhaps through others. Or the
    /// caller is the actor of this key, and would wait until its mailbox has room for all messages
    /// that have waited for it.
    Deadlock(Deadlock),
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::Limit { limit } => write!(
                f,
                "{limit} actors are open, which is the limit, and none of them can be stopped"
            ),
            KeyError::Panicked(panic) => {
                write!(f, "the function that makes the actor panicked: {panic}")
            }
            KeyError::Spawn(problem) => problem.fmt(f),
            KeyError::Stopped => f.write_str("the set of keyed actors was stopped"),
            KeyError::Deadlock(deadlock) => {
                write!(f, "the actor waits for its own end: {deadlock}")
            }
        }
    }
}

impl std::error::Error for KeyError {}

/// The error of [`Keyed::tell`](super::Keyed::tell), with the message.
pub struct KeyedTellError<M> {
    message: M,
    /// `None` if there was no room.
    why: Option<KeyError>,
}

impl<M> KeyedTellError<M> {
    pub(super) fn full(message: M) -> Self {
        KeyedTellError { message, why: None }
    }

    pub(super) fn new(message: M, why: KeyError) -> Self {
        KeyedTellError {
            message,
            why: Some(why),
        }
    }

    /// Returns the refused message.
    pub fn into_inner(self) -> M {
        self.message
    }

    /// Returns whether the mailbox of the actor has no room.
    pub fn is_full(&self) -> bool {
        self.why.is_none()
    }

    /// Returns why the key has no actor, or `None` if its mailbox has no room.
    pub fn key_error(&self) -> Option<&KeyError> {
        self.why.as_ref()
    }
}

impl<M> fmt::Display for KeyedTellError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Some(why) => why.fmt(f),
            None => f.write_str("the mailbox of the actor of this key is full"),
        }
    }
}

impl<M> fmt::Debug for KeyedTellError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyedTellError({self})")
    }
}

impl<M> std::error::Error for KeyedTellError<M> {}

/// The error of [`Keyed::ask`](super::Keyed::ask).
#[derive(Debug)]
pub enum KeyedAskError {
    /// The key has no actor, so the question was not asked.
    Key(KeyError),
    /// The actor has given no answer.
    Ask(AskError),
}

impl fmt::Display for KeyedAskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyedAskError::Key(error) => error.fmt(f),
            KeyedAskError::Ask(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for KeyedAskError {}

impl From<KeyError> for KeyedAskError {
    fn from(error: KeyError) -> Self {
        KeyedAskError::Key(error)
    }
}

impl From<AskError> for KeyedAskError {
    fn from(error: AskError) -> Self {
        KeyedAskError::Ask(error)
    }
}

//! The errors of the registry, one type for each operation.

use std::borrow::Cow;
use std::fmt;

use crate::error::how_to_bind;
use crate::task::TaskInfo;

/// An error of [`Name::register`](super::Name::register).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RegisterError {
    /// Another actor has the name.
    #[non_exhaustive]
    Taken {
        /// The name.
        name: Cow<'static, str>,
        /// The actor that has it.
        by: TaskInfo,
    },
    /// The name is taken, for messages of another type.
    #[non_exhaustive]
    WrongType {
        /// The name.
        name: Cow<'static, str>,
        /// The type of the messages that the actor with the name receives.
        registered: &'static str,
        /// The type of the messages of this [`Name`](super::Name).
        asked: &'static str,
    },
    /// The actor has closed, or it belongs to the parent process of a `fork`.
    Closed,
    /// No runtime is current on this thread and none was set with [`on`](super::Name::on), or the
    /// runtime has shut down, or it belongs to the parent process of a `fork`.
    NoRuntime,
}

/// An error of [`Name::get`](super::Name::get), [`Name::wait`](super::Name::wait) and
/// [`Name::wait_until_free`](super::Name::wait_until_free).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LookupError {
    /// No open actor has the name. Only [`get`](super::Name::get) returns this.
    #[non_exhaustive]
    Unknown {
        /// The name.
        name: Cow<'static, str>,
    },
    /// The actor with the name receives messages of another type.
    #[non_exhaustive]
    WrongType {
        /// The name.
        name: Cow<'static, str>,
        /// The type of the messages that the actor with the name receives.
        registered: &'static str,
        /// The type of the messages of this [`Name`](super::Name).
        asked: &'static str,
    },
    /// The time limit of a [`wait_timeout`](super::Name::wait_timeout) has elapsed.
    #[non_exhaustive]
    TimedOut {
        /// The name.
        name: Cow<'static, str>,
        /// The time limit.
        after: std::time::Duration,
    },
    /// As [`RegisterError::NoRuntime`].
    NoRuntime,
}

/// An error of [`Group::join`](super::Group::join).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinError {
    /// The members of the group receive messages of another type.
    #[non_exhaustive]
    WrongType {
        /// The name of the group.
        name: Cow<'static, str>,
        /// The type of the messages that the members receive.
        registered: &'static str,
        /// The type of the messages of this [`Group`](super::Group).
        asked: &'static str,
    },
    /// The actor has closed, or it belongs to the parent process of a `fork`.
    Closed,
    /// As [`RegisterError::NoRuntime`].
    NoRuntime,
}

fn wrong_type(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    registered: &str,
    asked: &str,
) -> fmt::Result {
    write!(
        f,
        "{name:?} is registered for messages of type `{registered}`, not `{asked}`"
    )
}

fn no_runtime(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "no greenroom runtime is current on this thread, or it has shut down: call this inside \
         `greenroom::run` or `Runtime::block_on`, or say where with `on`{}",
        how_to_bind(),
    )
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegisterError::Taken { name, by } => write!(f, "the name {name:?} is taken by {by}"),
            RegisterError::WrongType {
                name,
                registered,
                asked,
            } => wrong_type(f, name, registered, asked),
            RegisterError::Closed => f.write_str("the actor has closed"),
            RegisterError::NoRuntime => no_runtime(f),
        }
    }
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LookupError::Unknown { name } => write!(f, "no open actor has the name {name:?}"),
            LookupError::WrongType {
                name,
                registered,
                asked,
            } => wrong_type(f, name, registered, asked),
            LookupError::TimedOut { name, after } => {
                write!(f, "the name {name:?} was not registered within {after:?}")
            }
            LookupError::NoRuntime => no_runtime(f),
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinError::WrongType {
                name,
                registered,
                asked,
            } => wrong_type(f, name, registered, asked),
            JoinError::Closed => f.write_str("the actor has closed"),
            JoinError::NoRuntime => no_runtime(f),
        }
    }
}

impl std::error::Error for RegisterError {}

impl std::error::Error for LookupError {}

impl std::error::Error for JoinError {}

//! The reason why an actor has no result, and the way in which an actor ended.
//!
//! A [`Fault`] may own the payload of a panic, so one holder gets it. An [`End`] is for all.

use std::fmt;

use super::{AskCause, Panic};
use crate::info::TaskInfo;

/// The reason why an actor has no result.
#[derive(Debug)]
pub enum Fault {
    /// The actor panicked. The payload of the panic is kept.
    Panicked(Panic),
    /// The actor was dropped by [`kill`](crate::Address::kill).
    Killed,
    /// The actor had started, and was dropped by the shutdown of its runtime or pinned thread.
    Cancelled,
    /// The actor was never polled, because its runtime or pinned thread was shutting down or had
    /// ended.
    NotStarted,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Panicked(panic) => write!(f, "panicked: {panic}"),
            Fault::Killed => f.write_str("was killed"),
            Fault::Cancelled => f.write_str("was cancelled by the shutdown of its runtime"),
            Fault::NotStarted => f.write_str("was not started because its runtime was shut down"),
        }
    }
}

impl std::error::Error for Fault {}

/// The way in which an actor ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// The actor's future completed.
    Returned,
    /// The actor panicked.
    Panicked,
    /// The actor was dropped by [`kill`](crate::Address::kill).
    Killed,
    /// The actor had started, and was dropped by the shutdown of its runtime or pinned thread.
    Cancelled,
    /// The actor was never polled, because its runtime or pinned thread was shutting down or had
    /// ended.
    NotStarted,
}

impl End {
    pub(crate) fn of_fault(fault: &Fault) -> Self {
        match fault {
            Fault::Panicked(_) => End::Panicked,
            Fault::Killed => End::Killed,
            Fault::Cancelled => End::Cancelled,
            Fault::NotStarted => End::NotStarted,
        }
    }

    /// Returns the cause that this end is for an ask. A panic has the text that `text` returns.
    pub(crate) fn cause(self, text: impl FnOnce() -> String) -> AskCause {
        match self {
            End::Returned => AskCause::Ended,
            End::Panicked => AskCause::Panicked(text()),
            End::Killed => AskCause::Killed,
            End::Cancelled => AskCause::Cancelled,
            End::NotStarted => AskCause::NotStarted,
        }
    }
}

/// A fault that no join receives, as reported to [`on_fault`](crate::Builder::on_fault).
///
/// It is displayed as a short text, such as `"tally" #7 panicked: overflow`.
#[derive(Debug)]
#[non_exhaustive]
pub struct UnhandledFault<'a> {
    /// The actor; `None` for a task.
    pub actor: Option<&'a TaskInfo>,
    /// The plain task or job of [`unblock`](crate::unblock()); `None` for anything else.
    pub task: Option<&'a TaskInfo>,
    /// The name of the actor or task, if it has one. For a task of a [looper](crate::looper) it is
    /// the name of the looper.
    pub name: Option<&'a str>,
    /// The [`id`](crate::Address::id) of the actor; `None` for a task.
    pub id: Option<u64>,
    /// The fault.
    pub fault: &'a Fault,
    /// Whether a source of the actor panicked, such as an [attached](crate::Context::attach)
    /// stream. Then the source has ended, and the actor continues.
    pub is_source: bool,
    /// Whether the function [`on_undelivered`](crate::ActorBuilder::on_undelivered) of the actor
    /// panicked. The actor's result is another one.
    pub is_on_undelivered: bool,
    /// Whether the function [`on_displaced`](crate::ActorBuilder::on_displaced) of the actor
    /// panicked. The actor continues.
    pub is_on_displaced: bool,
}

/// The part of an actor that panicked, other than its future.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultyPart {
    Source,
    OnUndelivered,
    OnDisplaced,
}

impl<'a> UnhandledFault<'a> {
    /// Creates the report of a fault of this actor or, if one is given, of a part of it.
    pub(crate) fn of_actor(
        actor: &'a TaskInfo,
        fault: &'a Fault,
        part: Option<FaultyPart>,
    ) -> Self {
        UnhandledFault {
            actor: Some(actor),
            task: None,
            name: actor.name(),
            id: Some(actor.id()),
            fault,
            is_source: part == Some(FaultyPart::Source),
            is_on_undelivered: part == Some(FaultyPart::OnUndelivered),
            is_on_displaced: part == Some(FaultyPart::OnDisplaced),
        }
    }

    /// Returns the words for the part of the actor that panicked, before the name of the actor.
    pub(crate) fn part(&self) -> &'static str {
        if self.is_source {
            "a source of "
        } else if self.is_on_undelivered {
            "`on_undelivered` of "
        } else if self.is_on_displaced {
            "`on_displaced` of "
        } else {
            ""
        }
    }

    /// Returns the words for the actor or the task.
    pub(crate) fn subject(&self) -> String {
        match (self.actor, self.task, self.name) {
            (Some(actor), ..) => actor.to_string(),
            (None, Some(_), Some(name)) => format!("task {name:?}"),
            (None, Some(task), None) => format!("task {}", task.called()),
            (None, None, Some(name)) => format!("a task of {name}"),
            (None, None, None) => "task".to_owned(),
        }
    }
}

impl fmt::Display for UnhandledFault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} {}", self.part(), self.subject(), self.fault)
    }
}

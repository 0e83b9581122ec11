//! The errors of supervision, one type for each operation.

use std::fmt;
use std::sync::Arc;

use crate::error::SpawnError;
use crate::task::TaskInfo;

/// An error of a start, which holds the actor that was not started, or the builder of a supervisor.
///
/// [`Supervisor::start`](super::Supervisor::start),
/// [`Supervisor::supervisor`](super::Supervisor::supervisor) and
/// [`SupervisorBuilder::spawn`](super::SupervisorBuilder::spawn) return it.
#[non_exhaustive]
pub enum StartError<A> {
    /// The supervisor stops or has ended.
    Stopping(A),
    /// The actor or the supervisor was not spawned.
    Spawn(SpawnError<A>),
}

impl<A> StartError<A> {
    /// Returns the actor or the builder, unchanged.
    pub fn into_inner(self) -> A {
        match self {
            StartError::Stopping(actor) => actor,
            StartError::Spawn(error) => error.into_inner(),
        }
    }
}

impl<A> fmt::Debug for StartError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Stopping(_) => f.write_str("Stopping(..)"),
            StartError::Spawn(error) => f.debug_tuple("Spawn").field(error).finish(),
        }
    }
}

impl<A> fmt::Display for StartError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Stopping(_) => f.write_str("the supervisor stops or has ended"),
            StartError::Spawn(error) => error.fmt(f),
        }
    }
}

impl<A> std::error::Error for StartError<A> {}

/// An error of [`Supervisor::restart`](super::Supervisor::restart) and of
/// [`Supervisor::stop_child`](super::Supervisor::stop_child): the actor is not a child of this
/// supervisor, or has ended.
#[derive(Debug, Clone)]
pub struct NotAChild {
    pub(super) actor: TaskInfo,
    pub(super) supervisor: TaskInfo,
}

impl NotAChild {
    /// Returns the actor.
    pub fn actor(&self) -> &TaskInfo {
        &self.actor
    }

    /// Returns the supervisor.
    pub fn supervisor(&self) -> &TaskInfo {
        &self.supervisor
    }
}

impl fmt::Display for NotAChild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (actor, supervisor) = (&self.actor, &self.supervisor);
        write!(f, "{actor} is not a child of {supervisor}, or has ended")
    }
}

impl std::error::Error for NotAChild {}

/// The reason why a supervisor gave up: a child has failed too often.
#[derive(Debug, Clone)]
pub struct Escalated {
    pub(super) child: TaskInfo,
    pub(super) faults: Vec<Arc<str>>,
}

impl Escalated {
    /// Returns the child that failed last. It may be a supervisor.
    pub fn child(&self) -> &TaskInfo {
        &self.child
    }

    /// Returns the texts of the last faults of that child, oldest first: at most 10.
    ///
    /// A normal return under [`Restarts::always`](super::Restarts::always) is no fault.
    pub fn faults(&self) -> impl ExactSizeIterator<Item = &str> {
        self.faults.iter().map(|text| &**text)
    }
}

impl fmt::Display for Escalated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed too often", self.child)?;
        match self.faults.last() {
            Some(last) => write!(f, ", at last: {last}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Escalated {}

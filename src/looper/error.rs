//! The errors of loopers: of posting a task, of a task, and of a lock.
//!
//! A task that is not accepted comes back in its error.

use std::fmt;
use std::sync::Arc;

use crate::error::{Deadlock, Panic};
use crate::sync::Mutex;

/// An error of posting a task, with the task.
pub struct PostError<F> {
    /// In a mutex, so that the error is `Sync` if the task is `Send`.
    task: Mutex<F>,
    problem: PostProblem,
}

/// The reason in a [`PostError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PostProblem {
    /// The looper or its controller is closed, or its runtime has shut down.
    Closed,
    /// The priority is higher than the controller's highest.
    Priority {
        /// The priority of the posting.
        asked: u8,
        /// The highest priority of the controller.
        highest: u8,
    },
    /// One of the locks belongs to another controller.
    Foreign,
}

impl<F> PostError<F> {
    pub(super) fn new(task: F, problem: PostProblem) -> Self {
        PostError {
            task: Mutex::new(task),
            problem,
        }
    }

    /// Returns the task.
    pub fn into_inner(self) -> F {
        self.task.into_inner()
    }

    /// Returns the reason.
    pub fn problem(&self) -> PostProblem {
        self.problem
    }
}

impl<F> PostError<Box<F>> {
    /// Returns the error of a task that was boxed.
    pub(super) fn unbox(self) -> PostError<F> {
        PostError::new(*self.task.into_inner(), self.problem)
    }
}

impl fmt::Display for PostProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PostProblem::Closed => f.write_str("the looper or its controller is closed"),
            PostProblem::Priority { asked, highest } => {
                write!(f, "priority {asked} is higher than the highest, {highest}")
            }
            PostProblem::Foreign => f.write_str("a lock belongs to another controller"),
        }
    }
}

impl std::error::Error for PostProblem {}

impl<F> fmt::Display for PostError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the task was not accepted: {}", self.problem)
    }
}

impl<F> fmt::Debug for PostError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostError")
            .field("problem", &self.problem)
            .finish_non_exhaustive()
    }
}

impl<F> std::error::Error for PostError<F> {}

/// The reason why a task has no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum TaskError {
    /// The task panicked. The looper goes on.
    Panicked(Panic),
    /// The task did not run, because of one of its locks.
    Lock(LockError),
    /// The wait would never have ended.
    ///
    /// Either a lock of the task was refused, so the task did not run. Or the result was awaited
    /// by a task on which it depends.
    Deadlock(Deadlock),
    /// The task was [cancelled](super::Posted::cancel), or a shutdown dropped it after its begin.
    Cancelled,
    /// The task did not run, because its runtime was shut down first.
    NotStarted,
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaskError::Panicked(panic) => write!(f, "the task panicked: {panic}"),
            TaskError::Lock(error) => write!(f, "the task did not run: {error}"),
            TaskError::Deadlock(deadlock) => write!(f, "deadlock: {deadlock}"),
            TaskError::Cancelled => f.write_str("the task was cancelled"),
            TaskError::NotStarted => {
                f.write_str("the task did not run, because its runtime was shut down")
            }
        }
    }
}

// The text has the cause, so the cause is no source as well.
impl std::error::Error for TaskError {}

/// The reason why a looper did not get a lock, or could not use or release it.
///
/// The text names the looper and the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockError {
    /// The looper holds the lock, or the set has it twice. A shared lock is not upgraded.
    AlreadyHeld(LockDetail),
    /// The looper does not hold the lock, or not in the mode that is asked for.
    NotHeld(LockDetail),
    /// The lock is closed, or the looper.
    Closed(LockDetail),
    /// The lock belongs to another controller.
    Foreign(LockDetail),
    /// The locks were not granted in time.
    TimedOut(LockDetail),
}

/// The looper and the lock of a [`LockError`]. All details are equal, so that errors can be
/// compared without them.
#[derive(Clone)]
pub struct LockDetail(Arc<(String, String)>);

impl LockDetail {
    pub(super) fn new(looper: &dyn fmt::Display, lock: &dyn fmt::Display) -> Self {
        LockDetail(Arc::new((looper.to_string(), lock.to_string())))
    }

    /// Returns the name of the looper, or its number as text.
    pub fn looper(&self) -> &str {
        &self.0.0
    }

    /// Returns the name of the lock, or its number as text.
    pub fn lock(&self) -> &str {
        &self.0.1
    }
}

impl PartialEq for LockDetail {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for LockDetail {}

impl fmt::Debug for LockDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.looper(), self.lock())
    }
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (detail, between, after) = match self {
            LockError::AlreadyHeld(detail) => (detail, "already holds or requests", ""),
            LockError::NotHeld(detail) => (detail, "does not hold", ""),
            LockError::Closed(detail) => (detail, "did not get", ": closed"),
            LockError::Foreign(detail) => (detail, "has another controller than", ""),
            LockError::TimedOut(detail) => (detail, "did not get", " in time"),
        };
        write!(f, "{} {between} {}{after}", detail.looper(), detail.lock())
    }
}

impl std::error::Error for LockError {}

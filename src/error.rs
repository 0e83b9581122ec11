//! The public errors, one type an operation; each gives back what it was not able to take.
//!
//! No text ends with a dot, none repeats the name of the operation, and `Debug` asks nothing of the
//! value that is given back.

use std::fmt;
use std::sync::Arc;

pub use crate::contain::Panic;
use crate::sync::LEFT_BEHIND;

/// Why [`tell`](crate::Address::tell) refused a message; it holds the message.
pub enum TellError<M> {
    /// The mailbox is bounded and has no room, or others wait for room already.
    Full(M),
    /// The actor was stopped, was killed, or has ended.
    Closed(M),
}

impl<M> TellError<M> {
    /// The message that was refused.
    pub fn into_inner(self) -> M {
        let (TellError::Full(message) | TellError::Closed(message)) = self;
        message
    }

    /// Whether it was refused for want of room.
    pub fn is_full(&self) -> bool {
        matches!(self, TellError::Full(_))
    }

    /// Whether it was refused because the mailbox is closed, which is final.
    pub fn is_closed(&self) -> bool {
        matches!(self, TellError::Closed(_))
    }
}

impl<M> fmt::Debug for TellError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_full() {
            "Full(..)"
        } else {
            "Closed(..)"
        })
    }
}

impl<M> fmt::Display for TellError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_full() {
            "the mailbox is full"
        } else {
            "the mailbox is closed"
        })
    }
}

impl<M> std::error::Error for TellError<M> {}

/// [`send`](crate::Address::send) found the mailbox closed; it holds the message.
pub struct SendError<M>(pub M);

impl<M> SendError<M> {
    /// The message that was refused.
    pub fn into_inner(self) -> M {
        self.0
    }
}

impl<M> fmt::Debug for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendError(..)")
    }
}

impl<M> fmt::Display for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the mailbox is closed")
    }
}

impl<M> std::error::Error for SendError<M> {}

/// Why [`ask`](crate::Address::ask) has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskError {
    /// The mailbox was closed; the question was not delivered.
    Closed,
    /// The question was delivered and its [`Reply`](crate::Reply) dropped without an answer.
    NoReply,
    /// The time given with [`timeout`](crate::Ask::timeout) was over first.
    TimedOut,
    /// Everybody waits and nothing is left that could wake anybody, but time-outs of asks that lead to
    /// a cycle; only where [`detect_deadlocks`](crate::Builder::detect_deadlocks) is on.
    Deadlock(Deadlock),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AskError::Closed => "the mailbox is closed",
            AskError::NoReply => "the question was dropped without an answer",
            AskError::TimedOut => "no answer came in time",
            AskError::Deadlock(deadlock) if deadlock.0.is_cycle => {
                return write!(f, "the actors wait for each other: {deadlock}");
            }
            AskError::Deadlock(deadlock) => {
                return write!(f, "nobody is left to answer: {deadlock}");
            }
        })
    }
}

impl std::error::Error for AskError {}

/// Who waits for whom, in an [`AskError::Deadlock`]: `a → b → a`.
///
/// It is the cycle that the walk from the asker along the asks comes to; without one it is the
/// chain from the asker to an actor that waits for something else. An actor is shown by its name,
/// or as `actor ` and its [`id`](crate::Address::id) with a `#`, in a simulation its number there; of
/// many the most are left out and counted. A clone is cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlock(Arc<Waits>);

/// Behind one pointer, so that no error is larger for it.
#[derive(Debug, PartialEq, Eq)]
struct Waits {
    names: String,
    is_cycle: bool,
}

impl Deadlock {
    pub(crate) fn new(names: String, is_cycle: bool) -> Self {
        Deadlock(Arc::new(Waits { names, is_cycle }))
    }

    pub(crate) fn is_cycle(&self) -> bool {
        self.0.is_cycle
    }

    /// The names, with ` → ` between them.
    pub fn as_str(&self) -> &str {
        &self.0.names
    }
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why an actor has no result.
#[derive(Debug)]
pub enum Fault {
    /// It panicked; the panic is kept.
    Panicked(Panic),
    /// It was dropped by [`kill`](crate::Address::kill).
    Killed,
    /// It had begun, and was dropped by the shutdown of its runtime or pinned thread.
    Cancelled,
    /// It was never polled, because its runtime or pinned thread was shutting down.
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

/// A fault that no join receives, as [`on_fault`](crate::Builder::on_fault) is told of it.
#[derive(Debug)]
#[non_exhaustive]
pub struct UnhandledFault<'a> {
    /// The name of the actor; `None` for one without a name and for a plain task.
    pub name: Option<&'a str>,
    /// The [`id`](crate::Address::id) of the actor; `None` for a plain task.
    pub id: Option<u64>,
    /// What happened.
    pub fault: &'a Fault,
    /// Whether a source of the actor panicked, such as an [attached](crate::Context::attach) stream: the source
    /// has ended, and the actor goes on.
    pub is_source: bool,
}

impl fmt::Display for UnhandledFault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_source {
            f.write_str("a source of ")?;
        }
        match (self.id, self.name) {
            (Some(id), Some(name)) => write!(f, "actor {name:?} ({id}) {}", self.fault),
            (Some(id), None) => write!(f, "actor {id} {}", self.fault),
            (None, _) => write!(f, "task {}", self.fault),
        }
    }
}

/// Why an actor could not be spawned; it holds the actor.
pub struct SpawnError<A> {
    actor: A,
    problem: SpawnProblem,
}

/// What was wrong, in a [`SpawnError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpawnProblem {
    /// No runtime is current on this thread, and none was given with `on`.
    NoRuntime,
    /// The runtime or pinned thread is shutting down or was shut down.
    ShutDown,
    /// `capacity` was 0; a bounded mailbox has room for at least one message.
    ZeroCapacity,
    /// `priority` was higher than the runtime's [`priorities`](crate::Builder::priorities).
    Priority {
        /// What was asked for.
        priority: u8,
        /// The highest that there is.
        highest: u8,
    },
    /// The system did not start the thread of a [`Detached`](crate::Detached) actor; this is what it
    /// said.
    Thread(std::io::ErrorKind),
    /// The runtime belongs to the parent process: this one was forked from it after the runtime was built.
    Forked,
}

impl<A> SpawnError<A> {
    pub(crate) fn new(actor: A, problem: SpawnProblem) -> Self {
        SpawnError { actor, problem }
    }

    /// The actor, unharmed.
    pub fn into_inner(self) -> A {
        self.actor
    }

    /// What was wrong.
    pub fn problem(&self) -> SpawnProblem {
        self.problem
    }
}

impl fmt::Display for SpawnProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpawnProblem::NoRuntime => f.write_str(
                "no greenroom runtime is current on this thread: call this inside \
                 `greenroom::run` or `Runtime::block_on`, or name one with `on`",
            ),
            SpawnProblem::ShutDown => f.write_str("the runtime or pinned thread was shut down"),
            SpawnProblem::ZeroCapacity => {
                f.write_str("capacity is 0, but a bounded mailbox has room for at least 1 message")
            }
            SpawnProblem::Priority { priority, highest } => {
                write!(f, "priority is {priority}, but must be from 0 to {highest}")
            }
            SpawnProblem::Thread(kind) => {
                write!(f, "the system did not start the actor's thread: {kind}")
            }
            SpawnProblem::Forked => f.write_str(LEFT_BEHIND),
        }
    }
}

impl<A> fmt::Debug for SpawnError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpawnError")
            .field("problem", &self.problem)
            .finish_non_exhaustive()
    }
}

impl<A> fmt::Display for SpawnError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl<A> std::error::Error for SpawnError<A> {}

/// Why a [`Runtime`](crate::Runtime) could not be built.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// An option has a value that cannot be; the text says option, value and limit.
    Impossible {
        /// The name of the option.
        option: &'static str,
        /// Its value, and the limit that the value is beyond.
        reason: String,
    },
    /// The system did not start a thread.
    Thread {
        /// How many workers were asked for.
        workers: usize,
        /// How many had been started; they were ended again.
        started: usize,
        /// What the system said.
        source: std::io::Error,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Impossible { option, reason } => write!(f, "{option} {reason}"),
            BuildError::Thread {
                workers,
                started,
                source,
            } => {
                write!(
                    f,
                    "only {started} of {workers} workers could be started: {source}"
                )
            }
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BuildError::Impossible { .. } => None,
            BuildError::Thread { source, .. } => Some(source),
        }
    }
}

/// Why a call to a hosted value has no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum HostFault {
    /// The pinned thread has ended, or is ending; or this is a child of `fork`, and the thread its parent's.
    Gone,
    /// The closure panicked; the host goes on.
    Panicked(Panic),
}

impl fmt::Display for HostFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostFault::Gone => f.write_str("the pinned thread has ended"),
            HostFault::Panicked(panic) => write!(f, "the closure panicked: {panic}"),
        }
    }
}

impl std::error::Error for HostFault {}

/// Why [`try_host`](crate::Pinned::try_host) gave no hosted value.
#[derive(Debug)]
pub enum TryHostError<E> {
    /// The closure that makes the value gave this error.
    Failed(E),
    /// The pinned thread is gone, or the closure panicked.
    Host(HostFault),
}

impl<E: fmt::Display> fmt::Display for TryHostError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TryHostError::Failed(error) => write!(f, "the value could not be made: {error}"),
            TryHostError::Host(fault) => fault.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for TryHostError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TryHostError::Failed(error) => Some(error),
            TryHostError::Host(_) => None,
        }
    }
}

//! The public errors, one type for each operation. An error holds the value that was not accepted.
//!
//! Error texts have no full stop and do not repeat the name of the operation. `Debug` needs no
//! bounds on the value in the error.

mod ask;
mod fault;
mod refusal;
mod refused;

use std::fmt;

pub use ask::{AskCause, AskDetail, AskError, Deadlock, FlatError};
pub(crate) use fault::FaultyPart;
pub use fault::{End, Fault, UnhandledFault};
pub(crate) use refusal::Load;
pub use refusal::{Refusal, RefusalKind};
pub(crate) use refused::RefusedMessage;

pub use crate::contain::Panic;
use crate::info::TaskInfo;
use crate::sync::LEFT_BEHIND;

/// An error of [`tell`](crate::Address::tell), which holds the refused message and names the actor.
///
/// ```
/// use greenroom::{Context, spawn};
///
/// /// Keeps its mailbox, and receives nothing.
/// async fn busy(_cx: Context<u32>) {
///     std::future::pending().await
/// }
///
/// greenroom::run(async {
///     let one = spawn!(busy(_), name = "one", capacity = 1);
///     one.tell(1).unwrap();
///     let error = one.tell(2).unwrap_err();
///     assert!(error.is_full());
///     assert_eq!(error.actor().id(), one.id());
///     let text = format!("the mailbox of \"one\" #{} is full", one.id());
///     assert_eq!(error.to_string(), text);
///     assert_eq!(error.into_inner(), 2);
///     one.kill();
/// });
/// ```
pub struct TellError<M>(pub(crate) RefusedMessage<M>);

impl<M> TellError<M> {
    /// Returns the refused message.
    pub fn into_inner(self) -> M {
        self.0.into_message()
    }

    /// Returns the actor that refused the message. Behind a [`map`](crate::Address::map) it is the
    /// actor itself.
    pub fn actor(&self) -> &TaskInfo {
        self.0.actor()
    }

    /// Returns whether the mailbox is bounded and had no room, or other senders waited for room.
    pub fn is_full(&self) -> bool {
        self.0.is_full()
    }

    /// Returns whether the mailbox was closed, which is final: the actor was stopped or killed, or
    /// has ended.
    pub fn is_closed(&self) -> bool {
        !self.is_full()
    }
}

impl<M> fmt::Debug for TellError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TellError({self})")
    }
}

impl<M> fmt::Display for TellError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<M> std::error::Error for TellError<M> {}

/// An error of [`send`](crate::Address::send): the mailbox is closed, or full if no sender waits for
/// room. It holds the refused message and names the actor.
///
/// ```
/// use greenroom::{Context, spawn};
///
/// greenroom::run(async {
///     let tally = spawn!(async |mut cx: Context<u32>| cx.recv().await, name = "tally");
///     tally.stop();
///     let error = tally.send(42).await.unwrap_err();
///     let text = format!("the mailbox of \"tally\" #{} is closed", tally.id());
///     assert_eq!(error.to_string(), text);
///     assert_eq!(error.into_inner(), 42);
/// });
/// ```
pub struct SendError<M>(pub(crate) RefusedMessage<M>);

impl<M> SendError<M> {
    /// Returns the refused message.
    pub fn into_inner(self) -> M {
        self.0.into_message()
    }

    /// Returns the actor that refused the message, as [`TellError::actor`] does.
    pub fn actor(&self) -> &TaskInfo {
        self.0.actor()
    }

    /// Returns whether the mailbox had no room, and its actor has an
    /// [`overflow`](crate::ActorBuilder::overflow) with which no sender waits.
    pub fn is_full(&self) -> bool {
        self.0.is_full()
    }

    /// Returns whether the mailbox was closed, which is final.
    pub fn is_closed(&self) -> bool {
        !self.is_full()
    }
}

impl<M> fmt::Debug for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SendError({self})")
    }
}

impl<M> fmt::Display for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<M> std::error::Error for SendError<M> {}

/// An error of [`try_spawn`](crate::ActorBuilder::try_spawn), which holds the actor.
pub struct SpawnError<A> {
    actor: A,
    problem: SpawnProblem,
}

/// The reason for a [`SpawnError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpawnProblem {
    /// No runtime is current on this thread, and none was set with [`on`](crate::ActorBuilder::on).
    NoRuntime,
    /// The runtime or pinned thread is shutting down or has ended.
    ShutDown,
    /// The [`capacity`](crate::ActorBuilder::capacity), or that for
    /// [`urgent`](crate::ActorBuilder::urgent) messages, is 0, but must be at least 1.
    ZeroCapacity,
    /// There is no [`capacity`](crate::ActorBuilder::capacity), but an option for a mailbox without
    /// room, such as [`overflow`](crate::ActorBuilder::overflow).
    NoCapacity,
    /// [`urgent_in_a_row`](crate::ActorBuilder::urgent_in_a_row) is 0, but must be at least 1. Or it is
    /// set without [`urgent`](crate::ActorBuilder::urgent).
    UrgentInARow,
    /// The [`priority`](crate::ActorBuilder::priority) exceeds the runtime's
    /// [`priorities`](crate::Builder::priorities).
    Priority {
        /// The requested priority.
        priority: u8,
        /// The highest priority of the runtime.
        highest: u8,
    },
    /// The thread of a [`Detached`](crate::Detached) actor did not start. The kind of error is that of
    /// the operating system, or `Other` if [`around_threads`](crate::Builder::around_threads) did not
    /// call its argument.
    Thread(std::io::ErrorKind),
    /// The runtime belongs to the parent process: this process was forked after the runtime was
    /// built.
    Forked,
    /// The window of the [intensity](crate::supervise::Restarts::intensity) is 0 s, but must be
    /// longer.
    ZeroWindow,
    /// The [intensity](crate::supervise::Restarts::intensity) is 0 restarts, although the actor is
    /// [always](crate::supervise::Restarts::always) to be restarted.
    ZeroIntensity,
}

impl<A> SpawnError<A> {
    pub(crate) fn new(actor: A, problem: SpawnProblem) -> Self {
        SpawnError { actor, problem }
    }

    /// Returns the actor, unchanged.
    pub fn into_inner(self) -> A {
        self.actor
    }

    /// Returns the reason why the actor was not spawned.
    pub fn problem(&self) -> SpawnProblem {
        self.problem
    }
}

impl fmt::Display for SpawnProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpawnProblem::NoRuntime => write!(
                f,
                "no greenroom runtime is current on this thread: call this inside `greenroom::run` \
                 or `Runtime::block_on`, or say where with `on` or `Runtime::spawn`{}",
                how_to_bind(),
            ),
            SpawnProblem::ShutDown => f.write_str("the runtime or pinned thread was shut down"),
            SpawnProblem::ZeroCapacity => {
                f.write_str("capacity is 0, but a bounded mailbox has room for at least 1 message")
            }
            SpawnProblem::NoCapacity => f.write_str(
                "an option says what is done without room, but an unbounded mailbox always has \
                 room: set `capacity`",
            ),
            SpawnProblem::UrgentInARow => {
                f.write_str("urgent_in_a_row is at least 1, and needs the option `urgent`")
            }
            SpawnProblem::Priority { priority, highest } => {
                write!(f, "priority is {priority}, but must be from 0 to {highest}")
            }
            SpawnProblem::Thread(kind) => {
                write!(f, "the actor's thread did not start: {kind}")
            }
            SpawnProblem::Forked => f.write_str(LEFT_BEHIND),
            SpawnProblem::ZeroWindow => {
                f.write_str("the window of the intensity is 0 s, but must be longer")
            }
            SpawnProblem::ZeroIntensity => f.write_str(
                "the intensity is 0 restarts, but must be at least 1 for `Restarts::always`",
            ),
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

/// The reason why a [`Runtime`](crate::Runtime) could not be built.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The value of an option is out of range. The text names the option, the value and the limit.
    Impossible {
        /// The name of the option.
        option: &'static str,
        /// The value, and the limit that it violates.
        reason: String,
    },
    /// The operating system did not start a thread.
    Thread {
        /// The requested number of workers.
        workers: usize,
        /// The number of workers that had started. They have been ended again.
        started: usize,
        /// The error of the operating system.
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

// The text has the cause, so the cause is no source as well.
impl std::error::Error for BuildError {}

/// The reason why a call to a hosted value has no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum HostFault {
    /// The pinned thread has ended or is ending, or it belongs to the parent process of a `fork`.
    Gone,
    /// The closure panicked. The host continues.
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

/// Returns what else to say where no runtime is current: how to bind the tokio runtime of this
/// thread, if it is in one.
pub(crate) fn how_to_bind() -> &'static str {
    match is_on_tokio() {
        true => "; here is a tokio runtime, which `runtime.bind(&handle)` binds to one",
        false => "",
    }
}

/// Returns whether this thread is in a tokio runtime.
#[cfg(feature = "tokio")]
pub(crate) fn is_on_tokio() -> bool {
    tokio::runtime::Handle::try_current().is_ok()
}

#[cfg(not(feature = "tokio"))]
pub(crate) fn is_on_tokio() -> bool {
    false
}

//! The scheduler's view of its owner, a runtime.

use crate::instant::Instant;
use crate::task::Runnable;

/// The owner of a scheduler, as its policies see it.
///
/// The loop of a worker needs more: see [`Employer`](super::worker::Employer).
pub(crate) trait Owner: Send + Sync {
    /// Returns whether this worker has something to do besides running tasks.
    fn must_see_to(&self, worker: usize) -> bool;

    /// Returns the earliest deadline.
    fn deadline(&self) -> Option<Instant>;

    /// Returns whether the shutdown has begun.
    fn is_closing(&self) -> bool;

    /// Returns whether the current turn on this thread has given the worker's place to another
    /// thread.
    fn is_displaced(&self) -> bool;

    /// Notes that a worker sleeps, which may complete quiescence.
    fn worker_sleeps(&self);

    /// Takes a runnable in a runtime without workers; `again`: it was woken during its own turn.
    fn push_elsewhere(&self, runnable: Runnable, again: bool);
}

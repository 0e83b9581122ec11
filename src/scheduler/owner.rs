//! What the scheduler asks of its owner, a runtime: all that it knows of one.

use std::time::Duration;

use crate::task::Runnable;

/// The owner of a scheduler, as its policies see it.
///
/// The loop of a worker asks for more: see [`Employer`](super::worker::Employer).
pub(crate) trait Owner: Send + Sync {
    /// Returns whether this worker must see to something other than runnables.
    fn must_see_to(&self, worker: usize) -> bool;

    /// Returns how long it is until the next deadline.
    fn until_next(&self) -> Option<Duration>;

    /// Returns whether the shutdown has begun.
    fn is_closing(&self) -> bool;

    /// Returns whether the run under way on this thread has given the worker's place to another thread.
    fn is_displaced(&self) -> bool;

    /// Notes that a worker sleeps now: with it, everything may have come to rest.
    fn worker_sleeps(&self);

    /// Takes a runnable where no worker does; `again`: it was woken in its own run.
    fn push_elsewhere(&self, runnable: Runnable, again: bool);
}

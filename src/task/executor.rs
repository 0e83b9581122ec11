//! The executor as its tasks and cells see it.
//!
//! These traits are all that actors know of executors, and `Runnable` is all that executors know of
//! actors.
//!
//! # Invariants
//! - EXECUTOR-1: `schedule` may be called by a holder of a reference to the cell, which keeps the cell
//!   and its executor: a sender or a waker. At the end of a turn it is called on a bitwise copy of the
//!   executor, and the original may be dropped as soon as the runnable is handed over. Then another
//!   owner keeps the executor until `schedule` returns: the calling thread, if only threads that own
//!   it run its tasks, or else a clone.

use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::header::Header;
#[cfg(doc)]
use super::header::Label;
use super::hooks::TaskHooks;
use super::key::LiveIndex;
use super::run::BATCH;
use super::runnable::Runnable;
use super::waits::NotedWaits;

/// The name of a plain task.
pub(crate) type TaskName = Arc<Box<str>>;

/// An executor, as its tasks see it. Clones are cheap and mean the same executor; see EXECUTOR-1
/// for bitwise copies.
pub trait Executor: Clone + Send + Sync + 'static {
    /// Accepts a runnable to be run. `again`: the task was woken during its own turn and goes to
    /// the back of the queue.
    fn schedule(&self, runnable: Runnable, again: bool);

    /// Returns the hooks that observe the executor's tasks and decide about them.
    fn hooks(&self) -> &(dyn TaskHooks + 'static);

    /// Returns the name of the plain task that this executor is for, if it has one.
    fn name(&self) -> Option<TaskName> {
        None
    }

    /// Returns the marks of new tasks and cells: [`Label::TRACED`], [`Label::LOCATED`].
    fn marks(&self) -> u8 {
        0
    }

    /// Returns whether the ends of tasks and cells are observed.
    fn is_observed(&self) -> bool {
        false
    }

    /// Stores the waker of a pending plain task, to wake it when all tasks are cancelled. Returns
    /// `None` if that is in progress: the task then wakes itself, to be dropped. By default no task
    /// of the executor is ever pending.
    fn track(&self, waker: &Waker) -> Option<LiveIndex> {
        let _ = waker;
        None
    }

    /// Removes a stored waker; called once for each live index.
    fn untrack(&self, live_index: LiveIndex) {
        let _ = live_index;
    }

    /// Observes that the future of a plain task was dropped, perhaps without having been polled.
    fn task_dropped(&self) {}
}

/// An executor that can run cells, too.
pub trait ActorExecutor: Executor {
    /// Adds a new cell to the list of live ones. Returns false if the executor is shutting down.
    fn enter(&self, cell: NonNull<Header>) -> bool;

    /// Removes the cell from that list; called once by each cell that entered.
    fn leave(&self, cell: NonNull<Header>);

    /// Returns whether the executor is shutting down, so that actors that have not begun will not.
    fn is_closing(&self) -> bool;

    /// Returns the maximum number of messages that an actor handles in one turn.
    fn batch(&self) -> u32 {
        BATCH
    }

    /// Notes what a marked cell waits for. Called by its run, at the end of a turn after which it
    /// does not receive.
    fn note_waits(&self, cell: NonNull<Header>, waits: NotedWaits) {
        let _ = (cell, waits);
    }

    /// Notes how long a turn of a cell took or, without a time, that its count of turns has begun anew
    /// after 2³² turns. Called by its run.
    fn sampled(&self, cell: NonNull<Header>, took: Option<Duration>) {
        let _ = (cell, took);
    }

    /// Observes that the runnable of a cell was dropped instead of run.
    fn discarded(&self) {}
}

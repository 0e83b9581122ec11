//! Where a task or cell lives: what it may ask of the executor that runs it.
//!
//! This is all that actors know of executors, and `Runnable` is all that executors know of actors.
//!
//! # Invariants
//! - EXECUTOR-1: `schedule` may be called on a bitwise copy of a task's executor, which the task keeps no longer
//!   once its runnable is given away. So until `schedule` returns, what the executor is of is kept by the thread, if
//!   none but threads that keep it run its tasks, or else by a clone.

use std::ptr::NonNull;
use std::task::Waker;

use super::header::Header;
use super::info::TaskInfo;
use super::key::TaskKey;
use super::live_index::LiveIndex;
use super::message_event::MessageEvent;
use super::run::BATCH;
use super::runnable::Runnable;
use crate::error::UnhandledFault;
use crate::sync::Process;

/// An executor, as its tasks see it. Clones are cheap and mean the same executor; see EXECUTOR-1 for copies.
pub trait Executor: Clone + Send + Sync + 'static {
    /// The process that has its threads; by default it has none.
    fn process(&self) -> Process {
        Process::current()
    }

    /// Takes the runnable to be run. `again`: it was woken during its own run and goes to the back.
    fn schedule(&self, runnable: Runnable, again: bool);

    /// Keeps the waker of a plain task that has gone pending, to wake it when all is cancelled.
    /// `None` if that is happening: the task wakes itself, to be dropped.
    fn track(&self, waker: &Waker) -> Option<LiveIndex>;

    /// Gives the waker up again; called once for each live index.
    fn untrack(&self, live_index: LiveIndex);

    /// Tells whoever wants to know of a fault that nobody joined.
    fn report(&self, unhandled: &UnhandledFault<'_>);

    /// The plain task that this thread runs or drops has come to its end; its future is still there.
    fn task_completed(&self) {}

    /// Its future is dropped, perhaps without having been run.
    fn task_dropped(&self) {}

    /// Notes in a simulation whether this thread sees the end of a plain task of the executor, or waits for it.
    fn looked_at(&self, task: TaskKey, has_ended: bool) {
        let _ = (task, has_ended);
    }
}

/// An executor on which cells may live.
pub trait ActorExecutor: Executor {
    /// Puts a new cell on the list of live ones; false if the executor is shutting down.
    fn enter(&self, cell: NonNull<Header>) -> bool;

    /// Takes the cell off that list again; called once by each cell that entered.
    fn leave(&self, cell: NonNull<Header>);

    /// Whether what has not begun will not begin any more.
    fn is_closing(&self) -> bool;

    /// Counts a cell that did not end by itself, but because the executor is shut down.
    fn cancelled(&self);

    /// Counts messages that were accepted and never handled.
    fn undelivered(&self, messages: usize);

    /// How many messages are handled in one poll at most.
    fn batch(&self) -> u32 {
        BATCH
    }

    /// Whether the user has chosen that, so that it is exact.
    fn is_batch_chosen(&self) -> bool {
        false
    }

    /// Whether anybody wants to hear of what is completed.
    fn is_observed(&self) -> bool {
        false
    }

    /// Whether it keeps a trace of the messages of its cells.
    fn is_traced(&self) -> bool {
        false
    }

    /// What becomes of a message of this cell, if that is traced.
    fn trace(&self, cell: TaskInfo, event: MessageEvent) {
        let _ = (cell, event);
    }

    /// The runnable of a cell is dropped instead of being run.
    fn discarded(&self) {}

    /// A cell has come to its end; its future is still there.
    fn completed(&self, task: &TaskInfo) {
        let _ = task;
    }
}

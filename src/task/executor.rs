//! The executor as its tasks and cells see it.
//!
//! These traits are all that actors know of executors, and `Runnable` is all that executors know of
//! actors.
//!
//! # Invariants
//! - EXECUTOR-1: `schedule` may be called on a bitwise copy of a task's executor. The original may
//!   be dropped as soon as the runnable is handed over. So until `schedule` returns, another owner
//!   keeps the executor alive: the calling thread, if only threads that own it run its tasks, or
//!   else a clone.

use std::any::type_name;
use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;

use super::header::Header;
#[cfg(doc)]
use super::header::Label;
use super::key::LiveIndex;
use super::key::TaskKey;
use super::run::BATCH;
use super::runnable::Runnable;
use crate::error::{Fault, UnhandledFault};
use crate::info::TaskInfo;
use crate::sync::Process;
use crate::tracer::Tracer;

/// An executor, as its tasks see it. Clones are cheap and mean the same executor; see EXECUTOR-1
/// for bitwise copies.
pub trait Executor: Clone + Send + Sync + 'static {
    /// Accepts a runnable to be run. `again`: the task was woken during its own turn and goes to
    /// the back of the queue.
    fn schedule(&self, runnable: Runnable, again: bool);

    /// Returns the hooks that observe the executor's tasks and decide about them.
    fn hooks(&self) -> &(dyn TaskHooks + 'static);

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

    /// Observes that the runnable of a cell was dropped instead of run.
    fn discarded(&self) {}
}

/// What observes the tasks of an executor and decides about them: the runtime to which the executor
/// belongs, with its tracer, its observer, its policy and its simulation.
///
/// Everything here is rare, or happens only if the task is marked or observed. By default nothing is
/// observed.
pub trait TaskHooks: Send + Sync {
    /// Returns the process that has the executor's threads: by default the current one, for an
    /// executor without threads.
    fn process(&self) -> Process {
        Process::current()
    }

    /// Returns whether the user has set the batch, which is exact then.
    fn is_batch_chosen(&self) -> bool {
        false
    }

    /// Notes where a new task or actor was spawned, before it is scheduled.
    fn spawned(&self, task: &TaskInfo, location: &'static Location<'static>) {
        let _ = (task, location);
    }

    /// Observes that a cell has ended. Its future is not dropped yet.
    fn completed(&self, task: &TaskInfo) {
        let _ = task;
    }

    /// Observes the end of the plain task or job that this thread runs or drops. A task's future is
    /// not dropped yet.
    fn task_completed(&self) {}

    /// Observes that a cell begins anew, with the incarnation of this number. `fault` is why the
    /// last one ended.
    fn restarted(&self, actor: &TaskInfo, incarnation: u64, fault: Option<&Fault>) {
        let _ = (actor, incarnation, fault);
    }

    /// Reports a fault that no join or await has observed.
    fn report(&self, unhandled: &UnhandledFault<'_>);

    /// Counts a cell that did not end by itself, but because the executor shut down.
    fn cancelled(&self) {}

    /// Counts messages that were accepted and never handled.
    fn undelivered(&self, messages: usize) {
        let _ = messages;
    }

    /// Returns the tracer of the user, if there is one.
    fn tracer(&self) -> Option<&dyn Tracer> {
        None
    }

    /// Notes an event of a message of this cell in a simulation.
    fn trace(&self, cell: TaskInfo, event: MessageEvent) {
        let _ = (cell, event);
    }

    /// Notes in a simulation whether this thread has observed the end of a plain task of this
    /// executor, or waits for it.
    fn looked_at(&self, task: TaskKey, has_ended: bool) {
        let _ = (task, has_ended);
    }
}

/// The description of a message in a trace.
#[derive(Clone)]
pub struct MessageInfo {
    /// The name of the message's type.
    pub(crate) name: &'static str,
    /// The text that is shown instead of the name.
    pub(crate) text: Option<Arc<str>>,
}

impl MessageInfo {
    pub(crate) fn of<M>() -> Self {
        MessageInfo {
            name: type_name::<M>(),
            text: None,
        }
    }
}

/// An event in the life of a message, for executors that trace messages.
pub enum MessageEvent {
    /// The message was accepted at once.
    Sent(MessageInfo),
    /// A message that was sent before has arrived in the mailbox.
    Arrived,
    /// The sender waits for room. The key identifies the message among the waiting ones.
    AwaitsRoom(MessageInfo, usize),
    /// There was room for the message with this key.
    Accepted(usize),
    /// A permit was given for the message with this key, which is sent once it is made.
    HasPermit(usize),
    /// The message with this key was given up by its sender, or refused.
    GivenUp(usize),
    /// The actor has received the message from its mailbox.
    Received,
    /// The actor has received the message from one of its own sources.
    FromSource(&'static str),
}

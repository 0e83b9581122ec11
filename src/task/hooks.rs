//! Who observes the tasks of an executor and decides about them, and what happens to messages.
//!
//! A trace has the type name or the text of a message, never its value.

use std::any::type_name;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::key::TaskKey;
use crate::error::{Fault, UnhandledFault};
use crate::info::{TaskInfo, short};
use crate::sync::Process;
use crate::tracer::Tracer;

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

    /// Returns what a task of this executor is to those who wait for its end.
    fn end_of_a_task(&self) -> &'static str {
        "the end of a task"
    }

    /// Returns whether the user has set the batch, which is exact then.
    fn is_batch_chosen(&self) -> bool {
        false
    }

    /// Notes where a new task or actor was spawned, before it is scheduled, and whether its turns
    /// may be long.
    fn spawned(&self, task: &TaskInfo, location: &'static Location<'static>, has_long_turns: bool) {
        let _ = (task, location, has_long_turns);
    }

    /// Observes that a cell has ended. Its future is not dropped yet.
    fn completed(&self, task: &TaskInfo) {
        let _ = task;
    }

    /// Observes the end of a plain task or job. A task's future is not dropped yet.
    fn task_completed(&self, task: &TaskInfo) {
        let _ = task;
    }

    /// Judges that an actor waits for an answer of its own at the end of a turn. It `may_hang` if
    /// nothing else wakes it, or receives the question. Returns whether it is to be polled again.
    fn asks_itself(&self, actor: &TaskInfo, may_hang: bool, has_received: bool) -> bool {
        let _ = (actor, may_hang, has_received);
        false
    }

    /// Counts an address that the context of an actor has made, or uncounts it.
    fn own_address(&self, actor: u64, is_new: bool) {
        let _ = (actor, is_new);
    }

    /// Observes that a cell begins anew, with the incarnation of this number. `fault` is why the
    /// last one ended.
    fn restarted(&self, actor: &TaskInfo, incarnation: u64, fault: Option<&Fault>) {
        let _ = (actor, incarnation, fault);
    }

    /// Observes that a cell ends with a panic, whether or not that is joined.
    fn failed(&self, actor: &TaskInfo, fault: &Fault) {
        let _ = (actor, fault);
    }

    /// Reports a fault that no join or await has observed.
    fn report(&self, unhandled: &UnhandledFault<'_>);

    /// Notes a cell that did not end by itself, but because the executor shut down.
    fn cancelled(&self, actor: &TaskInfo) {
        let _ = actor;
    }

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

/// Displays the text or, without one, the name of the type without its path.
impl fmt::Display for MessageInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => f.write_str(text),
            None => f.write_str(&short(self.name)),
        }
    }
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
    /// The same for a permit, with which the message is sent.
    AwaitsPermit(MessageInfo, usize),
    /// There was room for the message with this key.
    Accepted(usize),
    /// A permit was given for the message with this key, which is sent once it is made.
    HasPermit(usize),
    /// The message with this key was given up by its sender, or refused.
    GivenUp(usize),
    /// A message in the mailbox with this number of newer ones has given way to a new one. If it is
    /// replaced, the next message that is sent or arrives has its position.
    Displaced { newer: usize, is_replaced: bool },
    /// The actor has received the message from its mailbox.
    Received,
    /// An event in the queue of urgent messages.
    Urgent(Box<MessageEvent>),
    /// The actor has received the message from one of its own sources.
    FromSource(MessageInfo),
}

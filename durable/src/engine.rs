//! The engine of a store: what does its commands, one after another.
//!
//! The trait is the only thing that queues, journals and leases know of it. Two engines have a SQLite
//! database: a thread with a file, and a task of a simulation with one in memory. What an engine for
//! several machines has to keep is in `docs/decisions/durable.md`.

mod parked;
mod reply;
mod rounds;
pub(crate) mod sim_file;
pub(crate) mod sqlite;

use std::fmt;
use std::sync::{Arc, Mutex};

use greenroom::Runtime;
pub(crate) use reply::{ValueReceiver, ValueSender, lock, reply};

use crate::error::StoreProblem;
use crate::limits::Limits;
use crate::records::command::{Command, StoreAnswer};

pub(crate) type CommandResult = Result<StoreAnswer, StoreProblem>;

/// What does the commands of a store.
pub(crate) trait StoreEngine: fmt::Debug + Send + Sync {
    /// Adds a command, behind those that were added before.
    fn submit(&self, entry: Entry);
    /// Ends the engine, after all that was added before.
    fn close(&self);
    /// Ends a simulated engine at once, without answers.
    fn crash(&self) {
        self.close();
    }
    /// Waits until it has ended.
    fn closed(&self) -> ValueReceiver<()>;
    fn limits(&self) -> &Limits;
}

/// A command, and who waits for its answer.
pub(crate) struct Entry {
    pub(crate) command: Command,
    pub(crate) reply: Option<ValueSender<CommandResult>>,
}

/// A counted pointer to an engine. The last one that is dropped closes it.
#[derive(Clone, Debug)]
pub(crate) struct EngineHandle(Arc<EngineCloser>);

#[derive(Debug)]
struct EngineCloser(Box<dyn StoreEngine>);

impl Drop for EngineCloser {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl EngineHandle {
    pub(crate) fn new(engine: impl StoreEngine + 'static) -> Self {
        EngineHandle(Arc::new(EngineCloser(Box::new(engine))))
    }

    pub(crate) fn limits(&self) -> &Limits {
        self.0.0.limits()
    }

    pub(crate) fn engine(&self) -> &dyn StoreEngine {
        &*self.0.0
    }

    /// Adds a command. The answer comes by the receiver, or never if the engine ends.
    pub(crate) fn submit(&self, command: Command) -> ValueReceiver<CommandResult> {
        let (sender, receiver) = reply();
        let reply = Some(sender);
        self.0.0.submit(Entry { command, reply });
        receiver
    }

    /// Does a command, which is done also if this future is dropped after its first poll.
    pub(crate) async fn call(&self, command: Command) -> CommandResult {
        answer_of(from_outside(self.submit(command)).await)
    }

    /// Ends the engine, and waits for that.
    pub(crate) async fn close(&self) {
        self.0.0.close();
        from_outside(self.0.0.closed()).await;
    }

    /// Gives back a job that was taken and is not run.
    pub(crate) fn release(&self, seq: i64, token: i64) {
        self.0.0.submit(Entry::release(seq, token));
    }
}

/// Waits for what comes from outside of the runtime, which does not see it, and would take the wait for a
/// deadlock.
pub(crate) async fn from_outside<T>(future: impl Future<Output = T>) -> T {
    let _alive = Runtime::try_current().map(|runtime| runtime.keep_alive());
    future.await
}

/// Makes an error of an answer that refuses, or that never came.
pub(crate) fn answer_of(outcome: Option<CommandResult>) -> CommandResult {
    outcome.unwrap_or(Err(StoreProblem::Closed))?.accepted()
}

/// The commands that no round has taken yet.
#[derive(Default)]
pub(crate) struct CommandInbox(Mutex<InboxState>);

#[derive(Default)]
struct InboxState {
    entries: Vec<Entry>,
    is_closed: bool,
    /// The engine has said that it is going to sleep, and no command has come since then.
    is_asleep: bool,
    is_ended: bool,
    /// Those who wait for the end of the engine.
    ending: Vec<ValueSender<()>>,
}

impl CommandInbox {
    /// Adds a command. Returns whether the engine is to be woken.
    pub(crate) fn push(&self, entry: Entry) -> bool {
        let mut state = lock(&self.0);
        if state.is_closed {
            drop(state);
            entry.answer(Err(StoreProblem::Closed));
            return false;
        }
        state.entries.push(entry);
        std::mem::take(&mut state.is_asleep)
    }

    /// Takes all commands, and whether no more come.
    pub(crate) fn take(&self) -> (Vec<Entry>, bool) {
        let mut state = lock(&self.0);
        (std::mem::take(&mut state.entries), state.is_closed)
    }

    /// Takes the oldest commands, so many at most.
    pub(crate) fn take_some(&self, most: usize) -> Vec<Entry> {
        let entries = &mut lock(&self.0).entries;
        let most = most.min(entries.len());
        entries.drain(..most).collect()
    }

    /// Notes that the engine is going to sleep. Returns false if a command is there, or no more come.
    pub(crate) fn sleep(&self) -> bool {
        let mut state = lock(&self.0);
        state.is_asleep = state.entries.is_empty() && !state.is_closed;
        state.is_asleep
    }

    pub(crate) fn close(&self) {
        lock(&self.0).is_closed = true;
    }

    /// Notes that the engine has ended.
    pub(crate) fn end(&self) {
        let ending = {
            let mut state = lock(&self.0);
            state.is_ended = true;
            std::mem::take(&mut state.ending)
        };
        drop(ending);
    }

    /// Waits until the engine has ended.
    pub(crate) fn ended(&self) -> ValueReceiver<()> {
        let (sender, ended) = reply();
        let mut state = lock(&self.0);
        if !state.is_ended {
            state.ending.push(sender);
        }
        ended
    }
}

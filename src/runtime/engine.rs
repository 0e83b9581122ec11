//! What runs all that a runtime has: its threads, or a simulation, which is one thread for everything.
//!
//! The runtime, pinned threads and actors know a simulation by this trait alone. Whatever a turn does to others may
//! take effect later there, as if other threads had run between; so what shows how far a turn is *settles* it first.
//! What a method does by default is right for threads.

use std::any::Any;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use super::deadlock::{Edge, Who};
use super::host::HostThread;
use super::inner::Inner;
use crate::error::UnhandledFault;
use crate::instant::Instant;
use crate::task::{Delivery, MessageEvent, MessageInfo, Runnable, TaskInfo};

/// Where a task runs.
#[derive(Clone)]
pub(crate) enum RunsOn {
    Workers,
    Host(Arc<dyn HostThread>),
    Blocking,
}

/// The future of a call of `block_on`, without its type.
pub(crate) trait BlockingCall {
    /// Polls the future; returns whether it is done. Its panic is kept.
    fn poll(&mut self, cx: &mut Context<'_>) -> bool;

    /// Drops the future.
    fn discard(&mut self);
}

/// Runs all that a runtime has.
pub(crate) trait Engine: Any + Send + Sync {
    // -- scheduling -----------------------------------------------------------------------------

    /// Takes a runnable, or gives it back for a thread; `again`: it was woken in its own run.
    fn take(
        &self,
        runtime: &Inner,
        runnable: Runnable,
        again: bool,
        runs_on: &RunsOn,
    ) -> Result<(), Runnable> {
        let _ = (runtime, again, runs_on);
        Err(runnable)
    }

    /// Runs until the call is done.
    ///
    /// # Errors
    /// Why it can't be: on another thread, at a deadlock, and after too many steps. `None`: the run has failed, which
    /// is told elsewhere.
    fn block_on(
        &self,
        runtime: &Arc<Inner>,
        call: &mut dyn BlockingCall,
    ) -> Result<(), Option<String>> {
        let _ = (runtime, call);
        Err(Some("a thread waits by itself".into()))
    }

    /// Returns how many tasks, actors and jobs are ready.
    fn len(&self) -> usize {
        0
    }

    /// Returns when a timer fires that is due at `deadline`.
    fn fires_at(&self, deadline: Instant) -> Instant {
        deadline
    }

    /// Shuts down and waits for it; returns whether it does so.
    fn close(&self, runtime: &Arc<Inner>, grace: Duration) -> bool {
        let _ = (runtime, grace);
        false
    }

    /// Begins to shut down; returns whether it does so.
    fn begin_close(&self, runtime: &Arc<Inner>, grace: Duration) -> bool {
        let _ = (runtime, grace);
        false
    }

    // -- what it is told ------------------------------------------------------------------------

    /// Notes that a task or actor has come to its end.
    fn completed(&self, task: &TaskInfo) {
        let _ = task;
    }

    /// Notes what becomes of a message to this actor.
    fn trace(&self, actor: TaskInfo, event: MessageEvent) {
        let _ = (actor, event);
    }

    /// Notes that what runs waits for a message.
    fn awaits_message(&self) {}

    /// Notes that what runs waits for an end.
    fn awaits_end(&self, of: &TaskInfo) {
        let _ = of;
    }

    /// Notes that the reply of the ask with this key is dropped.
    fn reply_dropped(&self, key: usize) {
        let _ = key;
    }

    /// Takes a panic that no join receives for the failure of the run; returns whether that is all to be done.
    fn judges(&self, unhandled: &UnhandledFault<'_>) -> bool {
        let _ = unhandled;
        false
    }

    /// Takes the end of all work for a failure of the run, if something waits; returns whether that is so.
    fn judges_end(&self, runtime: &Inner) -> bool {
        let _ = runtime;
        false
    }

    /// Returns whether the run has failed.
    fn has_failed(&self) -> bool {
        false
    }

    /// Returns the ask of what runs, which is `from`, to this actor.
    fn edge(&self, from: Who, asked: TaskInfo) -> Edge {
        Edge {
            from,
            to: asked,
            question: None,
        }
    }

    // -- turns that are split -------------------------------------------------------------------

    /// Returns whether what is sent to this actor takes effect later.
    fn defers_to(&self, runtime: &Inner, actor: u64) -> bool {
        let _ = (runtime, actor);
        false
    }

    /// Keeps what the running turn does to others, where it defers that.
    fn defer(&self, runtime: &Inner, effect: Deferred) {
        let _ = (runtime, effect);
    }

    /// Returns the number of the next effect of the running turn, if that is split.
    fn next_effect(&self) -> Option<u32> {
        None
    }

    /// Returns whether the running turn has done something that has not taken effect.
    fn has_own(&self) -> bool {
        false
    }

    /// Has what was done take effect, before this thread looks at it.
    fn settle(&self, runtime: &Inner, done: Done<'_>) {
        let _ = (runtime, done);
    }
}

/// What a turn does to others, to be done later.
pub(crate) enum Deferred {
    /// A message to this actor, which has its place already.
    Message(TaskInfo, MessageInfo, Delivery),
    /// The close of the mailbox of an actor.
    Close(u64, Delivery),
    /// The end of an address.
    Leave(Delivery),
    /// The wake-up for an answer, which is in its slot and was given its number by
    /// [`next_effect`](Engine::next_effect).
    Answer(Option<Waker>),
}

/// What was done that is to take effect.
#[derive(Clone, Copy)]
pub(crate) enum Done<'a> {
    /// By the running turn.
    Own,
    /// By the running turn, unless it is one of this actor.
    Elsewhere(u64),
    /// By the running turn and by this actor.
    ByActor(u64),
    /// By the running turn and by this task or actor.
    ByTask(&'a TaskInfo),
    /// By a turn, up to the answer of this number.
    ToAnswer(u32),
    /// By all turns.
    All,
}

/// The threads of a runtime, which need nothing of this.
pub(super) struct Threads;

impl Engine for Threads {}

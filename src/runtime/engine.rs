//! The engine of a runtime: its threads, or a simulation, which runs everything on one thread.
//!
//! The runtime, pinned threads and actors know a simulation only through this trait. In a
//! simulation the effects of a turn on other actors and tasks may be deferred, as if other threads
//! had run in between. Code that observes how far a turn has come therefore *applies* the effects
//! first. The default methods are right for threads.

use std::any::Any;
use std::sync::{Arc, Weak};
use std::task::Context;
use std::time::Duration;

use super::deadlock::{Edge, Who};
use super::host::HostThread;
use super::inner::Inner;
use crate::contain::KeptWaker;
use crate::error::UnhandledFault;
use crate::instant::{Instant, RealTime};
use crate::task::{Delivery, MessageEvent, MessageInfo, Runnable, TaskInfo};

/// Where a task runs.
#[derive(Clone)]
pub(crate) enum RunsOn {
    Workers,
    Host(Arc<dyn HostThread>),
    Blocking,
}

/// The type-erased future of a call of `block_on`.
pub(crate) trait BlockingCall {
    /// Polls the future, and returns whether it has completed. Keeps its panic.
    fn poll(&mut self, cx: &mut Context<'_>) -> bool;

    /// Drops the future.
    fn discard(&mut self);
}

/// A structure in which tasks wait for each other.
pub(crate) trait WaitSource: Send + Sync {
    /// Returns a line for each wait.
    fn lines(&self) -> Vec<String>;
}

/// Runs the tasks, actors and jobs of a runtime.
pub(crate) trait RuntimeEngine: Any + Send + Sync {
    // -- scheduling -----------------------------------------------------------------------------

    /// Takes a runnable, or returns it to be run by a thread. `again`: it was woken during its own
    /// run.
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

    /// Runs until the call has completed.
    ///
    /// # Errors
    /// Why the call cannot complete: it is on another thread, there is a deadlock, or the
    /// simulation took too many steps. `None`: the run has failed, which is reported elsewhere.
    fn block_on(
        &self,
        runtime: &Arc<Inner>,
        call: &mut dyn BlockingCall,
    ) -> Result<(), Option<String>> {
        let _ = (runtime, call);
        Err(Some("threads wait in `block_on` themselves".into()))
    }

    /// Returns the number of tasks, actors and jobs that are ready.
    fn len(&self) -> usize {
        0
    }

    /// Returns the time that its tasks see, on whichever thread this is called.
    fn now(&self) -> Instant {
        let _system = RealTime::enter();
        Instant::now()
    }

    /// Returns when a timer with this deadline fires.
    fn fires_at(&self, deadline: Instant) -> Instant {
        deadline
    }

    /// Shuts the runtime down and waits for that, if the engine does so itself. Returns whether it
    /// does.
    fn close(&self, runtime: &Arc<Inner>, grace: Duration) -> bool {
        let _ = (runtime, grace);
        false
    }

    /// Begins to shut the runtime down, if the engine does so itself. Returns whether it does.
    fn begin_close(&self, runtime: &Arc<Inner>, grace: Duration) -> bool {
        let _ = (runtime, grace);
        false
    }

    // -- notifications --------------------------------------------------------------------------

    /// Notes that a task or actor has ended.
    fn completed(&self, task: &TaskInfo) {
        let _ = task;
    }

    /// Notes an event of a message to this actor.
    fn trace(&self, actor: TaskInfo, event: MessageEvent) {
        let _ = (actor, event);
    }

    /// Writes a text into the trace of the run.
    fn note(&self, text: &str) {
        let _ = text;
    }

    /// Notes that the running actor waits for a message.
    fn awaits_message(&self) {}

    /// Notes that the running task waits for the end of another one.
    fn awaits_end(&self, of: &TaskInfo) {
        let _ = of;
    }

    /// Notes that the reply of the ask with this key is dropped.
    fn reply_dropped(&self, key: usize) {
        let _ = key;
    }

    /// Records an unhandled panic as the failure of the run. Returns whether nothing else is to be
    /// done.
    fn judges(&self, unhandled: &UnhandledFault<'_>) -> bool {
        let _ = unhandled;
        false
    }

    /// Records quiescence as a failure of the run if something still waits. Returns whether it
    /// does.
    fn judges_end(&self, runtime: &Inner) -> bool {
        let _ = runtime;
        false
    }

    /// Returns whether the run has failed.
    fn has_failed(&self) -> bool {
        false
    }

    /// Keeps a source of waits, which are named when a run hangs.
    fn reports_waits(&self, source: Weak<dyn WaitSource>) {
        let _ = source;
    }

    /// Returns the edge of an ask of the running task or actor `from` to the actor `asked`.
    fn edge(&self, from: Who, asked: TaskInfo) -> Edge {
        Edge::of_ask(from, asked)
    }

    /// Returns the actor with the number that texts show, if that is another one than its id.
    fn label_of(&self, actor: &TaskInfo) -> Option<TaskInfo> {
        let _ = actor;
        None
    }

    /// Draws a random number for the running task, if the engine is seeded.
    fn random(&self) -> Option<u64> {
        None
    }

    // -- turns that are split -------------------------------------------------------------------

    /// Returns whether messages to this actor take effect later.
    fn defers_to(&self, runtime: &Inner, actor: u64) -> bool {
        let _ = (runtime, actor);
        false
    }

    /// Keeps an effect of the running turn, if the engine defers effects.
    fn defer(&self, runtime: &Inner, effect: Deferred) {
        let _ = (runtime, effect);
    }

    /// Returns the number of the next effect of the running turn, if that turn is split.
    fn next_effect(&self) -> Option<u32> {
        None
    }

    /// Returns whether the running turn has effects that are still deferred.
    fn has_own(&self) -> bool {
        false
    }

    /// Applies the deferred effects in `due` before this thread observes them.
    fn apply(&self, runtime: &Inner, due: DueEffects<'_>) {
        let _ = (runtime, due);
    }
}

/// A deferred effect of a turn.
pub(crate) enum Deferred {
    /// A message to this actor, which already has a permit in the mailbox.
    Message(TaskInfo, MessageInfo, Delivery),
    /// The close of an actor's mailbox.
    Stop(u64, Delivery),
    /// Anything else that other tasks can see.
    Act(Delivery),
    /// The wake-up for a reply. The reply is in its slot and has the number that
    /// [`next_effect`](RuntimeEngine::next_effect) returned.
    Answer(Option<KeptWaker>),
}

/// The deferred effects that are to be applied.
#[derive(Clone, Copy)]
pub(crate) enum DueEffects<'a> {
    /// Those of the running turn.
    Own,
    /// Those of the running turn, unless it is a turn of this actor.
    Elsewhere(u64),
    /// Those of the running turn and of this actor.
    ByActor(u64),
    /// Those of the running turn and of this task or actor.
    ByTask(&'a TaskInfo),
    /// Those of one turn, up to the reply with this number.
    ToAnswer(u32),
    /// Those of all turns.
    All,
}

/// The engine of a runtime with threads, which needs only the default methods.
pub(super) struct Threads;

impl RuntimeEngine for Threads {}

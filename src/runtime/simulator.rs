//! What a runtime asks of a simulation, which runs everything on one thread in the place of workers.
//!
//! The runtime, pinned threads and actors know a simulation by this trait alone. Whatever a turn does to others may
//! take effect later there, as if other threads had run between; so what shows how far a turn is *settles* it first.

use std::any::Any;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use super::deadlock::Edge;
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

/// Runs all that a runtime has, on the thread that built it.
pub(crate) trait Simulator: Any + Send + Sync {
    // -- scheduling -----------------------------------------------------------------------------

    /// Takes a runnable; `again`: it was woken in its own run.
    fn push(&self, runtime: &Inner, runnable: Runnable, again: bool, runs_on: &RunsOn);

    /// Runs until the call is done.
    ///
    /// # Errors
    /// Why it can't be: on another thread, at a deadlock, and after too many steps. `None`: the run has failed, which
    /// is told elsewhere.
    fn block_on(
        &self,
        runtime: &Arc<Inner>,
        call: &mut dyn BlockingCall,
    ) -> Result<(), Option<String>>;

    /// Returns how many tasks, actors and jobs are ready.
    fn len(&self) -> usize;

    /// Returns when a timer fires that is due at `deadline`.
    fn fires_at(&self, deadline: Instant) -> Instant;

    /// Shuts down and waits for it.
    fn close(&self, runtime: &Arc<Inner>, grace: Duration);

    /// Begins to shut down.
    fn begin_close(&self, runtime: &Arc<Inner>, grace: Duration);

    // -- what it is told ------------------------------------------------------------------------

    /// Notes that a task or actor has come to its end.
    fn completed(&self, task: &TaskInfo);

    /// Notes what becomes of a message to this actor.
    fn trace(&self, actor: TaskInfo, event: MessageEvent);

    /// Notes that what runs waits for a message.
    fn awaits_message(&self);

    /// Notes that what runs waits for an end.
    fn awaits_end(&self, of: &TaskInfo);

    /// Notes that the reply of the ask with this key is dropped.
    fn reply_dropped(&self, key: usize);

    /// Takes a panic that no join receives for the failure of the run; returns whether that is all to be done.
    fn judges(&self, unhandled: &UnhandledFault<'_>) -> bool;

    /// Takes the end of all work for a failure of the run, if something waits; returns whether that is so.
    fn judges_end(&self, runtime: &Inner) -> bool;

    /// Returns whether the run has failed.
    fn has_failed(&self) -> bool;

    /// Returns the ask of what runs, under the numbers of the simulation.
    fn edge(&self, asked: TaskInfo) -> Edge;

    // -- turns that are split -------------------------------------------------------------------

    /// Returns whether what is sent to this actor takes effect later.
    fn defers_to(&self, runtime: &Inner, actor: u64) -> bool;

    /// Keeps a message, which has its place already.
    fn defer_message(&self, runtime: &Inner, to: TaskInfo, info: MessageInfo, deliver: Delivery);

    /// Keeps the close of the mailbox of an actor.
    fn defer_close(&self, runtime: &Inner, actor: u64, deliver: Delivery);

    /// Keeps the end of an address.
    fn defer_leave(&self, runtime: &Inner, leave: Delivery);

    /// Keeps the wake-up for an answer, which is in its slot and was given its number by `next_effect`.
    fn defer_answer(&self, runtime: &Inner, asker: Option<Waker>);

    /// Returns the number of the next effect of the running turn, if that is split.
    fn next_effect(&self) -> Option<u32>;

    /// Returns whether the running turn has done something that has not taken effect.
    fn has_own(&self) -> bool;

    /// Has what the running turn did take effect.
    fn settle_own(&self, runtime: &Inner);

    /// Has what the running turn did take effect, unless it is a turn of this actor.
    fn settle_elsewhere(&self, runtime: &Inner, actor: u64);

    /// Has what this actor did take effect.
    fn settle_actor(&self, runtime: &Inner, id: u64);

    /// Has what this task or actor did take effect.
    fn settle_task(&self, runtime: &Inner, task: &TaskInfo);

    /// Has what a turn did up to an answer take effect.
    fn settle_answer(&self, runtime: &Inner, number: u32);

    /// Has all that was done take effect.
    fn settle_all(&self, runtime: &Inner);
}

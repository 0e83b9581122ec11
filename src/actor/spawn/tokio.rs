//! Actors on a tokio runtime: each is one task there. Without a place, an actor may run there, too.
//!
//! The task is spawned before its actor, so a runtime that is shut down refuses the actor. The cell
//! puts its one runnable into a slot and wakes the task, which runs it. A runtime that shuts down
//! drops the task, which cancels the actor.
//!
//! # Invariants
//! - TOKIO-1: `keeps` counts the spawning thread and the actor. The task ends when it is zero, and
//!   whichever gives up the last keep wakes the task.

use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::runtime::Handle;

use super::target::sealed::ExecutorSource;
use super::target::{Current, SpawnFrom, SpawnTarget, check};
use crate::contain::{contain, drop_refused};
use crate::error::{SpawnProblem, UnhandledFault};
use crate::runtime::{CurrentPlace, Inner, LiveCells, context, print_fault};
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::yield_now;
use crate::task::{
    ActorExecutor, Executor, Header, LiveIndex, NotedWaits, Runnable, RunnableSlot, TaskHooks,
};

impl<Fut: Send> SpawnTarget<Fut> for &Handle {}

impl<A: Send + 'static> SpawnFrom<A> for &Handle {
    fn drop_refused(actor: A) {
        drop_refused(actor);
    }
}

impl ExecutorSource for &Handle {
    type Executor = Arc<TaskExecutor>;
    type Kept = KeptExecutor;

    fn executor(
        &self,
        _: Option<&str>,
        _: u8,
    ) -> Result<(Arc<TaskExecutor>, KeptExecutor), SpawnProblem> {
        Ok(TaskExecutor::start(self))
    }
}

/// An actor that is spawned without a place in a task of a tokio runtime that is
/// [bound](crate::Runtime::bind) runs on that runtime.
impl ExecutorSource for Current {
    type Executor = CurrentExecutor;
    type Kept = Option<KeptExecutor>;

    fn executor(
        &self,
        _: Option<&str>,
        priority: u8,
    ) -> Result<(CurrentExecutor, Option<KeptExecutor>), SpawnProblem> {
        let place = CurrentPlace::get().ok_or(SpawnProblem::NoRuntime)?;
        let CurrentPlace { runtime, tokio } = place;
        check(&runtime, priority)?;
        let Some(handle) = tokio.filter(|_| !runtime.is_closing()) else {
            return Ok((CurrentExecutor::Runtime(runtime), None));
        };
        let (executor, kept) = TaskExecutor::start(&handle);
        Ok((CurrentExecutor::Tokio(executor), Some(kept)))
    }
}

/// The executor of an actor without a place.
#[derive(Clone)]
pub enum CurrentExecutor {
    Runtime(Arc<Inner>),
    Tokio(Arc<TaskExecutor>),
}

/// Calls the same function of either executor.
macro_rules! either {
    ($self:expr, $executor:ident => $call:expr) => {
        match $self {
            CurrentExecutor::Runtime($executor) => $call,
            CurrentExecutor::Tokio($executor) => $call,
        }
    };
}

impl Executor for CurrentExecutor {
    fn schedule(&self, runnable: Runnable, again: bool) {
        either!(self, it => it.schedule(runnable, again));
    }

    fn hooks(&self) -> &(dyn TaskHooks + 'static) {
        either!(self, it => it.hooks())
    }

    fn marks(&self) -> u8 {
        either!(self, it => it.marks())
    }

    fn is_observed(&self) -> bool {
        either!(self, it => it.is_observed())
    }

    fn track(&self, waker: &Waker) -> Option<LiveIndex> {
        either!(self, it => it.track(waker))
    }

    fn untrack(&self, live_index: LiveIndex) {
        either!(self, it => it.untrack(live_index));
    }

    fn task_dropped(&self) {
        either!(self, it => it.task_dropped());
    }
}

impl ActorExecutor for CurrentExecutor {
    fn enter(&self, cell: NonNull<Header>) -> bool {
        either!(self, it => it.enter(cell))
    }

    fn leave(&self, cell: NonNull<Header>) {
        either!(self, it => it.leave(cell));
    }

    fn is_closing(&self) -> bool {
        either!(self, it => it.is_closing())
    }

    fn batch(&self) -> u32 {
        either!(self, it => it.batch())
    }

    fn note_waits(&self, cell: NonNull<Header>, waits: NotedWaits) {
        either!(self, it => it.note_waits(cell, waits));
    }

    fn sampled(&self, cell: NonNull<Header>, took: Option<Duration>) {
        either!(self, it => it.sampled(cell, took));
    }

    fn discarded(&self) {
        either!(self, it => it.discarded());
    }
}

/// The executor of one actor, which its task runs.
pub struct TaskExecutor {
    slot: RunnableSlot,
    live: LiveCells,
    keeps: AtomicUsize,
    /// The task was dropped, or is being dropped.
    closing: AtomicBool,
}

impl TaskExecutor {
    /// Creates the executor of an actor, and its task.
    fn start(handle: &Handle) -> (Arc<TaskExecutor>, KeptExecutor) {
        let executor = Arc::new(TaskExecutor {
            slot: RunnableSlot::new(),
            live: LiveCells::new(1),
            keeps: AtomicUsize::new(1),
            closing: AtomicBool::new(false),
        });
        // If the runtime is shut down, this drops the task at once.
        drop(handle.spawn(ActorTask(executor.clone())));
        (executor.clone(), KeptExecutor(executor))
    }

    /// Gives up a keep (TOKIO-1).
    fn let_go(&self) {
        // AcqRel: accesses under the other keep happen before the end of the task.
        if self.keeps.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.slot.wake();
        }
    }
}

/// The keep of the thread that spawns the actor.
pub struct KeptExecutor(Arc<TaskExecutor>);

impl Drop for KeptExecutor {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

/// The task of one actor.
struct ActorTask(Arc<TaskExecutor>);

impl Future for ActorTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(runnable) = self.0.slot.take(Some(cx.waker())) {
            contain(|| runnable.run());
        }
        // Acquire pairs with the AcqRel in `let_go`.
        match self.0.keeps.load(Ordering::Acquire) {
            0 => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }
}

impl Drop for ActorTask {
    fn drop(&mut self) {
        let executor = &*self.0;
        // Release pairs with the Acquire in `is_closing`.
        executor.closing.store(true, Ordering::Release);
        executor.live.close_to_cells();
        loop {
            let left = executor.live.cancel_cells(&[]);
            match executor.slot.take(None) {
                Some(runnable) => contain(|| drop(runnable)),
                None if left == 0 => return,
                // Another thread has woken the actor and will put the runnable into the slot soon.
                None => yield_now(),
            }
        }
    }
}

impl Executor for Arc<TaskExecutor> {
    fn schedule(&self, runnable: Runnable, _again: bool) {
        self.slot.put(runnable);
    }

    fn hooks(&self) -> &(dyn TaskHooks + 'static) {
        &**self
    }
}

impl TaskHooks for TaskExecutor {
    fn report(&self, unhandled: &UnhandledFault<'_>) {
        match context::runtime() {
            Some(runtime) => runtime.report(unhandled),
            None => print_fault(unhandled),
        }
    }
}

impl ActorExecutor for Arc<TaskExecutor> {
    fn enter(&self, cell: NonNull<Header>) -> bool {
        let entered = self.live.enter(cell, Some(0));
        if entered {
            // Relaxed: the spawning thread holds the other keep.
            self.keeps.fetch_add(1, Ordering::Relaxed);
        }
        entered
    }

    fn leave(&self, cell: NonNull<Header>) {
        self.live.leave(cell);
        self.let_go();
    }

    fn is_closing(&self) -> bool {
        // Acquire pairs with the Release in the drop of the task.
        self.closing.load(Ordering::Acquire)
    }
}

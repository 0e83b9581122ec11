//! An actor that any executor can drive: polling its future runs the cell.
//!
//! The cell's executor is a slot for its one runnable. Scheduling the cell puts the runnable into
//! the slot and wakes the task that polled last. Polling takes the runnable out and runs it.
//!
//! # Invariants
//! - SPLIT-1: only the cell's one [`Split`] runs the cell, and takes or drops its result. So both
//!   happen where the `Split` is. It moves to another thread only if the actor and its future are
//!   `Send`.
#![expect(
    unsafe_code,
    reason = "the cell's result is taken without a join; see SPLIT-1 and CELL-3 in cell.rs"
)]

use std::future::Future;
use std::marker::PhantomData;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::address::Address;
use super::cell;
use super::core::CoreArc;
use super::spawn::ActorBuilder;
use crate::contain::counted;
use crate::error::{Fault, UnhandledFault};
use crate::mailbox::{Flags, Termination};
use crate::runtime::{Inner, context, print_fault};
use crate::sync::{mutant, yield_now};
use crate::task::{
    ActorExecutor, Executor, Header, Label, MessageEvent, Runnable, RunnableSlot, TaskHooks,
    TaskInfo,
};

impl<M, A, Fut> ActorBuilder<M, A, Fut> {
    /// Returns the actor as a future, which any executor can run, and its address.
    ///
    /// The actor behaves as a spawned one: `tell`, `ask`, `stop`, `kill` and
    /// [`closed`](Address::closed) work alike. The future is `Send` exactly if the actor and its
    /// future are. Dropping the future cancels the actor. The `priority` option is ignored, and may
    /// have any value.
    ///
    /// # Errors
    /// The future's output is the actor's result. It is a [`Fault`] if the actor panicked or was
    /// killed.
    ///
    /// # Panics
    /// If the `capacity` is 0. The future panics if it is polled again after completion.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the actor and drops its state.
    ///
    /// ```
    /// use greenroom::Context;
    ///
    /// async fn sum(mut cx: Context<u32>) -> u32 {
    ///     let mut sum = 0;
    ///     while let Some(number) = cx.recv().await {
    ///         sum += number;
    ///     }
    ///     sum
    /// }
    ///
    /// let (address, actor) = greenroom::actor(sum).split();
    /// address.tell(40).unwrap();
    /// address.tell(2).unwrap();
    /// drop(address);
    /// assert_eq!(futures::executor::block_on(actor).unwrap(), 42);
    /// ```
    #[track_caller]
    pub fn split(
        self,
    ) -> (
        Address<M>,
        impl Future<Output = Result<Fut::Output, Fault>> + use<M, A, Fut>,
    )
    where
        M: Send + 'static,
        A: 'static,
        Fut: Future + 'static,
    {
        let (parts, options) = self.take_apart();
        let executor = Arc::new(SplitExecutor {
            slot: RunnableSlot::new(),
            runtime: context::runtime().filter(|runtime| runtime.is_simulated()),
        });
        let (core, refused) = cell::new(executor.clone(), parts, options, Location::caller());
        debug_assert!(refused.is_none(), "this executor is never closed");
        // SAFETY: (CELL-2) a new cell comes with one address.
        let address = unsafe { Address::from_core(core) };
        let split = Split {
            // SAFETY: the reference that comes with the right to join.
            core: Some(unsafe { CoreArc::from_raw(core) }),
            executor,
            _actor: PhantomData::<(A, Fut)>,
        };
        (address, split)
    }
}

/// The future of [`ActorBuilder::split`].
#[must_use = "futures do nothing unless polled"]
pub struct Split<M, A, Fut> {
    /// `None` after completion.
    core: Option<CoreArc<M>>,
    executor: Arc<SplitExecutor>,
    _actor: PhantomData<(A, Fut)>,
}

// SAFETY: (SPLIT-1) the contents of the cell may move to the thread of the `Split`. The output need
// not be `Send`: one poll produces and takes it, and a drop finds only a fault.
unsafe impl<M: Send, A: Send, Fut: Send> Send for Split<M, A, Fut> {}
// SAFETY: a shared `Split` gives no access.
unsafe impl<M: Send, A, Fut> Sync for Split<M, A, Fut> {}

impl<M, A, Fut> Unpin for Split<M, A, Fut> {}

// A panic drops the actor and becomes its result, so no broken state stays visible.
impl<M, A, Fut> UnwindSafe for Split<M, A, Fut> {}
impl<M, A, Fut> RefUnwindSafe for Split<M, A, Fut> {}

impl<M, A, Fut: Future> Future for Split<M, A, Fut> {
    type Output = Result<Fut::Output, Fault>;

    /// Runs the actor if it is scheduled.
    ///
    /// # Panics
    /// If it is polled again after completion.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let core = this
            .core
            .as_ref()
            .expect("an actor polled after it was ready");
        if let Some(runnable) = this.executor.slot.take(Some(cx.waker())) {
            counted(|| runnable.run());
        }
        if !core.mailbox.state.peek().has(Flags::ENDED) {
            return Poll::Pending;
        }
        // SAFETY: (CELL-3, SPLIT-1) the actor has ended, and this `Split` alone may take the
        // result, which has this type.
        let result = unsafe { core.at().take_result() };
        this.core = None;
        // It will not be polled again, and addresses may keep the executor alive.
        this.executor.slot.take(None);
        Poll::Ready(result)
    }
}

impl<M, A, Fut> Drop for Split<M, A, Fut> {
    fn drop(&mut self) {
        let Some(core) = self.core.take() else {
            return;
        };
        core.at().terminate(Termination::Cancelled);
        while !core.mailbox.state.peek().has(Flags::ENDED) {
            match self.executor.slot.take(None) {
                Some(runnable) => counted(|| drop(runnable)),
                None if mutant("a_dropped_split_looks_once") => return,
                // Another thread has woken the actor and will put the runnable into the slot soon.
                None => yield_now(),
            }
        }
        core.mailbox.state.unjoin();
        // SAFETY: (CELL-3, SPLIT-1) the actor has ended, and this `Split` alone has a right to the
        // result.
        unsafe { core.at().drop_result() };
        // It will not be polled again, and addresses may keep the executor alive.
        self.executor.slot.take(None);
    }
}

/// The executor of a cell that its `Split` runs.
struct SplitExecutor {
    slot: RunnableSlot,
    /// The simulated runtime in which the actor was created, which traces its messages.
    runtime: Option<Arc<Inner>>,
}

impl Executor for Arc<SplitExecutor> {
    fn schedule(&self, runnable: Runnable, _again: bool) {
        self.slot.put(runnable);
    }

    fn hooks(&self) -> &(dyn TaskHooks + 'static) {
        &**self
    }

    fn marks(&self) -> u8 {
        u8::from(self.runtime.is_some()) * Label::TRACED
    }

    fn is_observed(&self) -> bool {
        self.runtime.is_some()
    }
}

impl ActorExecutor for Arc<SplitExecutor> {
    fn enter(&self, _cell: NonNull<Header>) -> bool {
        true
    }

    fn leave(&self, _cell: NonNull<Header>) {}

    fn is_closing(&self) -> bool {
        false
    }
}

impl TaskHooks for SplitExecutor {
    /// Reports panics of all but the actor's future, whose fault is the output.
    fn report(&self, unhandled: &UnhandledFault<'_>) {
        if unhandled.part().is_empty() {
            return;
        }
        match self.runtime.clone().or_else(context::runtime) {
            Some(runtime) => runtime.report(unhandled),
            None => print_fault(unhandled),
        }
    }

    fn completed(&self, task: &TaskInfo) {
        if let Some(runtime) = &self.runtime {
            runtime.engine().completed(task);
        }
    }

    fn restarted(&self, actor: &TaskInfo, incarnation: u64, fault: Option<&Fault>) {
        if let Some(runtime) = &self.runtime {
            runtime.restarted(actor, incarnation, fault);
        }
    }

    fn trace(&self, cell: TaskInfo, event: MessageEvent) {
        if let Some(runtime) = &self.runtime {
            runtime.trace(cell, event);
        }
    }
}

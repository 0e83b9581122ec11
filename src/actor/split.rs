//! An actor that any executor drives: the same cell, run by the poll of its future.
//!
//! The cell's executor has a slot for its one runnable. To schedule the cell means to put that there and
//! to wake the task that polled last; to poll means to take it out and run it.
//!
//! # Invariants
//! - SPLIT-1: the cell is run, and its result taken or dropped, only through its one [`Split`], so
//!   wherever that is; it may go to another thread only if the actor and its future may.
#![expect(
    unsafe_code,
    reason = "the cell's result is taken without a join; see SPLIT-1 and CELL-3 in cell.rs"
)]

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::address::Address;
use super::cell;
use super::core::Held;
use super::spawn::{ActorBuilder, shown};
use crate::contain::contain;
use crate::error::{Fault, UnhandledFault};
use crate::mailbox::{Flags, Termination};
use crate::runtime::{Inner, context, print_fault};
use crate::sync::{Mutex, mutant, yield_now};
use crate::task::{ActorExecutor, Executor, Header, LiveIndex, MessageEvent, Runnable, TaskInfo};

impl<M, A, Fut> ActorBuilder<M, A, Fut> {
    /// Gives the actor as a future, for any executor to run, with its address.
    ///
    /// It is the same actor as a spawned one: `tell`, `ask`, `stop`, `kill` and
    /// [`closed`](Address::closed) do what they do there. The future is `Send` exactly if the actor
    /// is. Dropping it cancels the actor. Nobody looks at its `priority`, which may be any.
    ///
    /// # Errors
    /// The future gives the actor's result, or the [`Fault`] that ended it.
    ///
    /// # Panics
    /// If an option is impossible.
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
    pub fn split(self) -> (Address<M>, Split<M, A, Fut>)
    where
        M: Send + 'static,
        A: 'static,
        Fut: Future + 'static,
    {
        if let Err(problem) = self.judge_options() {
            panic!("{}", self.describe(problem));
        }
        let show = self.shows();
        let (parts, options) = self.take_apart();
        let executor = Arc::new(SplitExecutor {
            slot: Mutex::new(RunnableSlot::default()),
            runtime: context::runtime().filter(|runtime| runtime.is_simulated()),
        });
        let Ok(core) = cell::new(executor.clone(), parts, options) else {
            unreachable!("nobody closes this executor")
        };
        let core = shown(core, show);
        // SAFETY: (CELL-2) a new cell comes with one address.
        let address = unsafe { Address::from_core(core) };
        let split = Split {
            // SAFETY: the reference that comes with the right to join.
            core: Some(unsafe { Held::from_raw(core) }),
            executor,
            _actor: PhantomData,
        };
        (address, split)
    }
}

/// The future of [`ActorBuilder::split`].
#[must_use = "futures do nothing unless polled"]
pub struct Split<M, A, Fut> {
    /// `None` once it was ready.
    core: Option<Held<M>>,
    executor: Arc<SplitExecutor>,
    _actor: PhantomData<(A, Fut)>,
}

// SAFETY: (SPLIT-1) what is in the cell may go where this goes. The output need not be `Send`: it is made
// and taken in one poll, and what a drop finds instead is a fault.
unsafe impl<M: Send, A: Send, Fut: Send> Send for Split<M, A, Fut> {}
// SAFETY: a shared `Split` gives no access.
unsafe impl<M: Send, A, Fut> Sync for Split<M, A, Fut> {}

impl<M, A, Fut> Unpin for Split<M, A, Fut> {}

// An actor that panics is dropped, and its panic kept.
impl<M, A, Fut> UnwindSafe for Split<M, A, Fut> {}
impl<M, A, Fut> RefUnwindSafe for Split<M, A, Fut> {}

impl<M, A, Fut: Future> Future for Split<M, A, Fut> {
    type Output = Result<Fut::Output, Fault>;

    /// # Panics
    /// If it is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let core = this
            .core
            .as_ref()
            .expect("an actor polled after it was ready");
        if let Some(runnable) = this.executor.take(Some(cx.waker())) {
            runnable.run();
        }
        if !core.mailbox.state.peek().has(Flags::ENDED) {
            return Poll::Pending;
        }
        // SAFETY: (CELL-3, SPLIT-1) ended, and this has the one right to the result, of this type.
        let result = unsafe { core.at().take_result() };
        this.core = None;
        this.executor.forget_waker();
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
            match self.executor.take(None) {
                Some(runnable) => drop(runnable),
                None if mutant("a_dropped_split_looks_once") => return,
                // Somebody has woken the actor and is about to bring its runnable.
                None => yield_now(),
            }
        }
        core.mailbox.state.unjoin();
        // SAFETY: (CELL-3, SPLIT-1) ended, and nobody else can ask for the result.
        unsafe { core.at().drop_result() };
        self.executor.forget_waker();
    }
}

impl<M, A, Fut> fmt::Debug for Split<M, A, Fut> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Split")
            .field("ready", &self.core.is_none())
            .finish()
    }
}

/// The executor of a cell that somebody else's executor drives.
struct SplitExecutor {
    slot: Mutex<RunnableSlot>,
    /// The simulated runtime in which it was made, which is told of its messages.
    runtime: Option<Arc<Inner>>,
}

#[derive(Default)]
struct RunnableSlot {
    runnable: Option<Runnable>,
    /// Of the task that polled last.
    waker: Option<Waker>,
}

impl SplitExecutor {
    /// Takes the runnable, if it is there; otherwise `waker` is woken when it is.
    fn take(&self, waker: Option<&Waker>) -> Option<Runnable> {
        let mut waker = waker.cloned();
        let mut slot = self.slot.lock();
        std::mem::swap(&mut slot.waker, &mut waker);
        let runnable = slot.runnable.take();
        drop(slot);
        contain(|| drop(waker));
        runnable
    }

    /// Nobody will poll again; addresses may live on, and keep this.
    fn forget_waker(&self) {
        self.take(None);
    }
}

impl Executor for Arc<SplitExecutor> {
    fn schedule(&self, runnable: Runnable, _again: bool) {
        let mut slot = self.slot.lock();
        slot.runnable = Some(runnable);
        // Taken, not cloned: that would be a call of the user's under the lock. The next poll leaves
        // another one.
        let waker = slot.waker.take();
        drop(slot);
        if let Some(waker) = waker {
            contain(|| waker.wake());
        }
    }

    fn track(&self, _waker: &Waker) -> Option<LiveIndex> {
        None
    }

    fn untrack(&self, _live_index: LiveIndex) {}

    /// What becomes of the actor is the future's result, so only its sources are left to tell of.
    fn report(&self, unhandled: &UnhandledFault<'_>) {
        if !unhandled.is_source {
            return;
        }
        match self.runtime.clone().or_else(context::runtime) {
            Some(runtime) => runtime.report(unhandled),
            None => print_fault(unhandled),
        }
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

    fn cancelled(&self) {}

    fn undelivered(&self, _messages: usize) {}

    fn is_traced(&self) -> bool {
        self.runtime.is_some()
    }

    fn is_observed(&self) -> bool {
        self.runtime.is_some()
    }

    fn completed(&self, task: &TaskInfo) {
        self.runtime
            .as_ref()
            .inspect(|runtime| runtime.engine().completed(task));
    }

    fn trace(&self, cell: TaskInfo, event: MessageEvent) {
        self.runtime
            .as_ref()
            .inspect(|runtime| runtime.trace(cell, event));
    }
}

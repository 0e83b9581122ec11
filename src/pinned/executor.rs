//! How tasks, actors and timers see a pinned thread, and how the runtime sees it on its own thread.
//!
//! A thread that pushes the first runnable into an empty inbox notifies the pinned thread, unless
//! it is that thread itself.

use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::local::PinnedLocal;
use super::thread::{Call, PinnedThread, ThreadKind};
use crate::contain::{contain, counted};
use crate::instant::Instant;
use crate::park::Parker;
use crate::runtime::context::{self, Role, ThreadContext};
use crate::runtime::{HostContext, HostThread, Inner};
use crate::sync::atomic::Ordering;
use crate::sync::mutant;
use crate::task::{ActorExecutor, Executor, Header, LiveIndex, NotedWaits, Runnable, TaskHooks};
use crate::task_local::TaskLocals;
use crate::timers::{TimerClock, Timers};

impl Executor for Arc<PinnedThread> {
    fn schedule(&self, runnable: Runnable, again: bool) {
        let runtime = self.runtime();
        if !runtime.is_here() {
            return runnable.leave_behind();
        }
        if runtime.is_simulated() {
            return self.schedule_simulated(runnable, again);
        }
        let mut inbox = self.inbox.lock();
        if inbox.closed {
            drop(inbox);
            // (PINNED-1) It was never polled.
            return contain(|| drop(runnable));
        }
        // Only the first runnable notifies the thread, which then takes the whole queue.
        let is_first = inbox.queue.is_empty();
        inbox.queue.push_back(runnable);
        inbox.pushed += 1;
        self.becomes_busy(&mut inbox);
        drop(inbox);
        if !is_first {
            return;
        }
        let own_thread = context::with(|context| {
            let local = context.and_then(PinnedLocal::of);
            local.is_some_and(|local| Arc::ptr_eq(&local.thread, self))
        });
        if !own_thread && !mutant("pinned_thread_is_not_unparked") {
            self.notify();
        }
    }

    fn hooks(&self) -> &(dyn TaskHooks + 'static) {
        self.runtime().hooks()
    }

    fn marks(&self) -> u8 {
        self.runtime().marks()
    }

    /// Returns whether the ends are observed by more than the policy, which has no part in pinned threads.
    fn is_observed(&self) -> bool {
        self.runtime().is_watching()
    }

    fn track(&self, waker: &Waker) -> Option<LiveIndex> {
        self.runtime().process().end_copy();
        // Acquire pairs with the Release in `end`.
        self.live
            .track(waker, Some(0), || self.over.load(Ordering::Acquire))
    }

    fn untrack(&self, live_index: LiveIndex) {
        self.runtime().process().end_copy();
        self.live.untrack(live_index);
    }
}

impl ActorExecutor for Arc<PinnedThread> {
    fn enter(&self, cell: NonNull<Header>) -> bool {
        let entered = self.live.enter(cell, Some(0));
        if entered {
            self.keep();
        }
        entered
    }

    fn leave(&self, cell: NonNull<Header>) {
        self.runtime().process().end_copy();
        self.live.leave(cell);
        self.runtime().host_progressed();
        self.let_go();
    }

    fn is_closing(&self) -> bool {
        self.is_closing_down()
    }

    fn batch(&self) -> u32 {
        self.runtime().batch()
    }

    fn note_waits(&self, cell: NonNull<Header>, waits: NotedWaits) {
        self.live.note_waits(cell, waits);
    }

    fn sampled(&self, cell: NonNull<Header>, took: Option<Duration>) {
        self.live.sampled(cell, took);
    }
}

impl TimerClock for PinnedThread {
    fn timers(&self) -> &Timers {
        &self.timers
    }

    fn armed(&self, earliest: bool, _waker: &Waker) {
        if earliest {
            self.parker.unpark();
        }
    }

    fn emptied(&self) {
        // The thread may be asleep until that deadline and would count as activity until then.
        self.parker.unpark();
    }

    fn parker(&self) -> Option<&Parker> {
        Some(&self.parker)
    }
}

impl HostContext for PinnedLocal {
    fn runtime(&self) -> &Arc<Inner> {
        self.thread.runtime()
    }

    fn clock(&self) -> Arc<dyn TimerClock> {
        match self.runtime().is_simulated() {
            false => self.thread.clone(),
            true => self.runtime().clone(),
        }
    }

    fn is_detached(&self) -> bool {
        matches!(self.thread.kind, ThreadKind::Detached)
    }

    fn living(&self) -> usize {
        let live = &self.thread.live;
        live.cells() + live.tasks() + self.hosted.borrow().len()
    }

    fn is_stage(&self) -> bool {
        matches!(self.thread.kind, ThreadKind::Stage(_))
    }

    /// Does what [`Stage::run_ready`](super::stage::Stage::run_ready) does after it has taken the
    /// call back.
    fn run_ready(&self) -> usize {
        let mut ready = None;
        // Counted after the timers were fired: the tasks that they woke are ready as well.
        self.run(|ran| ran < *ready.get_or_insert_with(|| self.thread.queued()))
    }

    /// Returns how long this thread may park.
    fn until_next(&self) -> Option<Duration> {
        self.thread.timers.until_next()
    }

    /// (CALL-1) Takes the call back before the stage runs, so that later pushes call again.
    fn take_call_back(&self) {
        self.thread.call().take_back();
    }

    /// Drops all that lives there, if that has not begun yet.
    fn end(&self) {
        let context = ThreadContext::new(self.thread.runtime(), Role::Pinned(self));
        let _entered = context.enter();
        TaskLocals::default().run(|| self.end_at(&context));
    }
}

impl PinnedLocal {
    /// Runs ready tasks while `goes_on` returns true for the number of turns so far; returns that
    /// number.
    pub(super) fn run(&self, goes_on: impl FnMut(usize) -> bool) -> usize {
        // Counted, and without the values in scope, since the thread is the program's.
        counted(|| TaskLocals::default().run(|| self.run_counted(goes_on)))
    }

    fn run_counted(&self, mut goes_on: impl FnMut(usize) -> bool) -> usize {
        let thread = &*self.thread;
        let context = ThreadContext::new(thread.runtime(), Role::Pinned(self));
        let _entered = context.enter();
        thread.timers.fire(Instant::now());
        let mut ran = 0;
        while !thread.is_over() && goes_on(ran) {
            let Some(runnable) = thread.pop(self) else {
                break;
            };
            thread.turn(&context, runnable);
            ran += 1;
        }
        if thread.is_over() {
            self.end_at(&context);
        }
        if thread.is_closing_down() {
            thread.runtime().host_progressed();
        }
        // A wake-up by a turn here makes no call, and the one for what is left was taken back.
        if thread.queued() > 0 {
            thread.call().call();
        }
        ran
    }

    fn end_at(&self, context: &ThreadContext<'_>) {
        if self.is_in_turn() {
            // The running task can't be dropped now: `run` ends the rest after the turn.
            self.thread.close();
            self.thread.finish();
        } else if !self.is_ending.replace(true) {
            counted(|| self.thread.end(self, context));
        }
    }

    /// Returns whether this is called in a turn of a task or an actor of this thread.
    fn is_in_turn(&self) -> bool {
        context::outward(|contexts| {
            let mut running = contexts.filter(|context| context.running.get().is_some());
            running.any(|context| {
                let local = PinnedLocal::of(context);
                local.is_some_and(|local| Arc::ptr_eq(&local.thread, &self.thread))
            })
        })
    }
}

impl PinnedThread {
    /// Returns the call that interrupts the loop of the stage.
    pub(super) fn call(&self) -> &Call {
        match &self.kind {
            ThreadKind::Stage(call) => call,
            ThreadKind::Own | ThreadKind::Detached => unreachable!("only a stage has a loop"),
        }
    }
}

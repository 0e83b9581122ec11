//! How tasks, actors and timers see a pinned thread: as an `Executor`, `ActorExecutor` and `Clock`.
//!
//! A thread that pushes the first runnable into an empty inbox notifies the pinned thread, unless
//! it is that thread itself.

use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;

use super::local::PinnedLocal;
use super::thread::PinnedThread;
use crate::contain::contain;
use crate::error::{Fault, UnhandledFault};
use crate::park::Parker;
use crate::runtime::Inner;
use crate::runtime::context;
use crate::sync::atomic::Ordering;
use crate::sync::{Process, mutant};
use crate::task::{
    ActorExecutor, Executor, Header, LiveIndex, MessageEvent, Runnable, TaskInfo, TaskKey,
};
use crate::timers::{Clock, Timers};
use crate::tracer::Tracer;

impl Executor for Arc<PinnedThread> {
    fn process(&self) -> Process {
        self.runtime().process()
    }

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

    fn track(&self, waker: &Waker) -> Option<LiveIndex> {
        self.process().end_copy();
        // Acquire pairs with the Release in `end`.
        self.live
            .track(waker, Some(0), || self.over.load(Ordering::Acquire))
    }

    fn untrack(&self, live_index: LiveIndex) {
        self.process().end_copy();
        self.live.untrack(live_index);
    }

    fn spawned(&self, task: impl FnOnce() -> TaskInfo, place: &'static Location<'static>) {
        self.runtime().note_place(task, place);
    }

    fn report(&self, unhandled: &UnhandledFault<'_>) {
        self.runtime().report(unhandled);
    }

    fn task_completed(&self) {
        if self.runtime().is_watching() {
            Inner::task_completed(self.runtime());
        }
    }

    fn looked_at(&self, task: TaskKey, has_ended: bool) {
        self.runtime().looked_at(task, has_ended);
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
        self.process().end_copy();
        self.live.leave(cell);
        self.runtime().host_progressed();
        self.let_go();
    }

    fn is_closing(&self) -> bool {
        self.is_closing_down()
    }

    fn cancelled(&self) {
        self.runtime().cancelled();
    }

    fn undelivered(&self, messages: usize) {
        self.runtime().undelivered(messages);
    }

    fn batch(&self) -> u32 {
        self.runtime().batch()
    }

    fn is_batch_chosen(&self) -> bool {
        self.runtime().is_batch_chosen()
    }

    fn is_observed(&self) -> bool {
        self.runtime().is_watching()
    }

    fn marks(&self) -> u8 {
        self.runtime().marks()
    }

    fn trace(&self, cell: TaskInfo, event: MessageEvent) {
        self.runtime().trace(cell, event);
    }

    fn tracer(&self) -> Option<&dyn Tracer> {
        Inner::tracer(self.runtime())
    }

    fn restarted(&self, actor: &TaskInfo, incarnation: u64, fault: Option<&Fault>) {
        Inner::restarted(self.runtime(), actor, incarnation, fault);
    }

    fn completed(&self, task: &TaskInfo) {
        Inner::completed(self.runtime(), task);
    }
}

impl Clock for PinnedThread {
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

//! A pinned thread as its tasks, actors and timers see it.
//!
//! Whoever puts the first thing into the inbox tells the thread, unless it is that thread itself.

use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;

use super::Seat;
use crate::contain::contain;
use crate::error::UnhandledFault;
use crate::park::Parker;
use crate::runtime::current::{self, Role};
use crate::runtime::{Inner, RunsOn};
use crate::sync::atomic::Ordering;
use crate::sync::{Process, mutant};
use crate::task::{
    ActorExecutor, Executor, Header, LiveIndex, MessageEvent, Runnable, TaskInfo, TaskKey,
};
use crate::timers::{Clock, Timers};

impl Executor for Arc<Seat> {
    fn process(&self) -> Process {
        self.runtime.process()
    }

    fn schedule(&self, runnable: Runnable, again: bool) {
        if !self.runtime.is_here() {
            return runnable.leave_behind();
        }
        if let Some(simulation) = self.runtime.simulation() {
            let runs_on = RunsOn::Seat(self.clone());
            return simulation.push(&self.runtime, runnable, again, &runs_on);
        }
        let mut inbox = self.inbox.lock();
        if inbox.closed {
            drop(inbox);
            // (E1) It was never polled.
            return contain(|| drop(runnable));
        }
        // With the first one the thread is told, and takes all that is there by then.
        let is_first = inbox.queue.is_empty();
        inbox.queue.push_back(runnable);
        inbox.pushed += 1;
        self.rise(&mut inbox);
        drop(inbox);
        if !is_first {
            return;
        }
        let own_thread = current::with(|place| {
            matches!(place.map(|place| place.role.get()),
                Some(Role::Pinned(local)) if Arc::ptr_eq(&local.seat, self))
        });
        if !own_thread && !mutant("seat_is_not_unparked") {
            self.notify();
        }
    }

    fn track(&self, waker: &Waker) -> Option<LiveIndex> {
        self.process().end_copy();
        // Acquire pairs with the Release in `end`.
        self.registry
            .track(waker, Some(0), || self.over.load(Ordering::Acquire))
    }

    fn untrack(&self, live_index: LiveIndex) {
        self.process().end_copy();
        self.registry.untrack(live_index);
    }

    fn report(&self, unhandled: &UnhandledFault<'_>) {
        self.runtime.report(unhandled);
    }

    fn task_completed(&self) {
        if self.runtime.is_watching() {
            Inner::task_completed(&self.runtime);
        }
    }

    fn looked_at(&self, task: TaskKey, has_ended: bool) {
        self.runtime.looked_at(task, has_ended);
    }
}

impl ActorExecutor for Arc<Seat> {
    fn enter(&self, cell: NonNull<Header>) -> bool {
        let entered = self.registry.enter(cell, Some(0));
        if entered {
            self.keep();
        }
        entered
    }

    fn leave(&self, cell: NonNull<Header>) {
        self.process().end_copy();
        self.registry.leave(cell);
        self.runtime.leave_seat();
        self.let_go();
    }

    fn is_closing(&self) -> bool {
        self.is_closing_down()
    }

    fn cancelled(&self) {
        self.runtime.cancelled();
    }

    fn undelivered(&self, messages: usize) {
        self.runtime.undelivered(messages);
    }

    fn batch(&self) -> u32 {
        self.runtime.batch()
    }

    fn is_batch_chosen(&self) -> bool {
        self.runtime.is_batch_chosen()
    }

    fn is_observed(&self) -> bool {
        self.runtime.is_watching()
    }

    fn is_traced(&self) -> bool {
        self.runtime.is_traced()
    }

    fn trace(&self, cell: TaskInfo, event: MessageEvent) {
        self.runtime.trace(cell, event);
    }

    fn completed(&self, task: &TaskInfo) {
        Inner::completed(&self.runtime, task);
    }
}

impl Clock for Seat {
    fn timers(&self) -> &Timers {
        &self.timers
    }

    fn next_changed(&self) {
        self.parker.unpark();
    }

    fn emptied(&self) {
        // The thread may sleep until that deadline, and count meanwhile.
        self.parker.unpark();
    }

    fn parker(&self) -> Option<&Parker> {
        Some(&self.parker)
    }
}

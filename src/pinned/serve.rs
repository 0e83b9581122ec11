//! The loop of a pinned thread, and how the thread ends.

use std::collections::VecDeque;
use std::sync::Arc;

use super::local::PinnedLocal;
use super::thread::PinnedThread;
use crate::contain::contain;
use crate::instant::Instant;
use crate::runtime::context::{Role, ThreadContext};
use crate::runtime::{HostPhase, HostThread};
use crate::sync::atomic::Ordering;
use crate::sync::{mutant, yield_now};
use crate::task::{Runnable, TaskKey};
use crate::timers::Pace;

/// A queue with a larger capacity frees its memory when it is empty.
const KEPT_MAX: usize = 1024;

impl PinnedThread {
    /// Takes the next runnable out of `hand`. If `hand` is empty, the whole inbox is moved there
    /// first.
    pub(super) fn pop(&self, local: &PinnedLocal) -> Option<Runnable> {
        let mut hand = local.hand.borrow_mut();
        if hand.is_empty() {
            if hand.capacity() > KEPT_MAX {
                *hand = VecDeque::new();
            }
            std::mem::swap(&mut *hand, &mut self.inbox.lock().queue);
        }
        let runnable = hand.pop_front()?;
        self.has_taken(1);
        Some(runnable)
    }

    /// Runs the thread, which counts as activity of the runtime from before it starts.
    pub(super) fn serve(self: &Arc<Self>) {
        let local = PinnedLocal::new(self);
        let context = ThreadContext::new(self.runtime(), Role::Pinned(&local));
        let _entered = context.enter();
        self.run_until_over(&local, &context);
        self.end(&local, &context);
        self.runtime().dec_activity();
        self.leave();
    }

    fn run_until_over(&self, local: &PinnedLocal, context: &ThreadContext<'_>) {
        let mut pace = Pace::new();
        while !self.is_over() {
            if !self.timers.is_empty()
                && let Some(now) = pace.is_time()
            {
                self.timers.fire(now);
            }
            if let Some(runnable) = self.pop(local) {
                self.turn(context, runnable);
                if self.is_closing_down() {
                    self.runtime().host_progressed();
                }
                continue;
            }
            // Acquire pairs with the AcqRel in `let_go`.
            if self.keeps.load(Ordering::Acquire) == 0 {
                return;
            }
            if self.timers.fire(Instant::now()) == 0 {
                self.park();
            }
        }
    }

    /// Waits for a runnable, or for the next deadline. A wait for a deadline counts as activity.
    fn park(&self) {
        let wait = self.timers.until_next();
        if wait.is_some() {
            self.parker.park_eagerly(wait);
            return;
        }
        let mut inbox = self.inbox.lock();
        inbox.idle = inbox.queue.is_empty();
        let idle = inbox.idle;
        drop(inbox);
        if idle {
            self.runtime().dec_activity();
            // That may have resolved `quiescent()`, and so have woken a task on this very thread.
            if mutant("a_pinned_thread_parks_without_a_second_look") || self.inbox.lock().idle {
                self.parker.park_eagerly(None);
            }
            self.becomes_busy(&mut self.inbox.lock());
        }
    }

    /// Drops all that lives on the thread.
    pub(super) fn end(&self, local: &PinnedLocal, context: &ThreadContext<'_>) {
        self.close();
        // Release pairs with the Acquire in `track` and in `is_over`.
        self.over.store(true, Ordering::Release);
        // As in the shutdown of the runtime: a drop may wait for a deadline.
        self.timers.close();
        let exempt = self.runtime().exempted();
        let spared = self.clear(local, &exempt);
        if !self.inbox.lock().closed {
            self.set_phase(HostPhase::Lingering);
            self.runtime().host_progressed();
            self.linger(context, spared);
            self.clear(local, &[]);
        }
        // Before the phase is set: a shutdown that sees the phase `Ended` then joins the thread.
        self.runtime().threads.leave();
        self.set_phase(HostPhase::Ended);
    }

    /// Cancels and drops all except exempt tasks and returns the runnables of those. If there is no
    /// exempt task, the inbox is closed.
    fn clear(&self, local: &PinnedLocal, exempt: &[TaskKey]) -> Vec<Runnable> {
        let mut spared = Vec::new();
        loop {
            let left = self.live.cancel_cells(exempt) + self.live.wake_tasks(exempt);
            let mut queue = local.hand.take();
            let mut inbox = self.inbox.lock();
            queue.append(&mut inbox.queue);
            let hosted = local.take_hosted();
            if left == 0 && queue.is_empty() && hosted.is_empty() {
                inbox.closed = spared.is_empty() && !self.live.holds(exempt);
                return spared;
            }
            drop(inbox);
            self.has_taken(queue.len());
            if queue.is_empty() && hosted.is_empty() {
                // Another thread has woken the last task and not pushed it yet.
                yield_now();
            }
            for runnable in queue {
                if exempt.contains(&runnable.key()) {
                    spared.push(runnable);
                } else {
                    contain(|| drop(runnable));
                }
            }
            for (_, value) in hosted {
                contain(|| drop(value));
            }
        }
    }

    /// Gives each task that awaits the shutdown one more turn, when the report is ready.
    fn linger(&self, context: &ThreadContext<'_>, spared: Vec<Runnable>) {
        self.runtime().wait_for_report();
        let mut queue = VecDeque::from(spared);
        loop {
            for runnable in queue.drain(..) {
                let key = runnable.key();
                if self.runtime().exempted().contains(&key) {
                    self.turn(context, runnable);
                    self.runtime().had_its_turn(key);
                } else {
                    contain(|| drop(runnable));
                }
            }
            std::mem::swap(&mut queue, &mut self.inbox.lock().queue);
            self.has_taken(queue.len());
            if queue.is_empty() {
                if !self.live.holds(&self.runtime().exempted()) {
                    return;
                }
                self.parker.park(None);
            }
        }
    }

    pub(super) fn turn(&self, context: &ThreadContext<'_>, runnable: Runnable) {
        context.running.set(Some(runnable.key()));
        if self.runtime().is_watching() {
            self.runtime().run_observed(None, runnable);
        } else {
            contain(|| runnable.run());
        }
        self.runtime().process().end_copy();
        context.running.set(None);
    }
}

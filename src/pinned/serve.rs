//! How a pinned thread starts, its loop, and how it ends. The thread of a simulation acts as each
//! pinned thread in turn.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use super::local::PinnedLocal;
use super::thread::{PinnedThread, ThreadKind};
use crate::contain::{contain, contain_uncounted};
use crate::instant::Instant;
use crate::runtime::context::{Role, ThreadContext};
use crate::runtime::{HostPhase, HostThread, Inner, RunsOn, ThreadStart};
use crate::scheduler::ClockPace;
use crate::sync::atomic::Ordering;
use crate::sync::{LEFT_BEHIND, mutant, yield_now};
use crate::task::{Runnable, TaskKey};

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
        let mut pace = ClockPace::new();
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
                loop {
                    let silence = self.runtime().until_silence();
                    if self.parker.park_eagerly(silence) || silence.is_none() {
                        break;
                    }
                    self.runtime().report_silence();
                    if !self.inbox.lock().idle {
                        break;
                    }
                }
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
    ///
    /// Drops meanwhile what else is pushed: a thread for which the shutdown waits may wait for that.
    fn linger(&self, context: &ThreadContext<'_>, mut spared: Vec<Runnable>) {
        let (runtime, is_reported) = (self.runtime(), Cell::new(false));
        loop {
            runtime.shutdown.wait_until(None, |state| {
                is_reported.set(state.is_reported());
                let exempt = state.exempted();
                let is_due = |it: &Runnable| state.is_reported() || !exempt.contains(&it.key());
                self.queued() > 0
                    || match spared.is_empty() {
                        // Exempt tasks that live here without being woken are waited for.
                        true => !self.live.holds(exempt),
                        false => spared.iter().any(is_due),
                    }
            });
            let queue = std::mem::take(&mut self.inbox.lock().queue);
            self.has_taken(queue.len());
            spared.extend(queue);
            if spared.is_empty() {
                return;
            }
            for runnable in std::mem::take(&mut spared) {
                let key = runnable.key();
                if !runtime.exempted().contains(&key) {
                    contain(|| drop(runnable));
                } else if is_reported.get() {
                    self.turn(context, runnable);
                    runtime.had_its_turn(key);
                } else {
                    spared.push(runnable);
                }
            }
        }
    }

    pub(super) fn turn(&self, context: &ThreadContext<'_>, runnable: Runnable) {
        context.running.set(Some(runnable.key()));
        if self.runtime().is_watching() {
            self.runtime().run_observed(None, runnable);
        } else {
            contain_uncounted(|| runnable.run());
        }
        self.runtime().process().end_copy();
        context.running.set(None);
    }
}

impl PinnedThread {
    /// Starts a pinned thread of this name.
    pub(super) fn start(runtime: &Arc<Inner>, name: String) -> io::Result<Arc<PinnedThread>> {
        if let Some(at) = name.find('\0') {
            let text = format!("a pinned thread's name has a NUL at byte {at}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        if !runtime.is_here() {
            return Err(io::Error::other(LEFT_BEHIND));
        }
        let thread = Arc::new(PinnedThread::new(runtime, name, ThreadKind::Own));
        match thread.enter() {
            Some(started) => started.map(|()| thread),
            None => Err(io::Error::other("the runtime is shutting down")),
        }
    }

    /// Starts a thread for one actor of this name. If the runtime is shutting down, no thread
    /// starts and the returned value accepts nothing.
    pub(super) fn start_detached(
        runtime: &Arc<Inner>,
        name: Option<&str>,
    ) -> io::Result<Arc<PinnedThread>> {
        // The name of an actor is any text; the name of a thread must not contain NUL.
        let name = name
            .unwrap_or("greenroom-detached")
            .replace('\0', "\u{fffd}");
        let thread = Arc::new(PinnedThread::new(runtime, name, ThreadKind::Detached));
        match thread.enter() {
            Some(started) => started?,
            None => thread.close(),
        }
        Ok(thread)
    }

    /// Makes the calling thread a pinned one, which accepts nothing if the runtime is shutting
    /// down.
    pub(super) fn start_here(
        runtime: &Arc<Inner>,
        name: String,
        kind: ThreadKind,
    ) -> Arc<PinnedThread> {
        let thread = Arc::new(PinnedThread::new(runtime, name, kind));
        // A stage counts as activity of the runtime as long as it lives.
        runtime.inc_activity();
        if runtime.hosts.enter(thread.clone(), || Ok(())).is_none() {
            thread.close();
        }
        thread
    }

    /// Starts the thread; returns `None` if the runtime is shutting down.
    fn enter(self: &Arc<Self>) -> Option<io::Result<()>> {
        let runtime = self.runtime();
        // In a simulation a pinned thread has no thread of the system.
        if runtime.is_simulated() {
            return runtime.hosts.enter(self.clone(), || Ok(()));
        }
        let start = || {
            runtime.inc_activity();
            let own = self.clone();
            runtime.start_thread(self.name().to_owned(), move || own.serve())
        };
        // Waits for the thread only when the lock of the hosts is free again.
        let entered = runtime.hosts.enter(self.clone(), start)?;
        let started = entered.and_then(ThreadStart::wait);
        if started.is_err() {
            // A thread that did not start does not count, also if a shutdown has seen it.
            self.set_phase(HostPhase::Ended);
            runtime.dec_activity();
            self.leave();
        }
        Some(started)
    }
}

std::thread_local! {
    /// The locals of the pinned threads of the simulations that this thread drives. Only those that
    /// host something, or are being visited, are here. The key is the address of the
    /// `PinnedThread`, which its local keeps alive.
    static LOCALS: RefCell<HashMap<usize, Rc<PinnedLocal>>> = RefCell::new(HashMap::new());
}

impl PinnedThread {
    /// Makes the calling thread, which drives the simulation, act as this pinned thread during
    /// `visit`.
    fn visit<R>(self: &Arc<Self>, visit: impl FnOnce(&PinnedLocal, &ThreadContext<'_>) -> R) -> R {
        let key = Arc::as_ptr(self).addr();
        let new = || Rc::new(PinnedLocal::new(self));
        // While the thread ends, the thread-local may be destroyed, and all values with it.
        let local = LOCALS.try_with(|locals| {
            let mut locals = locals.borrow_mut();
            locals.entry(key).or_insert_with(new).clone()
        });
        let local = local.unwrap_or_else(|_| new());
        let context = ThreadContext::new(self.runtime(), Role::Pinned(&*local));
        let entered = context.enter();
        let result = visit(&local, &context);
        drop(entered);
        if local.hosted.borrow().is_empty() {
            let gone = LOCALS.try_with(|locals| locals.borrow_mut().remove(&key));
            drop(gone);
        }
        result
    }

    pub(super) fn schedule_simulated(self: &Arc<Self>, runnable: Runnable, again: bool) {
        let runs_on = RunsOn::Host(self.clone());
        let engine = self.runtime().engine();
        if let Err(refused) = engine.take(self.runtime(), runnable, again, &runs_on) {
            // (PINNED-1) It was never polled.
            contain(|| drop(refused));
        }
    }

    pub(super) fn run_here(self: &Arc<Self>, runnable: Runnable) {
        self.visit(|_, context| self.turn(context, runnable));
    }

    pub(super) fn drop_here(self: &Arc<Self>, runnable: Runnable) {
        self.visit(|_, _| contain(|| drop(runnable)));
    }

    /// Cancels all that lives here except exempt tasks, drops all hosted values; returns how much
    /// is left.
    pub(super) fn clear_here(self: &Arc<Self>, exempt: &[TaskKey]) -> usize {
        self.live.cancel_cells(exempt);
        self.live.wake_tasks(exempt);
        self.visit(|local, _| {
            for (_, value) in local.take_hosted() {
                contain(|| drop(value));
            }
        });
        self.live.others(exempt)
    }
}

//! One pinned thread, as all threads see it: its inbox, what lives there, and how far it is.
//!
//! # Invariants
//! - PINNED-1: once a future here was polled, it is polled and dropped by its thread only. A
//!   runnable that reaches the inbox after its end was never polled. In a simulation the thread that
//!   drives it is that of all pinned threads (SIM-1).
//! - PINNED-2: `keeps` counts the clones of `Pinned` and all that lives on the thread; at zero nobody can
//!   add to it.
#![expect(
    unsafe_code,
    reason = "futures that are not `Send` are spawned here; see PINNED-1"
)]

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::task::Waker;

use futures_util::FutureExt;
use futures_util::future::lazy;

use super::call::Call;
use crate::park::{self, Parker};
use crate::runtime::{HostPhase, HostThread, Inner, LiveCells};
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use crate::sync::{CachePadded, Mutex, mutant};
use crate::task::{Job, Runnable, Task, TaskKey, spawn_unchecked};
use crate::timers::Timers;

pub struct PinnedThread {
    name: String,
    pub(super) kind: ThreadKind,
    runtime: Arc<Inner>,
    pub(super) inbox: CachePadded<Mutex<Inbox>>,
    /// How many have been taken to be run; its thread alone adds to it.
    taken: CachePadded<AtomicUsize>,
    pub(super) parker: Arc<Parker>,
    pub(super) timers: Timers,
    pub(crate) live: LiveCells,
    pub(super) keeps: AtomicUsize,
    /// Nothing new begins.
    closing: AtomicBool,
    /// Nothing runs any more.
    pub(super) over: AtomicBool,
    /// How far its thread is: a [`HostPhase`].
    phase: AtomicUsize,
}

// As for `Inner`; what panics on it is dropped.
impl UnwindSafe for PinnedThread {}
impl RefUnwindSafe for PinnedThread {}

/// Whose thread it is.
pub(super) enum ThreadKind {
    /// One of its own.
    Own,
    /// One of its own with one actor and nothing else, which may wait as it likes.
    Detached,
    /// That of somebody who lets it run now and then.
    Stage(Call),
}

pub(super) struct Inbox {
    pub(super) queue: VecDeque<Runnable>,
    /// The thread waits, for nothing but this queue: it does not count as work of the runtime.
    pub(super) idle: bool,
    /// How many were ever put here.
    pub(super) pushed: usize,
    /// How many of these were put here before the shutdown began.
    before: usize,
    pub(super) closed: bool,
}

impl PinnedThread {
    pub(super) fn new(runtime: &Arc<Inner>, name: String, kind: ThreadKind) -> Self {
        PinnedThread {
            name,
            parker: match kind {
                ThreadKind::Stage(_) => park::own(),
                ThreadKind::Own | ThreadKind::Detached => Arc::new(Parker::new()),
            },
            kind,
            runtime: runtime.clone(),
            inbox: CachePadded(Mutex::new(Inbox {
                queue: VecDeque::new(),
                idle: false,
                pushed: 0,
                before: 0,
                closed: false,
            })),
            taken: CachePadded(AtomicUsize::new(0)),
            timers: Timers::new(),
            live: LiveCells::new(1),
            keeps: AtomicUsize::new(1),
            closing: AtomicBool::new(false),
            over: AtomicBool::new(false),
            phase: AtomicUsize::new(HostPhase::Running as usize),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn runtime(&self) -> &Arc<Inner> {
        &self.runtime
    }

    /// Adds to what keeps the thread; the caller is, or belongs to, something that does.
    pub(super) fn keep(&self) {
        // Relaxed: a new keep comes from one that is held (PINNED-2).
        self.keeps.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn let_go(self: &Arc<Self>) {
        // AcqRel: what was done under the other keeps is done before the thread ends.
        if self.keeps.fetch_sub(1, Ordering::AcqRel) == 1 && self.runtime.is_here() {
            if self.runtime.is_simulated() {
                self.leave();
            } else {
                // A stage stays until it is dropped.
                self.parker.unpark();
            }
        }
    }

    /// Notes with its runtime that it has ended.
    pub(super) fn leave(self: &Arc<Self>) {
        let host: Arc<dyn HostThread> = self.clone();
        self.runtime.hosts.leave(&host);
        self.runtime.host_progressed();
    }

    /// Spawns a plain task on the thread; one that has ended gives a cancelled task.
    pub(super) fn spawn<F, Fut>(this: &Arc<PinnedThread>, make: F) -> Task<Fut::Output>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future + 'static,
        Fut::Output: Send + 'static,
    {
        let kept = Kept::new(this);
        // Not `async`: that would drop what panics itself, and a drop that panics then ends the process.
        let future = lazy(|_| make()).flatten().map(move |value| {
            drop(kept);
            value
        });
        // SAFETY: (PINNED-1) before its first poll the future holds nothing but `make`, which is `Send`;
        // from then on its thread alone polls and drops it.
        unsafe { spawn_unchecked(this.clone(), future) }
    }

    /// Has `job` called on the thread, which something keeps meanwhile.
    pub(super) fn send<F, R>(
        self: &Arc<PinnedThread>,
        job: F,
        waker: Waker,
    ) -> Job<Arc<PinnedThread>, F, R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        Job::new(self, self.runtime.is_watching(), job, waker)
    }

    /// Counts what the thread has taken. Whoever closes sees that, or the thread sees it close and tells
    /// it that there is less to wait for.
    pub(super) fn has_taken(&self, count: usize) {
        // Relaxed: its thread alone changes it.
        let taken = self.taken.load(Ordering::Relaxed) + count;
        // Release pairs with the Acquire in `before`.
        self.taken.store(taken, Ordering::Release);
        if !mutant("taken_without_fence") {
            // SeqCst pairs with the fence in `close`.
            fence(Ordering::SeqCst);
        }
    }

    /// How many wait to be run; on its thread.
    pub(super) fn queued(&self) -> usize {
        let pushed = self.inbox.lock().pushed;
        // Relaxed: its thread alone changes it.
        pushed - self.taken.load(Ordering::Relaxed)
    }

    /// Whether its thread has something to do.
    pub(super) fn is_wanted(&self) -> bool {
        self.queued() > 0 || (self.is_over() && !self.has_ended())
    }

    /// Whether the shutdown waits for what is here.
    pub(super) fn is_closing_down(&self) -> bool {
        // Acquire pairs with the Release in `close`.
        self.closing.load(Ordering::Acquire)
    }

    /// Whether all is dropped.
    pub(super) fn has_ended(&self) -> bool {
        self.phase() == HostPhase::Ended
    }

    pub(super) fn is_over(&self) -> bool {
        // Acquire pairs with the Release in `finish`.
        self.over.load(Ordering::Acquire)
    }

    /// The thread has something to do from now on.
    pub(super) fn becomes_busy(&self, inbox: &mut Inbox) {
        if std::mem::take(&mut inbox.idle) {
            self.runtime.inc_activity();
        }
    }

    /// Has what drives the thread come and run what is ready.
    pub(super) fn notify(&self) {
        self.parker.unpark();
        if let ThreadKind::Stage(call) = &self.kind {
            call.call();
        }
    }

    /// Notes how far its thread is.
    pub(super) fn set_phase(&self, phase: HostPhase) {
        // Release pairs with the Acquire in `phase`.
        self.phase.store(phase as usize, Ordering::Release);
    }
}

impl HostThread for PinnedThread {
    fn live(&self) -> &LiveCells {
        &self.live
    }

    fn close(&self) {
        // Release pairs with the Acquire in `is_closing_down`.
        self.closing.store(true, Ordering::Release);
        // SeqCst pairs with the fence in `has_taken`.
        fence(Ordering::SeqCst);
        self.live.close_to_cells();
    }

    fn stop_cells(&self) {
        self.live.stop_cells();
        let mut inbox = self.inbox.lock();
        inbox.before = inbox.pushed;
    }

    fn before(&self) -> usize {
        let before = self.inbox.lock().before;
        // Acquire pairs with the Release in `has_taken`.
        before.saturating_sub(self.taken.load(Ordering::Acquire))
    }

    fn finish(&self) {
        // Release pairs with the Acquire in the thread's loop.
        self.over.store(true, Ordering::Release);
        self.notify();
    }

    fn phase(&self) -> HostPhase {
        // Acquire pairs with the Release in `set_phase`.
        let phase = self.phase.load(Ordering::Acquire);
        let all = [HostPhase::Running, HostPhase::Lingering, HostPhase::Ended];
        all[phase]
    }

    fn run_simulated(self: Arc<Self>, runnable: Runnable) {
        self.run_here(runnable);
    }

    fn drop_simulated(self: Arc<Self>, runnable: Runnable) {
        self.drop_here(runnable);
    }

    fn clear_simulated(self: Arc<Self>, exempt: &[TaskKey]) -> usize {
        self.clear_here(exempt)
    }
}

/// Keeps a pinned thread while something lives on it.
pub(super) struct Kept(Arc<PinnedThread>);

impl Kept {
    pub(super) fn new(thread: &Arc<PinnedThread>) -> Self {
        thread.keep();
        Kept(thread.clone())
    }

    pub(super) fn thread(&self) -> &Arc<PinnedThread> {
        &self.0
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

//! `PinnedThread`, the part of a pinned thread that all threads share: its inbox, its live cells,
//! its phase. A foreign loop that drives it is interrupted by a call.
//!
//! # Invariants
//! - PINNED-1: Once a future here was polled, only its thread polls and drops it. A runnable that
//!   reaches the inbox after the thread's end was never polled. If its thread has spawned it, only
//!   that thread drops it also before the first poll: it is pushed once until then, by that thread.
//!   In a simulation, the thread that drives it acts as every pinned thread (SIM-1).
//! - PINNED-2: `keeps` counts the clones of `Pinned` and all that lives on the thread. A new keep
//!   comes from one that is held, so at zero the count cannot grow again.
//! - CALL-1: A thread that has pushed to the inbox makes the call after that, unless a call is
//!   already pending. The stage's thread takes the call back before it looks into the inbox. Both
//!   hold the same lock, so either the call is made again or the look finds what was pushed.

#![expect(
    unsafe_code,
    reason = "futures that are not `Send` are spawned here; see PINNED-1"
)]

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::lazy;

use crate::contain::{KeptWaker, contain};
use crate::park::{self, Parker};
use crate::runtime::{HostPhase, HostThread, Inner, LiveCells};
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use crate::sync::{CachePadded, Mutex, mutant};
use crate::task::{HostedJob, Runnable, Task, TaskKey, spawn_unchecked};
use crate::timers::Timers;

pub struct PinnedThread {
    name: String,
    pub(super) kind: ThreadKind,
    runtime: Arc<Inner>,
    pub(super) inbox: CachePadded<Mutex<PinnedInbox>>,
    /// The number of runnables that were taken out to run or drop; only its thread adds to it.
    taken: CachePadded<AtomicUsize>,
    pub(super) parker: Arc<Parker>,
    pub(super) timers: Timers,
    pub(crate) live: LiveCells,
    pub(super) keeps: AtomicUsize,
    /// Nothing new may begin.
    closing: AtomicBool,
    /// Nothing may run any longer, except exempt tasks.
    pub(super) over: AtomicBool,
    /// The phase of the thread: a [`HostPhase`].
    phase: AtomicUsize,
}

// As for `Inner`: a task that panics is dropped.
impl UnwindSafe for PinnedThread {}
impl RefUnwindSafe for PinnedThread {}

/// How the thread is driven.
pub(super) enum ThreadKind {
    /// A thread that greenroom started, for any number of tasks.
    Own,
    /// A thread that greenroom started for one actor, which may block it.
    Detached,
    /// A thread of the program, whose foreign loop drives it.
    Stage(Call),
}

pub(super) struct PinnedInbox {
    pub(super) queue: VecDeque<Runnable>,
    /// The thread waits for this queue only, so it does not count as activity of the runtime.
    pub(super) idle: bool,
    /// The number of runnables that were ever pushed here.
    pub(super) pushed: usize,
    /// How many of these were pushed before the shutdown began.
    before: usize,
    pub(super) closed: bool,
}

impl PinnedThread {
    pub(super) fn new(runtime: &Arc<Inner>, name: String, kind: ThreadKind) -> Self {
        PinnedThread {
            live: LiveCells::of_thread(&name),
            name,
            parker: match kind {
                // A `block_on` of the program parks there, and is to wake up for the stage.
                ThreadKind::Stage(_) => park::own(),
                ThreadKind::Own | ThreadKind::Detached => Arc::new(Parker::new()),
            },
            kind,
            runtime: runtime.clone(),
            inbox: CachePadded(Mutex::new(PinnedInbox {
                queue: VecDeque::new(),
                idle: false,
                pushed: 0,
                before: 0,
                closed: false,
            })),
            taken: CachePadded(AtomicUsize::new(0)),
            timers: Timers::new(),
            // (PINNED-2) That of the first `Pinned`.
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

    /// Adds a keep; the caller must hold one, or belong to a holder.
    pub(super) fn keep(&self) {
        // Relaxed: a new keep comes from one that is held (PINNED-2).
        self.keeps.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn let_go(self: &Arc<Self>) {
        // AcqRel: accesses under all other keeps happen before the end of the thread.
        if self.keeps.fetch_sub(1, Ordering::AcqRel) == 1 && self.runtime.is_here() {
            if self.runtime.is_simulated() {
                self.leave();
            } else {
                // A stage stays until it is dropped.
                self.parker.unpark();
            }
        }
    }

    /// Tells the runtime that the thread has ended.
    pub(super) fn leave(self: &Arc<Self>) {
        let host: Arc<dyn HostThread> = self.clone();
        self.runtime.hosts.leave(&host);
        self.runtime.host_progressed();
    }

    /// Spawns a plain task on the thread, at `location` in the program; if the thread has ended, the
    /// task is a cancelled one.
    pub(super) fn spawn<F, Fut>(
        this: &Arc<PinnedThread>,
        make: F,
        location: Option<&'static Location<'static>>,
    ) -> Task<Fut::Output>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future + 'static,
        Fut::Output: Send + 'static,
    {
        let kept = ThreadKeep::new(this);
        // Not `async`: such a future would drop a part that panics itself, and a second panic in
        // that drop would abort the process.
        let future = lazy(|_| make()).flatten().map(move |value| {
            drop(kept);
            value
        });
        // SAFETY: (PINNED-1) before its first poll the future holds nothing but `make`, which is
        // `Send`; from then on only its thread polls and drops it.
        unsafe { spawn_unchecked::<Fut, _, _>(this.clone(), future, location) }
    }

    /// Sends `job` to be called on the thread; the caller holds a keep meanwhile.
    pub(super) fn send<F, R>(
        self: &Arc<PinnedThread>,
        job: F,
        waker: KeptWaker,
    ) -> HostedJob<Arc<PinnedThread>, F, R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        HostedJob::new(self, self.runtime.is_watching(), job, waker)
    }

    /// Counts runnables that the thread has taken. Either the thread that closes sees the new
    /// count, or this thread sees `closing` and notifies the shutdown.
    pub(super) fn has_taken(&self, count: usize) {
        // Relaxed: only this thread changes it.
        let taken = self.taken.load(Ordering::Relaxed) + count;
        // Release pairs with the Acquire in `before`.
        self.taken.store(taken, Ordering::Release);
        if !mutant("taken_without_fence") {
            // SeqCst pairs with the fence in `close`.
            fence(Ordering::SeqCst);
        }
    }

    /// Returns the number of runnables that wait to run; called on its thread.
    pub(super) fn queued(&self) -> usize {
        let pushed = self.inbox.lock().pushed;
        // Relaxed: only this thread changes it.
        pushed - self.taken.load(Ordering::Relaxed)
    }

    /// Returns whether its thread has something to do.
    pub(super) fn is_wanted(&self) -> bool {
        self.queued() > 0 || (self.is_over() && !self.has_ended())
    }

    /// Returns whether a shutdown waits for what lives here.
    pub(super) fn is_closing_down(&self) -> bool {
        // Acquire pairs with the Release in `close`.
        self.closing.load(Ordering::Acquire)
    }

    /// Returns whether all that lived here was dropped.
    pub(super) fn has_ended(&self) -> bool {
        self.phase() == HostPhase::Ended
    }

    pub(super) fn is_over(&self) -> bool {
        // Acquire pairs with the Release in `finish`.
        self.over.load(Ordering::Acquire)
    }

    /// Counts the thread as activity of the runtime again, if it was idle.
    pub(super) fn becomes_busy(&self, inbox: &mut PinnedInbox) {
        if std::mem::take(&mut inbox.idle) {
            self.runtime.inc_activity();
        }
    }

    /// Wakes the thread, or interrupts its foreign loop, to run what is ready.
    pub(super) fn notify(&self) {
        self.parker.unpark();
        let lingers = self.phase() == HostPhase::Lingering;
        if lingers && !mutant("a_thread_that_stays_does_not_look_at_its_inbox") {
            self.runtime.shutdown.notify();
        }
        if let ThreadKind::Stage(call) = &self.kind {
            call.call();
        }
    }

    /// Sets how far the end of the thread is.
    pub(super) fn set_phase(&self, phase: HostPhase) {
        // Release pairs with the Acquire in `phase`.
        self.phase.store(phase as usize, Ordering::Release);
    }
}

impl HostThread for PinnedThread {
    fn live(&self) -> &LiveCells {
        &self.live
    }

    fn timers(&self) -> usize {
        self.timers.len()
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
        // Release pairs with the Acquire in `is_over`.
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

/// A keep of a pinned thread, for as long as something lives on it.
pub(super) struct ThreadKeep(Arc<PinnedThread>);

impl ThreadKeep {
    pub(super) fn new(thread: &Arc<PinnedThread>) -> Self {
        thread.keep();
        ThreadKeep(thread.clone())
    }

    pub(super) fn thread(&self) -> &Arc<PinnedThread> {
        &self.0
    }
}

impl Drop for ThreadKeep {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

/// A function that is called at most once until the call is taken back.
pub(super) struct Call(Mutex<CallState>);

struct CallState {
    is_called: bool,
    function: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Call {
    pub(super) fn new() -> Self {
        Call(Mutex::new(CallState {
            is_called: false,
            function: None,
        }))
    }

    /// Sets the function and marks it as not called; `None` removes it.
    pub(super) fn set(&self, function: Option<Arc<dyn Fn() + Send + Sync>>) {
        let mut state = self.0.lock();
        state.is_called = false;
        let before = std::mem::replace(&mut state.function, function);
        drop(state);
        contain(|| drop(before));
    }

    /// Calls the function on this thread, unless a call is already pending.
    pub(super) fn call(&self) {
        let mut state = self.0.lock();
        if std::mem::replace(&mut state.is_called, true) {
            return;
        }
        let function = state.function.clone();
        drop(state);
        if let Some(function) = function {
            contain(|| function());
            // This may be the last reference, so the drop may run user code.
            contain(|| drop(function));
        }
    }

    /// Takes the call back: the next `call` calls the function again.
    pub(super) fn take_back(&self) {
        if !mutant("a_call_is_not_taken_back") {
            self.0.lock().is_called = false;
        }
    }
}

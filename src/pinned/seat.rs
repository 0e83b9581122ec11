//! One pinned thread: its inbox, its loop, and its end.
//!
//! # Invariants
//! - E1: once a future here was polled, it is polled and dropped by the seat's thread only. A
//!   runnable that reaches the inbox after its end was never polled. In a simulation the thread that
//!   drives it is that of all seats (V1 in simulation.rs).
//! - E2: `keeps` counts the clones of `Pinned` and all that lives on the thread; at zero nobody can
//!   add to it.
#![expect(
    unsafe_code,
    reason = "futures that are not `Send` are spawned here; see E1"
)]

mod executor;

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::task::Waker;

use futures_util::FutureExt;
use futures_util::future::lazy;

use super::call::Call;
use super::local::Local;
use crate::contain::contain;
use crate::instant::Instant;
use crate::park::{self, Parker};
use crate::runtime::current::{self, Place, Role};
use crate::runtime::{Inner, Registry};
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use crate::sync::{Apart, Mutex, mutant, yield_now};
use crate::task::{Job, Runnable, Task, TaskKey, spawn_unchecked};
use crate::timers::{Pace, Timers};

pub struct Seat {
    name: String,
    pub(super) kind: Kind,
    runtime: Arc<Inner>,
    inbox: Apart<Mutex<Inbox>>,
    /// How many have been taken to be run; its thread alone adds to it.
    taken: Apart<AtomicUsize>,
    pub(super) parker: Arc<Parker>,
    pub(super) timers: Timers,
    pub(crate) registry: Registry,
    keeps: AtomicUsize,
    /// Nothing new begins.
    closing: AtomicBool,
    /// Nothing runs any more.
    over: AtomicBool,
    /// How far its thread is: [`RUNNING`], [`LINGERING`] or [`ENDED`].
    stage: AtomicUsize,
}

// As for `Inner`; what panics on it is dropped.
impl UnwindSafe for Seat {}
impl RefUnwindSafe for Seat {}

/// Whose thread it is.
pub(super) enum Kind {
    /// One of its own.
    Own,
    /// One of its own with one actor and nothing else, which may wait as it likes.
    Detached,
    /// That of somebody who lets it run now and then.
    Stage(Call),
}

pub(super) const RUNNING: usize = 0;
/// All is dropped but a task that awaits the shutdown of the runtime.
const LINGERING: usize = 1;
/// All is dropped.
pub(super) const ENDED: usize = 2;

struct Inbox {
    queue: VecDeque<Runnable>,
    /// The thread waits, for nothing but this queue: it does not count as work of the runtime.
    idle: bool,
    /// How many were ever put here.
    pushed: usize,
    /// How many of these were put here before the shutdown began.
    before: usize,
    closed: bool,
}

/// A queue that has grown beyond this gives its memory back when it is empty.
const KEPT_MAX: usize = 1024;

impl Seat {
    pub(super) fn new(runtime: &Arc<Inner>, name: String, kind: Kind) -> Self {
        Seat {
            name,
            parker: match kind {
                Kind::Stage(_) => park::own(),
                Kind::Own | Kind::Detached => Arc::new(Parker::new()),
            },
            kind,
            runtime: runtime.clone(),
            inbox: Apart(Mutex::new(Inbox {
                queue: VecDeque::new(),
                idle: false,
                pushed: 0,
                before: 0,
                closed: false,
            })),
            taken: Apart(AtomicUsize::new(0)),
            timers: Timers::new(),
            registry: Registry::new(1),
            keeps: AtomicUsize::new(1),
            closing: AtomicBool::new(false),
            over: AtomicBool::new(false),
            stage: AtomicUsize::new(RUNNING),
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
        // Relaxed: a new keep comes from one that is held (E2).
        self.keeps.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn let_go(self: &Arc<Self>) {
        // AcqRel: what was done under the other keeps is done before the thread ends.
        if self.keeps.fetch_sub(1, Ordering::AcqRel) == 1 && self.runtime.is_here() {
            match self.runtime.simulation() {
                // A stage stays until it is dropped.
                None => self.parker.unpark(),
                Some(_) => self.runtime.seats.leave(self),
            }
        }
    }

    /// Spawns a plain task on the thread; one that has ended gives a cancelled task.
    pub(super) fn spawn<F, Fut>(this: &Arc<Seat>, make: F) -> Task<Fut::Output>
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
        // SAFETY: (E1) before its first poll the future holds nothing but `make`, which is `Send`;
        // from then on the seat's thread alone polls and drops it.
        unsafe { spawn_unchecked(this.clone(), future) }
    }

    /// Has `job` called on the thread, which something keeps meanwhile.
    pub(super) fn send<F, R>(self: &Arc<Seat>, job: F, waker: Waker) -> Job<Arc<Seat>, F, R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        Job::new(self, self.runtime.is_watching(), job, waker)
    }

    /// Calls `job` with what is local to the thread this is called on, which is a seat's.
    pub(super) fn with_local<R>(job: impl FnOnce(&Local) -> R) -> R {
        current::with(|place| match place.map(|place| place.role.get()) {
            Some(Role::Pinned(local)) => job(local),
            _ => unreachable!("jobs of a seat run on its thread"),
        })
    }

    /// Takes the next runnable, out of the thread's hand; if that is empty, all that is in the inbox
    /// comes there at once.
    pub(super) fn pop(&self, local: &Local) -> Option<Runnable> {
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

    /// Counts what the thread has taken. Whoever closes sees that, or the thread sees it close and tells
    /// it that there is less to wait for.
    fn has_taken(&self, count: usize) {
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
        self.stage() == ENDED
    }

    pub(super) fn is_over(&self) -> bool {
        // Acquire pairs with the Release in `finish`.
        self.over.load(Ordering::Acquire)
    }

    // -- the thread ---------------------------------------------------------------------------

    /// The thread, which is counted as work of the runtime from before it starts.
    pub(super) fn serve(self: &Arc<Self>) {
        let local = Local::new(self);
        let place = Place::new(&self.runtime, Role::Pinned(&local));
        let _entered = place.enter();
        self.run_until_over(&local, &place);
        self.end(&local, &place);
        self.runtime.fall();
        self.runtime.seats.leave(self);
    }

    fn run_until_over(&self, local: &Local, place: &Place<'_>) {
        let mut pace = Pace::new();
        while !self.is_over() {
            if !self.timers.is_empty()
                && let Some(now) = pace.is_time()
            {
                self.timers.fire(now);
            }
            if let Some(runnable) = self.pop(local) {
                self.turn(place, runnable);
                if self.is_closing_down() {
                    self.runtime.leave_seat();
                }
                continue;
            }
            // Acquire pairs with the AcqRel of the last one to let go.
            if self.keeps.load(Ordering::Acquire) == 0 {
                return;
            }
            if self.timers.fire(Instant::now()) == 0 {
                self.park();
            }
        }
    }

    /// Waits for something to run, or for the next deadline, which counts as work of the runtime.
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
            self.runtime.fall();
            // That may have told of the end, and so have woken something on this very thread.
            if mutant("a_seat_parks_without_a_second_look") || self.inbox.lock().idle {
                self.parker.park_eagerly(None);
            }
            self.rise(&mut self.inbox.lock());
        }
    }

    /// The thread has something to do from now on.
    fn rise(&self, inbox: &mut Inbox) {
        if std::mem::take(&mut inbox.idle) {
            self.runtime.rise();
        }
    }

    /// Drops all that is on the thread, here.
    pub(super) fn end(&self, local: &Local, place: &Place<'_>) {
        self.close();
        // Release pairs with the Acquire in `track`.
        self.over.store(true, Ordering::Release);
        // As in the shutdown of the runtime: a drop may wait for a deadline.
        self.timers.close();
        let exempt = self.runtime.exempted();
        let spared = self.clear(local, &exempt);
        if !self.inbox.lock().closed {
            // Release pairs with the Acquire in `stage`.
            self.stage.store(LINGERING, Ordering::Release);
            self.runtime.leave_seat();
            self.linger(place, spared);
            self.clear(local, &[]);
        }
        // First, so that the shutdown, which sees the end, waits for the thread.
        self.runtime.blocking.crew.leave();
        // Release pairs with the Acquire in `stage`.
        self.stage.store(ENDED, Ordering::Release);
    }

    /// Cancels and drops all but what is exempt, whose runnables are given back. If nothing is,
    /// the inbox is closed.
    fn clear(&self, local: &Local, exempt: &[TaskKey]) -> Vec<Runnable> {
        let mut spared = Vec::new();
        loop {
            let left = self.registry.cancel_cells(exempt) + self.registry.wake_tasks(exempt);
            let mut queue = local.hand.take();
            let mut inbox = self.inbox.lock();
            queue.append(&mut inbox.queue);
            let hosted = local.take_hosted();
            if left == 0 && queue.is_empty() && hosted.is_empty() {
                inbox.closed = spared.is_empty() && !self.registry.holds(exempt);
                return spared;
            }
            drop(inbox);
            self.has_taken(queue.len());
            if queue.is_empty() && hosted.is_empty() {
                // Somebody has woken the last one and not brought it here yet.
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

    /// Runs what awaits the shutdown once more, when it has its report.
    fn linger(&self, place: &Place<'_>, spared: Vec<Runnable>) {
        self.runtime.wait_for_report();
        let mut queue = VecDeque::from(spared);
        loop {
            for runnable in queue.drain(..) {
                let key = runnable.key();
                if self.runtime.exempted().contains(&key) {
                    self.turn(place, runnable);
                    self.runtime.had_its_turn(key);
                } else {
                    contain(|| drop(runnable));
                }
            }
            std::mem::swap(&mut queue, &mut self.inbox.lock().queue);
            self.has_taken(queue.len());
            if queue.is_empty() {
                if !self.registry.holds(&self.runtime.exempted()) {
                    return;
                }
                self.parker.park(None);
            }
        }
    }

    pub(crate) fn turn(&self, place: &Place<'_>, runnable: Runnable) {
        place.running.set(Some(runnable.key()));
        if self.runtime.is_watching() {
            self.runtime.run_observed(None, runnable);
        } else {
            contain(|| runnable.run());
        }
        self.runtime.process().end_copy();
        place.running.set(None);
    }

    /// Has whoever drives the thread come and run what is ready.
    fn notify(&self) {
        self.parker.unpark();
        if let Kind::Stage(call) = &self.kind {
            call.call();
        }
    }

    // -- what the shutdown asks of it ---------------------------------------------------------

    /// Lets nothing new begin.
    pub(super) fn close(&self) {
        // Release pairs with the Acquire in `is_closing_down`.
        self.closing.store(true, Ordering::Release);
        // SeqCst pairs with the fence in `has_taken`.
        fence(Ordering::SeqCst);
        self.registry.close_to_cells();
    }

    /// Asks all actors to end; what is queued by then has its run before the thread ends.
    pub(super) fn stop_cells(&self) {
        self.registry.stop_cells();
        let mut inbox = self.inbox.lock();
        inbox.before = inbox.pushed;
    }

    /// How many that were queued before the shutdown have not been taken yet.
    pub(super) fn before(&self) -> usize {
        let before = self.inbox.lock().before;
        // Acquire pairs with the Release in `has_taken`.
        before.saturating_sub(self.taken.load(Ordering::Acquire))
    }

    /// Tells the thread to end.
    pub(super) fn finish(&self) {
        // Release pairs with the Acquire in the thread's loop.
        self.over.store(true, Ordering::Release);
        self.notify();
    }

    /// How far the thread is.
    pub(super) fn stage(&self) -> usize {
        // Acquire pairs with the Release in `end`.
        self.stage.load(Ordering::Acquire)
    }
}

/// Keeps a seat's thread while something lives on it.
pub(super) struct Kept(Arc<Seat>);

impl Kept {
    pub(super) fn new(seat: &Arc<Seat>) -> Self {
        seat.keep();
        Kept(seat.clone())
    }

    pub(super) fn seat(&self) -> &Arc<Seat> {
        &self.0
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

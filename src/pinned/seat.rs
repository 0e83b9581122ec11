//! One pinned thread: its inbox, its loop, and its end.
//!
//! # Invariants
//! - E1: once a future here was polled, it is polled and dropped by the seat's thread only. A
//!   runnable that reaches the inbox after its end was never polled.
//! - E2: `keeps` counts the clones of `Pinned` and all that lives on the thread; at zero nobody can
//!   add to it.
#![expect(
    unsafe_code,
    reason = "futures that are not `Send` are spawned here; see E1"
)]

use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::thread::JoinHandle;

use slab::Slab;

use crate::contain::contain;
use crate::error::Unjoined;
use crate::instant::Instant;
use crate::park::Parker;
use crate::runtime::current::{self, Place, Role};
use crate::runtime::{Inner, Registry};
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Mutex, mutant, yield_now};
use crate::task::{CellHome, Header, Home, Key, Runnable, Task, Ticket, spawn_unchecked};
use crate::timers::{Clock, Pace, Timers};

pub struct Seat {
    name: String,
    runtime: Arc<Inner>,
    inbox: Mutex<Inbox>,
    parker: Parker,
    timers: Timers,
    pub(crate) registry: Registry,
    keeps: AtomicUsize,
    /// Nothing new begins.
    closing: AtomicBool,
    /// Nothing runs any more.
    over: AtomicBool,
    /// How far its thread is: [`RUNNING`], [`LINGERING`] or [`ENDED`].
    stage: AtomicUsize,
}

const RUNNING: usize = 0;
/// All is dropped but a task that awaits the shutdown of the runtime.
const LINGERING: usize = 1;
/// All is dropped.
const ENDED: usize = 2;

struct Inbox {
    queue: VecDeque<Runnable>,
    /// How many at the front were there when the shutdown began and have not been taken.
    before: usize,
    closed: bool,
}

impl Inbox {
    fn pop(&mut self) -> Option<Runnable> {
        let runnable = self.queue.pop_front()?;
        self.before = self.before.saturating_sub(1);
        if self.queue.is_empty() && self.queue.capacity() > Self::KEPT_MAX {
            self.queue = VecDeque::new();
        }
        Some(runnable)
    }

    /// A queue that has grown beyond this gives its memory back when it is empty.
    const KEPT_MAX: usize = 1024;
}

/// What only the thread itself can reach.
pub(crate) struct Local {
    seat: Arc<Seat>,
    hosted: RefCell<Slab<Rc<dyn Any>>>,
}

impl Local {
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        self.seat.clone()
    }

    pub(super) fn insert(&self, value: Rc<dyn Any>) -> usize {
        self.hosted.borrow_mut().insert(value)
    }

    pub(super) fn get(&self, key: usize) -> Option<Rc<dyn Any>> {
        self.hosted.borrow().get(key).cloned()
    }

    pub(super) fn remove(&self, key: usize) -> Option<Rc<dyn Any>> {
        self.hosted.borrow_mut().try_remove(key)
    }
}

impl Seat {
    pub(super) fn new(runtime: &Arc<Inner>, name: String) -> Self {
        Seat {
            name,
            runtime: runtime.clone(),
            inbox: Mutex::new(Inbox {
                queue: VecDeque::new(),
                before: 0,
                closed: false,
            }),
            parker: Parker::new(),
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

    /// Adds to what keeps the thread; the caller is, or belongs to, something that does.
    pub(super) fn keep(&self) {
        // Relaxed: a new keep comes from one that is held (E2).
        self.keeps.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn let_go(&self) {
        // AcqRel: what was done under the other keeps is done before the thread ends.
        if self.keeps.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.parker.unpark();
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
        let future = async move {
            let _kept = kept;
            make().await
        };
        // SAFETY: (E1) before its first poll the future holds `make` and a `Kept`, both `Send`;
        // from then on the seat's thread alone polls and drops it.
        unsafe { spawn_unchecked(this.clone(), future) }
    }

    /// Calls `job` with what is local to the thread this is called on, which is a seat's.
    pub(super) fn with_local<R>(job: impl FnOnce(&Local) -> R) -> R {
        current::with(|place| match place.map(|place| place.role.get()) {
            Some(Role::Pinned(local)) => job(local),
            _ => unreachable!("jobs of a seat run on its thread"),
        })
    }

    // -- the thread ---------------------------------------------------------------------------

    pub(super) fn serve(self: &Arc<Self>) {
        let local = Local {
            seat: self.clone(),
            hosted: RefCell::new(Slab::new()),
        };
        let place = Place::new(&self.runtime, Role::Pinned(&local));
        let _entered = place.enter();
        self.run_until_over(&place);
        self.end(&local, &place);
        self.runtime.seats.leave(self);
    }

    fn run_until_over(&self, place: &Place<'_>) {
        let mut pace = Pace::new();
        // Acquire pairs with the Release in `Seats::finish`.
        while !self.over.load(Ordering::Acquire) {
            self.timers.fire_at_pace(&mut pace);
            let next = self.inbox.lock().pop();
            if let Some(runnable) = next {
                self.turn(place, runnable);
                // Acquire pairs with the Release of whoever closes.
                if self.closing.load(Ordering::Acquire) {
                    self.runtime.leave_seat();
                }
                continue;
            }
            // Acquire pairs with the AcqRel of the last one to let go.
            if self.keeps.load(Ordering::Acquire) == 0 {
                return;
            }
            if self.timers.fire(Instant::now()) == 0 {
                self.parker.park(self.timers.until_next());
            }
        }
    }

    /// Drops all that is on the thread, here.
    fn end(&self, local: &Local, place: &Place<'_>) {
        // Release pairs with the Acquire in `is_closing`.
        self.closing.store(true, Ordering::Release);
        self.over.store(true, Ordering::Release);
        self.registry.close_to_cells();
        // As in the shutdown of the runtime: a drop may wait for a deadline.
        self.timers.close();
        let exempt = self.runtime.exempted();
        let spared = self.clear(local, &exempt);
        if !self.inbox.lock().closed {
            // Release pairs with the Acquire in `Seats`.
            self.stage.store(LINGERING, Ordering::Release);
            self.runtime.leave_seat();
            self.linger(place, spared);
            self.clear(local, &[]);
        }
        // Release pairs with the Acquire in `Seats`.
        self.stage.store(ENDED, Ordering::Release);
    }

    /// Cancels and drops all but what is exempt, whose runnables are given back. If nothing is,
    /// the inbox is closed.
    fn clear(&self, local: &Local, exempt: &[Key]) -> Vec<Runnable> {
        let mut spared = Vec::new();
        loop {
            let left = self.registry.cancel_cells(exempt) + self.registry.wake_tasks(exempt);
            let mut inbox = self.inbox.lock();
            let queue = std::mem::take(&mut inbox.queue);
            let hosted = std::mem::take(&mut *local.hosted.borrow_mut());
            if left == 0 && queue.is_empty() && hosted.is_empty() {
                inbox.closed = spared.is_empty() && !self.registry.holds(exempt);
                return spared;
            }
            drop(inbox);
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
            if queue.is_empty() {
                if !self.registry.holds(&self.runtime.exempted()) {
                    return;
                }
                self.parker.park(None);
            }
        }
    }

    fn turn(&self, place: &Place<'_>, runnable: Runnable) {
        place.running.set(Some(runnable.key()));
        contain(|| runnable.run());
        place.running.set(None);
    }
}

impl Home for Arc<Seat> {
    fn schedule(&self, runnable: Runnable, _again: bool) {
        let mut inbox = self.inbox.lock();
        if inbox.closed {
            drop(inbox);
            // (E1) It was never polled.
            return contain(|| drop(runnable));
        }
        inbox.queue.push_back(runnable);
        drop(inbox);
        let own_thread = current::with(|place| {
            matches!(place.map(|place| place.role.get()),
                Some(Role::Pinned(local)) if Arc::ptr_eq(&local.seat, self))
        });
        if !own_thread && !mutant("seat_is_not_unparked") {
            self.parker.unpark();
        }
    }

    fn track(&self, waker: &Waker) -> Option<Ticket> {
        // Acquire pairs with the Release in `end`.
        self.registry
            .track(waker, Some(0), || self.over.load(Ordering::Acquire))
    }

    fn untrack(&self, ticket: Ticket) {
        self.registry.untrack(ticket);
    }

    fn report(&self, unjoined: &Unjoined<'_>) {
        self.runtime.report(unjoined);
    }
}

impl CellHome for Arc<Seat> {
    fn enter(&self, cell: NonNull<Header>) -> bool {
        let entered = self.registry.enter(cell, Some(0));
        if entered {
            self.keep();
        }
        entered
    }

    fn leave(&self, cell: NonNull<Header>) {
        self.registry.leave(cell);
        self.runtime.leave_seat();
        self.let_go();
    }

    fn is_closing(&self) -> bool {
        // Acquire pairs with the Release of whoever closes.
        self.closing.load(Ordering::Acquire)
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
}

impl Clock for Seat {
    fn timers(&self) -> &Timers {
        &self.timers
    }

    fn next_changed(&self) {
        self.parker.unpark();
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

/// The pinned threads of a runtime.
pub(crate) struct Seats(Mutex<All>);

#[derive(Default)]
struct All {
    taken: Vec<(Arc<Seat>, JoinHandle<()>)>,
    closed: bool,
}

impl Seats {
    pub(crate) fn new() -> Self {
        Seats(Mutex::new(All::default()))
    }

    pub(super) fn start(&self, runtime: &Arc<Inner>, name: String) -> std::io::Result<Arc<Seat>> {
        if let Some(at) = name.find('\0') {
            let text = format!("a pinned thread's name has a NUL at byte {at}");
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, text));
        }
        let mut all = self.0.lock();
        if all.closed {
            return Err(std::io::Error::other("the runtime is shutting down"));
        }
        let seat = Arc::new(Seat::new(runtime, name));
        let own = seat.clone();
        let thread = std::thread::Builder::new()
            .name(seat.name.clone())
            .spawn(move || own.serve())?;
        all.taken.push((seat.clone(), thread));
        Ok(seat)
    }

    /// A thread has ended by itself; while the runtime is closing it is left to be joined.
    fn leave(&self, seat: &Arc<Seat>) {
        let mut all = self.0.lock();
        if !all.closed {
            all.taken.retain(|(taken, _)| !Arc::ptr_eq(taken, seat));
        }
        drop(all);
        seat.runtime.leave_seat();
    }

    fn seats(&self) -> Vec<Arc<Seat>> {
        self.0
            .lock()
            .taken
            .iter()
            .map(|(seat, _)| seat.clone())
            .collect()
    }

    /// How many actors live on all of them.
    pub(crate) fn cells(&self) -> usize {
        self.seats().iter().map(|seat| seat.registry.cells()).sum()
    }

    /// Lets nothing new begin.
    pub(crate) fn close_to_cells(&self) {
        self.0.lock().closed = true;
        for seat in self.seats() {
            // Release pairs with the Acquire in `is_closing`.
            seat.closing.store(true, Ordering::Release);
            seat.registry.close_to_cells();
        }
    }

    /// Asks all actors to end; what is queued by then has its run before the threads end.
    pub(crate) fn stop_cells(&self) {
        for seat in self.seats() {
            seat.registry.stop_cells();
            let mut inbox = seat.inbox.lock();
            inbox.before = inbox.queue.len();
        }
    }

    /// How many that were queued before the shutdown have not been taken yet.
    pub(crate) fn before(&self) -> usize {
        self.seats()
            .iter()
            .map(|seat| seat.inbox.lock().before)
            .sum()
    }

    /// Tells all threads to end.
    pub(crate) fn finish(&self) {
        for seat in self.seats() {
            // Release pairs with the Acquire in the thread's loop.
            seat.over.store(true, Ordering::Release);
            seat.parker.unpark();
        }
    }

    /// Whether no thread has anything left but what awaits the shutdown.
    pub(crate) fn all_ended(&self) -> bool {
        // Acquire pairs with the Release in `Seat::end`.
        self.seats()
            .iter()
            .all(|seat| seat.stage.load(Ordering::Acquire) != RUNNING)
    }

    /// Joins those that have ended; says how many are left behind, and which are not joined.
    pub(crate) fn join(&self) -> (usize, Vec<Arc<Seat>>) {
        let taken = std::mem::take(&mut self.0.lock().taken);
        let (mut left_behind, mut staying) = (0, Vec::new());
        for (seat, thread) in taken {
            // Acquire: as above.
            let stage = seat.stage.load(Ordering::Acquire);
            if stage == ENDED {
                let _ = thread.join();
                continue;
            }
            left_behind += usize::from(stage == RUNNING);
            staying.push(seat);
        }
        (left_behind, staying)
    }
}

//! When a runtime has run out of work, which is for document 1 the end of the program.
//!
//! Everybody who may bring forth work is counted in one word while he may: workers that are awake,
//! pinned threads that are not idle, blocking jobs, the futures of `block_on` that are runnable, and
//! whoever holds a [`KeepAlive`]. A policy of the user's own has no workers that are awake or
//! asleep, as far as the runtime can see: there each runnable is counted, from before it is enqueued
//! until its turn has ended.
//!
//! # Invariants
//! - K1: whoever takes something from a queue is counted from before that until after it has put
//!   what follows from it into a queue; so with nobody counted nothing is in flight but what lies in
//!   a queue.
//! - K2: whoever is counted anew changes the word's upper half; so between two equal readings
//!   nobody was, and nothing was taken.
//! - K3: whoever is counted no more looks whether he was the last.
//!
//! So the end may be declared by whoever reads zero, *then* finds every queue and every table of
//! deadlines empty, and then reads the same word again. Document 1's thief may conclude the same for
//! holding the one mutex meanwhile.
//!
//! Asks may be ended as a deadlock before that: if the only deadlines are their own time-outs.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::asks::{self, Listed};
use super::inner::Inner;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use crate::sync::{Mutex, mutant};
use crate::timers::Left;
use crate::waiters::{Ticket, Waiters};

/// How many are counted, in the lower half; how often the count has risen, in the upper.
pub(crate) struct Pulse {
    word: AtomicU64,
    /// How many have asked to be told of the end, since there is the runtime.
    askers: AtomicU64,
    /// How many of them were told.
    told: AtomicU64,
    /// How many asks wait that are to be told if that is for ever.
    asks: AtomicUsize,
}

const ONE: u64 = 1;
const RISEN: u64 = 1 << 32;

impl Pulse {
    pub(super) fn new() -> Self {
        Pulse {
            word: AtomicU64::new(0),
            askers: AtomicU64::new(0),
            told: AtomicU64::new(0),
            asks: AtomicUsize::new(0),
        }
    }

    /// Counts the caller, or somebody for whom he does it, who is counted himself or from outside.
    pub(crate) fn rise(&self) {
        // AcqRel: whoever sees what is taken after this, sees this (K2).
        self.word.fetch_add(RISEN | ONE, Ordering::AcqRel);
    }

    /// Counts the caller no more; says whether he was the last, and somebody wants to know.
    pub(crate) fn fall(&self) -> bool {
        // AcqRel: releases what the caller put into queues to whoever reads zero.
        let before = self.word.fetch_sub(ONE, Ordering::AcqRel);
        if count(before) > 1 {
            return false;
        }
        // SeqCst pairs with the fence in `ask`: either the last one sees that somebody asks, or that
        // one sees zero.
        fence(Ordering::SeqCst);
        self.is_asked()
    }

    fn is_asked(&self) -> bool {
        // Relaxed: ordered by the fences.
        self.askers() > self.told() || self.asks.load(Ordering::Relaxed) > 0
    }

    /// An ask waits, of somebody who is counted or who does not matter.
    pub(super) fn ask_waits(&self) {
        // Relaxed: ordered by the fence.
        self.asks.fetch_add(1, Ordering::Relaxed);
        // SeqCst: as in `ask`.
        fence(Ordering::SeqCst);
    }

    pub(super) fn ask_is_over(&self) {
        // Relaxed: it only spares a look.
        self.asks.fetch_sub(1, Ordering::Relaxed);
    }

    /// Somebody wants to know of the next end; gives his number, from 1.
    fn ask(&self) -> u64 {
        // Relaxed: ordered by the fence.
        let number = self.askers.fetch_add(1, Ordering::Relaxed) + 1;
        // SeqCst pairs with the fence in `fall`.
        fence(Ordering::SeqCst);
        number
    }

    fn askers(&self) -> u64 {
        // Relaxed: ordered by the fences.
        self.askers.load(Ordering::Relaxed)
    }

    /// Up to which number the askers were told.
    fn told(&self) -> u64 {
        // Acquire pairs with the Release in `tell`.
        self.told.load(Ordering::Acquire)
    }

    /// Tells the askers up to this number. Two may tell of ends of different moments at once.
    fn tell(&self, askers: u64) {
        let more = |told| (told < askers).then_some(askers);
        // Release pairs with the Acquire in `told`; Relaxed on failure, which publishes nothing.
        let _ = self
            .told
            .fetch_update(Ordering::Release, Ordering::Relaxed, more);
    }
}

fn count(word: u64) -> u64 {
    word % RISEN
}

impl fmt::Debug for Pulse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: to be shown.
        let counted = count(self.word.load(Ordering::Relaxed));
        f.debug_struct("Pulse").field("counted", &counted).finish()
    }
}

pub(crate) struct Quiescence {
    pub(super) pulse: Arc<Pulse>,
    /// A worker that has lain down has declared it, and tells when it is up again.
    is_declared: AtomicBool,
    declared: Mutex<Option<End>>,
    waiters: Waiters,
}

impl Quiescence {
    pub(super) fn new() -> Self {
        Quiescence {
            pulse: Arc::new(Pulse::new()),
            is_declared: AtomicBool::new(false),
            declared: Mutex::new(None),
            waiters: Waiters::new(),
        }
    }

    pub(super) fn is_declared(&self) -> bool {
        // Acquire pairs with the Release in `declare_from_sleep`.
        self.is_declared.load(Ordering::Acquire)
    }

    /// The runtime is over, and will never run anything again.
    pub(super) fn end(&self) {
        self.waiters.wake_all();
    }
}

impl Inner {
    /// Counts somebody who may bring forth work.
    pub(crate) fn rise(&self) {
        self.quiescence.pulse.rise();
    }

    /// Counts him no more. Called where wakers may be called.
    pub(crate) fn fall(&self) {
        if self.quiescence.pulse.fall() {
            self.declare();
        }
    }

    /// Declares the end, if it has come, where wakers may be called.
    pub(super) fn declare(&self) {
        if !self.is_here() {
            return;
        }
        while let Some(end) = self.find_end() {
            if self
                .simulation()
                .is_some_and(|simulation| simulation.judges_end(self))
            {
                return;
            }
            // Whoever tells brings forth work.
            self.rise();
            self.tell(&end);
            if !self.quiescence.pulse.fall() {
                return;
            }
        }
    }

    /// The same in a worker that sleeps already: it gets up to tell.
    pub(super) fn declare_from_sleep(&self) {
        if let Some(end) = self.find_end() {
            *self.quiescence.declared.lock() = Some(end);
            // Release pairs with the Acquire in `is_declared`.
            self.quiescence.is_declared.store(true, Ordering::Release);
        }
    }

    /// Tells what this or another worker has declared.
    pub(super) fn tell_what_is_declared(&self) {
        if !self.quiescence.is_declared() {
            return;
        }
        let declared = self.quiescence.declared.lock().take();
        // Release: as above. Whoever declares later does so when this worker sleeps again.
        self.quiescence.is_declared.store(false, Ordering::Release);
        declared.iter().for_each(|end| self.tell(end));
    }

    /// Those who wait for an answer that nobody was left to give are told so, and go on; if there is
    /// none, it was the end.
    fn tell(&self, end: &End) {
        if !end.deadlocked.is_empty() {
            asks::end(&end.deadlocked);
            return;
        }
        self.quiescence.pulse.tell(end.askers);
        self.quiescence.waiters.wake_all();
    }

    /// Whether nothing is in flight, nobody is about to bring forth anything, and somebody asks.
    fn find_end(&self) -> Option<End> {
        let Quiescence { pulse, .. } = &self.quiescence;
        // Acquire: what everybody had put into queues who is counted no more is seen (K1).
        let before = pulse.word.load(Ordering::Acquire);
        if count(before) > 0 || !pulse.is_asked() {
            return None;
        }
        let left = match self.timers.left() {
            Left::TimeOuts if mutant("time_outs_are_no_work") => Left::Nothing,
            left => left,
        };
        if !mutant("declared_before_the_scan") && (self.has_queued() || left == Left::Events) {
            return None;
        }
        let waiting = self.asks.waiting();
        let end = End {
            askers: pulse.askers(),
            deadlocked: match left {
                Left::TimeOuts => asks::deadlocked(waiting)?,
                _ => waiting,
            },
        };
        // Acquire pairs with the Release of whatever was seen to be taken: then the rise before that
        // is seen.
        fence(Ordering::Acquire);
        let same = pulse.word.load(Ordering::Relaxed) == before;
        (same || mutant("declared_without_a_second_look")).then_some(end)
    }
}

/// A moment when nothing was under way: who had asked for it by then, and the asks that waited.
struct End {
    askers: u64,
    deadlocked: Vec<Listed>,
}

/// As long as this lives its runtime is not at its end, whatever runs there.
///
/// For those the runtime cannot see: a thread that will bring it work, an I/O reactor. It says
/// nothing of shutdowns, which do not wait for it. A clone counts as well.
///
/// ```
/// let runtime = greenroom::Runtime::new()?;
/// let keep = runtime.keep_alive();
/// let (sender, receiver) = futures::channel::oneshot::channel();
/// std::thread::spawn(move || {
///     sender.send(42).unwrap();
///     drop(keep); // after what it brings
/// });
/// let task = runtime.spawn(receiver);
/// runtime.run_until_quiescent();
/// assert!(task.is_finished());
/// # Ok::<(), greenroom::BuildError>(())
/// ```
#[must_use = "it keeps the runtime alive until it is dropped"]
pub struct KeepAlive(Arc<Inner>);

impl KeepAlive {
    pub(super) fn new(runtime: &Arc<Inner>) -> Self {
        runtime.rise();
        KeepAlive(runtime.clone())
    }
}

impl Clone for KeepAlive {
    fn clone(&self) -> Self {
        KeepAlive::new(&self.0)
    }
}

impl Drop for KeepAlive {
    fn drop(&mut self) {
        if mutant("the_last_hold_declares_nothing") {
            self.0.quiescence.pulse.fall();
            return;
        }
        self.0.fall();
    }
}

impl fmt::Debug for KeepAlive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeepAlive").finish_non_exhaustive()
    }
}

/// The future of [`quiescent`](super::Runtime::quiescent).
pub(super) struct Quiescent {
    runtime: Arc<Inner>,
    /// The number of this asker, from the first poll on.
    number: Option<u64>,
    ticket: Ticket,
}

impl Quiescent {
    pub(super) fn new(runtime: &Arc<Inner>) -> Self {
        Quiescent {
            runtime: runtime.clone(),
            number: None,
            ticket: Ticket::default(),
        }
    }
}

impl Future for Quiescent {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.runtime.check_process();
        let quiescence = &this.runtime.quiescence;
        let first = this.number.is_none();
        let number = *this.number.get_or_insert_with(|| quiescence.pulse.ask());
        let happened = || quiescence.pulse.told() >= number || this.runtime.is_over();
        let polled = quiescence.waiters.poll(&mut this.ticket, cx, happened);
        if first && polled.is_pending() && !mutant("a_watcher_does_not_look") {
            // Everything may be at rest already, if whoever polls this is not counted.
            this.runtime.declare();
        }
        polled
    }
}

impl Drop for Quiescent {
    fn drop(&mut self) {
        if self.runtime.is_here() {
            self.runtime.quiescence.waiters.leave(&mut self.ticket);
        }
    }
}

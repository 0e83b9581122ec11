//! The number of activities in a runtime that may create work, in one atomic word.
//!
//! These are counted: workers that are awake, pinned threads that are not idle, blocking jobs, the
//! runnable futures of `block_on`, and each `KeepAlive`. A policy other than the default does not
//! show the runtime which workers are awake. There each runnable is counted instead, from before it
//! is enqueued until its turn has ended.
//!
//! # Invariants
//! - ACTIVITY-1: a thread that takes something from a queue is counted from before that until it
//!   has queued everything that follows from it. So when the count is zero, all work is in the
//!   queues.
//! - ACTIVITY-2: each increment changes the upper half of the word. So if two readings are equal,
//!   there was no increment between them, and nothing was taken.
//! - ACTIVITY-3: after a decrement the caller checks whether the count is zero.
//!
//! So a thread may declare quiescence in three steps. It reads zero, *then* finds every queue and
//! every table of deadlines empty, and then reads the same word again. In the scheduler of Sophie
//! (<https://github.com/kjosib/sophie>) the thief may conclude the same, since it holds the one
//! mutex meanwhile.

use std::fmt;

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

/// The count in the lower half; the number of increments in the upper half.
pub(crate) struct ActivityCount {
    word: AtomicU64,
    /// The number of waits for quiescence since the runtime was built.
    quiescence_waits: AtomicU64,
    /// The number of the last wait that was completed.
    notified: AtomicU64,
    /// The number of pending asks that must be completed if their wait is a deadlock.
    asks: AtomicUsize,
}

const ONE: u64 = 1;
const RISEN: u64 = 1 << 32;

impl ActivityCount {
    pub(crate) fn new() -> Self {
        ActivityCount {
            word: AtomicU64::new(0),
            quiescence_waits: AtomicU64::new(0),
            notified: AtomicU64::new(0),
            asks: AtomicUsize::new(0),
        }
    }

    /// Counts an activity: the caller's, or one of another thread on whose behalf it acts.
    pub(crate) fn inc(&self) {
        // AcqRel: a thread that sees something taken after this also sees this. (ACTIVITY-2)
        self.word.fetch_add(RISEN | ONE, Ordering::AcqRel);
    }

    /// Uncounts an activity; returns whether it was the last, while quiescence is awaited.
    pub(crate) fn dec(&self) -> bool {
        // AcqRel: releases what the caller queued to the thread that reads zero.
        let before = self.word.fetch_sub(ONE, Ordering::AcqRel);
        if count(before) > 1 {
            return false;
        }
        // SeqCst pairs with the fence in `ask` and in `ask_waits`: either the last activity sees
        // the wait, or the waiter sees zero.
        fence(Ordering::SeqCst);
        self.is_awaited()
    }

    /// Returns a reading of the word, to be compared with a later one.
    pub(crate) fn read(&self, ordering: Ordering) -> u64 {
        self.word.load(ordering)
    }

    /// Returns whether anything was counted at a reading.
    pub(crate) fn is_active(&self, reading: u64) -> bool {
        count(reading) > 0
    }

    /// Returns the reading that comes when all that was counted at this one has ended, if nothing
    /// else is counted meanwhile.
    pub(crate) fn idle(reading: u64) -> u64 {
        reading - count(reading)
    }

    /// Returns whether a wait for quiescence or an ask is pending.
    pub(crate) fn is_awaited(&self) -> bool {
        // Relaxed: ordered by the fences.
        self.quiescence_waits() > self.notified() || self.asks.load(Ordering::Relaxed) > 0
    }

    /// Notes that an ask is pending. Its asker is counted, or does not matter to quiescence.
    pub(crate) fn ask_waits(&self) {
        // Relaxed: ordered by the fence.
        self.asks.fetch_add(1, Ordering::Relaxed);
        // SeqCst pairs with the fence in `dec`.
        fence(Ordering::SeqCst);
    }

    /// Notes that an ask is no longer pending.
    pub(crate) fn ask_is_over(&self) {
        // Relaxed: a stale value only costs a check.
        self.asks.fetch_sub(1, Ordering::Relaxed);
    }

    /// Registers a wait for the next quiescence; returns its number, counted from 1.
    pub(crate) fn await_quiescence(&self) -> u64 {
        // Relaxed: ordered by the fence.
        let number = self.quiescence_waits.fetch_add(1, Ordering::Relaxed) + 1;
        // SeqCst pairs with the fence in `dec`.
        fence(Ordering::SeqCst);
        number
    }

    /// Returns the number of the last wait.
    pub(crate) fn quiescence_waits(&self) -> u64 {
        // Relaxed: ordered by the fences.
        self.quiescence_waits.load(Ordering::Relaxed)
    }

    /// Returns the number of the last wait that was completed.
    pub(crate) fn notified(&self) -> u64 {
        // Acquire pairs with the Release in `notify`.
        self.notified.load(Ordering::Acquire)
    }

    /// Completes the waits up to this number. Two threads may do so at once, for different moments.
    pub(crate) fn notify(&self, quiescence_waits: u64) {
        let more = |notified| (notified < quiescence_waits).then_some(quiescence_waits);
        // Release pairs with the Acquire in `notified`; Relaxed on failure, which publishes nothing.
        let _ = self
            .notified
            .fetch_update(Ordering::Release, Ordering::Relaxed, more);
    }
}

/// Returns how many are counted in this reading of the word.
fn count(word: u64) -> u64 {
    word % RISEN
}

impl fmt::Debug for ActivityCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: for display only.
        let counted = count(self.word.load(Ordering::Relaxed));
        f.debug_struct("ActivityCount")
            .field("counted", &counted)
            .finish()
    }
}

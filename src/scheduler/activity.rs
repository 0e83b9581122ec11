//! How much of a runtime may bring forth work at the moment: one word that counts it.
//!
//! Workers that are awake are counted, pinned threads that are not idle, blocking jobs, the futures of `block_on`
//! that are runnable, and each `KeepAlive`. A policy other than the default shows the runtime neither workers that
//! are awake nor workers that sleep: there each runnable is counted, from before it is enqueued until its turn has
//! ended.
//!
//! # Invariants
//! - ACTIVITY-1: what takes something from a queue is counted from before that until after it has put what follows
//!   from it into a queue. So with a count of zero nothing is in flight but what lies in a queue.
//! - ACTIVITY-2: each increment changes the word's upper half. So between two equal readings there was none, and
//!   nothing was taken.
//! - ACTIVITY-3: after a decrement the caller looks whether the count is zero.
//!
//! So the end may be declared by a thread that reads zero, *then* finds every queue and every table of deadlines
//! empty, and then reads the same word again. Document 1's thief may conclude the same because it holds the one mutex
//! meanwhile.

use std::fmt;

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

/// How many are counted, in the lower half; how often the count has risen, in the upper.
pub(crate) struct ActivityCount {
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

impl ActivityCount {
    pub(crate) fn new() -> Self {
        ActivityCount {
            word: AtomicU64::new(0),
            askers: AtomicU64::new(0),
            told: AtomicU64::new(0),
            asks: AtomicUsize::new(0),
        }
    }

    /// Counts the caller, or somebody for whom he does it, who is counted himself or from outside.
    pub(crate) fn inc(&self) {
        // AcqRel: whoever sees what is taken after this, sees this (ACTIVITY-2).
        self.word.fetch_add(RISEN | ONE, Ordering::AcqRel);
    }

    /// Counts the caller no more; says whether he was the last, and somebody wants to know.
    pub(crate) fn dec(&self) -> bool {
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

    /// Returns a reading of the word, to be compared with another one.
    pub(crate) fn read(&self, ordering: Ordering) -> u64 {
        self.word.load(ordering)
    }

    /// Returns whether anything was counted at a reading.
    pub(crate) fn is_active(&self, reading: u64) -> bool {
        count(reading) > 0
    }

    /// Returns whether the end is waited for, or an ask is to be told of it.
    pub(crate) fn is_asked(&self) -> bool {
        // Relaxed: ordered by the fences.
        self.askers() > self.told() || self.asks.load(Ordering::Relaxed) > 0
    }

    /// An ask waits, of somebody who is counted or who does not matter.
    pub(crate) fn ask_waits(&self) {
        // Relaxed: ordered by the fence.
        self.asks.fetch_add(1, Ordering::Relaxed);
        // SeqCst: as in `ask`.
        fence(Ordering::SeqCst);
    }

    pub(crate) fn ask_is_over(&self) {
        // Relaxed: it only spares a look.
        self.asks.fetch_sub(1, Ordering::Relaxed);
    }

    /// Somebody wants to know of the next end; gives his number, from 1.
    pub(crate) fn ask(&self) -> u64 {
        // Relaxed: ordered by the fence.
        let number = self.askers.fetch_add(1, Ordering::Relaxed) + 1;
        // SeqCst pairs with the fence in `dec`.
        fence(Ordering::SeqCst);
        number
    }

    pub(crate) fn askers(&self) -> u64 {
        // Relaxed: ordered by the fences.
        self.askers.load(Ordering::Relaxed)
    }

    /// Up to which number the askers were told.
    pub(crate) fn told(&self) -> u64 {
        // Acquire pairs with the Release in `tell`.
        self.told.load(Ordering::Acquire)
    }

    /// Tells the askers up to this number. Two may tell of ends of different moments at once.
    pub(crate) fn tell(&self, askers: u64) {
        let more = |told| (told < askers).then_some(askers);
        // Release pairs with the Acquire in `told`; Relaxed on failure, which publishes nothing.
        let _ = self
            .told
            .fetch_update(Ordering::Release, Ordering::Relaxed, more);
    }
}

/// Returns how many are counted in this reading of the word.
fn count(word: u64) -> u64 {
    word % RISEN
}

impl fmt::Debug for ActivityCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: to be shown.
        let counted = count(self.word.load(Ordering::Relaxed));
        f.debug_struct("ActivityCount")
            .field("counted", &counted)
            .finish()
    }
}

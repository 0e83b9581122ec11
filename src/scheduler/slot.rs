//! One worker's LIFO slot for its newest entry, which the worker takes without an RMW.
//!
//! Other threads take the entry only if the worker is stuck. That is rare, so they pay for both
//! sides. The owner announces that it is taking, and then checks whether another thread claims the
//! slot. A claimer announces its claim, and then checks whether the owner is taking. A fence
//! separates the two steps on either side; the owner's is a light one.
//!
//! # Invariants
//! - SLOT-1: only the owner fills the slot, and only when it is empty.
//! - SLOT-2: the slot is emptied in one of two ways. The owner does it with `is_taken` set, if
//!   `is_claimed` was not set after a light fence. A claimer that has set `is_claimed` does it if
//!   `is_taken` was not set after a heavy fence. So exactly one of them does.
//!
//! # Who may call
//! `put`, `take`: the owner. `claim`: any thread. `is_filled`: any thread, as a hint.

use std::ptr::{NonNull, null_mut};

use super::ring::Queued;
use crate::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use crate::sync::{Fences, mutant, relax};

pub(crate) struct LifoSlot {
    entry: AtomicPtr<()>,
    is_taken: AtomicBool,
    is_claimed: AtomicBool,
    fences: Fences,
}

impl LifoSlot {
    pub(crate) fn new() -> Self {
        LifoSlot {
            entry: AtomicPtr::new(null_mut()),
            is_taken: AtomicBool::new(false),
            is_claimed: AtomicBool::new(false),
            fences: Fences::new(),
        }
    }

    /// Puts the entry into the slot; returns the entry that it displaces.
    // Rare paths are out-of-line tail calls, so that the hot path saves no registers for them.
    #[inline(always)]
    pub(crate) fn put(&self, entry: Queued) -> Option<Queued> {
        let mut displaced = None;
        // Relaxed: only the owner fills it, and `try_begin` detects a claim.
        if !self.entry.load(Ordering::Relaxed).is_null() {
            if !self.try_begin() {
                return self.put_after_claim(entry);
            }
            displaced = self.finish();
        }
        self.fill(entry);
        displaced
    }

    /// Fills the empty slot.
    #[inline(always)]
    fn fill(&self, entry: Queued) {
        let order = if mutant("slot_filled_relaxed") {
            Ordering::Relaxed
        } else {
            Ordering::Release
        };
        // Release pairs with the Acquire of `claim`. (SLOT-1)
        self.entry.store(entry.as_ptr(), order);
    }

    /// Takes the entry, if there is one.
    #[inline(always)]
    pub(crate) fn take(&self) -> Option<Queued> {
        // Relaxed: only the owner fills it, and `try_begin` detects a claim.
        if self.entry.load(Ordering::Relaxed).is_null() {
            return None;
        }
        match self.try_begin() {
            true => self.finish(),
            false => self.take_after_claim(),
        }
    }

    /// Announces that the owner is taking; returns false if the slot is claimed.
    #[inline(always)]
    fn try_begin(&self) -> bool {
        // Relaxed: ordered by the fence.
        self.is_taken.store(true, Ordering::Relaxed);
        if !mutant("slot_taken_without_fence") {
            // Pairs with the heavy fence in `claim`. (SLOT-2)
            self.fences.light();
        }
        // Acquire pairs with the Release in `claim`: an entry that was claimed before is visibly
        // gone.
        !self.is_claimed.load(Ordering::Acquire)
    }

    /// Takes the entry that is left, if any, and ends what `try_begin` began.
    #[inline(always)]
    fn finish(&self) -> Option<Queued> {
        // Relaxed: only the owner filled it, and no other thread empties it now. (SLOT-2)
        let entry = self.entry.load(Ordering::Relaxed);
        // Release pairs with the Acquire of `is_filled`: a thread that finds the slot empty sees
        // what was pushed to the ring before.
        self.entry.store(null_mut(), Ordering::Release);
        // Release pairs with the Acquire in `claim`: the slot is visibly empty.
        self.is_taken.store(false, Ordering::Release);
        NonNull::new(entry)
    }

    /// Does what `put` does, after a claim was seen.
    #[cold]
    #[inline(never)]
    fn put_after_claim(&self, entry: Queued) -> Option<Queued> {
        let displaced = self.take_after_claim();
        self.fill(entry);
        displaced
    }

    /// Takes the entry once no other thread claims the slot.
    #[cold]
    #[inline(never)]
    fn take_after_claim(&self) -> Option<Queued> {
        loop {
            // Release pairs with the Acquire in `claim`.
            self.is_taken.store(false, Ordering::Release);
            let mut attempt = 0;
            // Relaxed: `try_begin` checks again.
            while self.is_claimed.load(Ordering::Relaxed) {
                relax(&mut attempt);
            }
            if self.try_begin() {
                return self.finish();
            }
        }
    }

    /// Takes the entry of another worker's slot, unless that worker or another claimer is taking
    /// it.
    pub(crate) fn claim(&self) -> Option<Queued> {
        // The check skips the rest when the slot is empty. Acquire pairs with the Release below, of
        // the previous claimer.
        if !self.is_filled() || self.is_claimed.swap(true, Ordering::Acquire) {
            return None;
        }
        // Pairs with the light fence in `try_begin`. (SLOT-2)
        let fenced = mutant("slot_claimed_without_fence") || self.fences.heavy();
        let mut entry = null_mut();
        // Acquire pairs with the Release in `finish`.
        if fenced && !self.is_taken.load(Ordering::Acquire) {
            // Acquire pairs with the Release in `fill`.
            entry = self.entry.load(Ordering::Acquire);
            if !entry.is_null() {
                // Relaxed: published by the Release of `is_claimed`.
                self.entry.store(null_mut(), Ordering::Relaxed);
            }
        }
        // Release pairs with the Acquire in `try_begin`, and with that of the swap above.
        self.is_claimed.store(false, Ordering::Release);
        NonNull::new(entry)
    }

    /// Returns whether the slot holds an entry.
    pub(crate) fn is_filled(&self) -> bool {
        // Acquire pairs with the Release in `finish`. The caller has fenced if it matters.
        !self.entry.load(Ordering::Acquire).is_null()
    }
}

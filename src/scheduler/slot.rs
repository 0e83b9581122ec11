//! One worker's slot for its newest entry, which the worker takes without an exchange.
//!
//! Others take what is in it only if the worker is stuck: seldom, so they pay for both. The owner says that it is
//! taking and looks whether somebody else claims the slot; whoever does says so and looks whether the owner is
//! taking. Between the two on either side is a fence, a light one for the owner.
//!
//! # Invariants
//! - SLOT-1: only the owner fills the slot, when it is empty.
//! - SLOT-2: the slot is emptied by its owner while `is_taken` and not `is_claimed` after a light fence, or by
//!   whoever has set `is_claimed` and then, after a heavy fence, found it not `is_taken`. So by one of them.
//!
//! # Who may call
//! `put`, `take`: the owner. `claim`: anyone. `is_filled`: anyone, as a hint.

use std::ptr::{NonNull, null_mut};

use super::ring::Entry;
use crate::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use crate::sync::{Fences, mutant, relax};

pub(crate) struct Slot {
    entry: AtomicPtr<()>,
    is_taken: AtomicBool,
    is_claimed: AtomicBool,
    fences: Fences,
}

impl Slot {
    pub(crate) fn new() -> Self {
        Slot {
            entry: AtomicPtr::new(null_mut()),
            is_taken: AtomicBool::new(false),
            is_claimed: AtomicBool::new(false),
            fences: Fences::new(),
        }
    }

    /// Puts the entry in; the one displaced is given back.
    // What is seldom is a call with all that there is to do after it, so that nothing need be kept for then.
    #[inline(always)]
    pub(crate) fn put(&self, entry: Entry) -> Option<Entry> {
        let mut displaced = None;
        // Relaxed: we filled it, and what is not ours any more is seen to be so below.
        if !self.entry.load(Ordering::Relaxed).is_null() {
            if !self.try_begin() {
                return self.put_after_claim(entry);
            }
            displaced = self.finish();
        }
        self.fill(entry);
        displaced
    }

    #[inline(always)]
    fn fill(&self, entry: Entry) {
        let order = if mutant("slot_filled_relaxed") {
            Ordering::Relaxed
        } else {
            Ordering::Release
        };
        // Release pairs with the Acquire of `claim`. (SLOT-1)
        self.entry.store(entry.as_ptr(), order);
    }

    #[inline(always)]
    pub(crate) fn take(&self) -> Option<Entry> {
        // Relaxed: as in `put`.
        if self.entry.load(Ordering::Relaxed).is_null() {
            return None;
        }
        match self.try_begin() {
            true => self.finish(),
            false => self.take_after_claim(),
        }
    }

    /// Begins to take, unless the slot is claimed.
    #[inline(always)]
    fn try_begin(&self) -> bool {
        // Relaxed: ordered by the fence.
        self.is_taken.store(true, Ordering::Relaxed);
        if !mutant("slot_taken_without_fence") {
            // Pairs with the heavy one in `claim`. (SLOT-2)
            self.fences.light();
        }
        // Acquire pairs with the Release in `claim`: what was claimed before is seen to be gone.
        !self.is_claimed.load(Ordering::Acquire)
    }

    /// Takes what is there yet, and ends what `try_begin` began.
    #[inline(always)]
    fn finish(&self) -> Option<Entry> {
        // Relaxed: only we filled it, and nobody else empties it now. (SLOT-2)
        let entry = self.entry.load(Ordering::Relaxed);
        // Release pairs with the Acquire of `is_filled`: whoever finds the slot empty sees what was
        // pushed to the ring before.
        self.entry.store(null_mut(), Ordering::Release);
        // Release pairs with the Acquire in `claim`: it is seen to be empty.
        self.is_taken.store(false, Ordering::Release);
        NonNull::new(entry)
    }

    #[cold]
    #[inline(never)]
    fn put_after_claim(&self, entry: Entry) -> Option<Entry> {
        let displaced = self.take_after_claim();
        self.fill(entry);
        displaced
    }

    /// Takes when nobody claims the slot any more.
    #[cold]
    #[inline(never)]
    fn take_after_claim(&self) -> Option<Entry> {
        loop {
            self.is_taken.store(false, Ordering::Release);
            let mut attempt = 0;
            // Relaxed: `try_begin` looks again.
            while self.is_claimed.load(Ordering::Relaxed) {
                relax(&mut attempt);
            }
            if self.try_begin() {
                return self.finish();
            }
        }
    }

    /// Takes what is in another worker's slot, unless that one or somebody else is just taking it.
    pub(crate) fn claim(&self) -> Option<Entry> {
        // The look spares the rest when there is nothing to take. Acquire pairs with the Release below,
        // of whoever claimed before.
        if !self.is_filled() || self.is_claimed.swap(true, Ordering::Acquire) {
            return None;
        }
        // Pairs with the light one in `take`. (SLOT-2)
        let fenced = mutant("slot_claimed_without_fence") || self.fences.heavy();
        let mut entry = null_mut();
        // Acquire pairs with the Release in `take`.
        if fenced && !self.is_taken.load(Ordering::Acquire) {
            // Acquire pairs with the Release in `put`.
            entry = self.entry.load(Ordering::Acquire);
            if !entry.is_null() {
                // Relaxed: whoever takes next sees it by `is_claimed`.
                self.entry.store(null_mut(), Ordering::Relaxed);
            }
        }
        // Release pairs with the Acquires in `take`.
        self.is_claimed.store(false, Ordering::Release);
        NonNull::new(entry)
    }

    pub(crate) fn is_filled(&self) -> bool {
        // Acquire pairs with the Release in `take`; the caller has fenced if it matters.
        !self.entry.load(Ordering::Acquire).is_null()
    }
}

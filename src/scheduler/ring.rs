//! One worker's local queue: a bounded ring.
//!
//! The owner pushes and pops. A thief takes half of the ring, oldest entries first. An entry is one
//! pointer, and the ring does not know what it points to.
//!
//! # Invariants
//! - RING-1: only the owner writes `tail`.
//! - RING-2: the ring owns the entries `head..tail`. A thread that moves `head` by a
//!   compare-exchange owns the entries that it passed. Values that it read before are valid only if
//!   the exchange succeeds.
//! - RING-3: positions count up forever (64 bits) and are taken modulo the capacity, so no position
//!   occurs twice.
//!
//! # Who may call
//! `push`, `pop`: the owner. `steal_into`: any worker, which owns `into`. `take_oldest`: any
//! thread. `len`: any thread, as a hint.

use std::ptr::NonNull;

use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use crate::sync::{MODEL, mutant};

/// An entry of a queue: a runnable as a raw pointer.
pub(crate) type Queued = NonNull<()>;

/// The capacity: large enough that bursts rarely overflow, small enough (2 KiB) to stay in the
/// cache.
pub(crate) const CAPACITY: usize = if MODEL { 4 } else { 256 };

pub(crate) struct Ring {
    head: AtomicU64,
    tail: AtomicU64,
    entries: [AtomicPtr<()>; CAPACITY],
}

impl Ring {
    pub(crate) fn new() -> Self {
        Self::starting_at(0)
    }

    /// Creates a ring whose positions begin at `position`, so that tests can start near the
    /// wrap-around.
    pub(crate) fn starting_at(position: u64) -> Self {
        Ring {
            head: AtomicU64::new(position),
            tail: AtomicU64::new(position),
            entries: std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut())),
        }
    }

    fn entry(&self, position: u64) -> &AtomicPtr<()> {
        &self.entries[position as usize % CAPACITY]
    }

    /// Pushes the entry at the back; returns it if the ring is full.
    pub(crate) fn push(&self, entry: Queued) -> Result<(), Queued> {
        // Relaxed: only the owner writes `tail` (RING-1).
        let tail = self.tail.load(Ordering::Relaxed);
        // Acquire pairs with the Release of the thread that moved `head`: it has read the entries
        // passed.
        let head = self.head.load(Ordering::Acquire);
        if tail.wrapping_sub(head) >= CAPACITY as u64 {
            return Err(entry);
        }
        // Relaxed: published by the Release store of `tail`.
        self.entry(tail).store(entry.as_ptr(), Ordering::Relaxed);
        let order = if mutant("ring_push_relaxed") {
            Ordering::Relaxed
        } else {
            Ordering::Release
        };
        // Release pairs with the Acquire loads of `tail` in `steal_into` and `take_oldest`.
        self.tail.store(tail.wrapping_add(1), order);
        Ok(())
    }

    /// Takes the oldest entry.
    pub(crate) fn pop(&self) -> Option<Queued> {
        // Relaxed: our own `tail` (RING-1). `head` is checked by the exchange.
        let tail = self.tail.load(Ordering::Relaxed);
        let mut head = self.head.load(Ordering::Relaxed);
        while head != tail {
            // Relaxed: the owner wrote it.
            let entry = self.entry(head).load(Ordering::Relaxed);
            match self.move_head(head, 1) {
                Ok(()) => return NonNull::new(entry),
                Err(now) => head = now,
            }
        }
        None
    }

    /// Takes the oldest entry, on any thread.
    pub(crate) fn take_oldest(&self) -> Option<Queued> {
        // Acquire, so that `tail` below is not older. The exchange checks it.
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            // Acquire pairs with the Release store of `tail` in `push`: the entry is visible.
            if self.tail.load(Ordering::Acquire) == head {
                return None;
            }
            // Relaxed: valid only if the exchange succeeds (RING-2).
            let entry = self.entry(head).load(Ordering::Relaxed);
            match self.move_head(head, 1) {
                Ok(()) => return NonNull::new(entry),
                Err(now) => head = now,
            }
        }
    }

    /// Moves the older half (rounded up) of this ring to the back of the empty ring `into`. Returns
    /// the oldest entry, to be run, instead of moving it.
    pub(crate) fn steal_into(&self, into: &Ring) -> Option<Queued> {
        // Acquire, so that `tail` below is not older. The exchange checks it.
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            // Acquire pairs with the Release store of `tail` in `push`: the entries are visible.
            let tail = self.tail.load(Ordering::Acquire);
            // The two loads happen at different times: `head` may be long outdated.
            let len = tail.wrapping_sub(head).min(CAPACITY as u64);
            let half = len - len / 2;
            if half == 0 {
                return None;
            }
            // Relaxed: our own `tail` (RING-1).
            let back = into.tail.load(Ordering::Relaxed);
            // Relaxed: valid only if the exchange below succeeds (RING-2). Then the Acquire load of
            // `tail` orders it.
            let first = self.entry(head).load(Ordering::Relaxed);
            for at in 1..half {
                let entry = self.entry(head.wrapping_add(at)).load(Ordering::Relaxed);
                into.entry(back.wrapping_add(at - 1))
                    .store(entry, Ordering::Relaxed);
            }
            if let Err(now) = self.move_head(head, half) {
                head = now;
                continue;
            }
            // Release pairs with the Acquire load of `tail` in `steal_into` and `take_oldest`.
            into.tail
                .store(back.wrapping_add(half - 1), Ordering::Release);
            return NonNull::new(first);
        }
    }

    /// Moves `head`, and with it the ownership of the entries passed; returns the current `head` if
    /// another thread moved it.
    fn move_head(&self, head: u64, by: u64) -> Result<(), u64> {
        if mutant("head_moved_without_exchange") {
            self.head.store(head.wrapping_add(by), Ordering::Release);
            return Ok(());
        }
        // Release pairs with the Acquire load of `head` in `push`: the entries passed were read.
        // Acquire on failure pairs with another thread's Release, for the next try.
        self.head
            .compare_exchange(
                head,
                head.wrapping_add(by),
                Ordering::AcqRel,
                Ordering::Acquire,
            )
            .map(drop)
    }

    pub(crate) fn len(&self) -> usize {
        // Acquire pairs with the Releases of both ends. The caller has fenced if it matters.
        let head = self.head.load(Ordering::Acquire);
        let tail = self.tail.load(Ordering::Acquire);
        // The two loads happen at different times, so the difference may exceed the capacity.
        (tail.wrapping_sub(head) as i64).clamp(0, CAPACITY as i64) as usize
    }
}

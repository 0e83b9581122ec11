//! A one-byte spin lock for critical sections of a few instructions.
//!
//! No user code (wakers, drops, clones, hooks) and no blocking call runs inside; the closure makes
//! the critical section visible. Taking the lock costs one read-modify-write, and releasing it a
//! plain store. A `std` mutex needs two read-modify-writes (`docs/decisions/own-parts.md`).
//!
//! # Invariants
//! - LOCK-1: `value` is accessed only by the thread that changed `held` from false to true.
#![expect(
    unsafe_code,
    reason = "shared mutable access is what a lock is for; see LOCK-1"
)]

#[cfg(all(test, greenroom_loom))]
mod loom;
mod oneshot;

pub(crate) use oneshot::{OneshotEnd, TakeableEnd};

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{UnsafeCell, mutant, relax};

/// A value behind a spin lock.
pub(crate) struct SpinLock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: (LOCK-1) at most one thread at a time accesses the value, so sharing the lock only sends
// the value.
unsafe impl<T: Send> Send for SpinLock<T> {}
// SAFETY: (LOCK-1) a shared lock grants exclusive access only.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    pub(crate) fn new(value: T) -> Self {
        SpinLock {
            held: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Calls `section` with the value. `section` must not panic and must not call user code.
    pub(crate) fn with<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        let mut attempt = 0;
        // Acquire pairs with the Release store below: the section sees the writes of the previous
        // one.
        while self
            .held
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            relax(&mut attempt);
        }
        // SAFETY: (LOCK-1) the exchange above changed `held` from false to true.
        let result = self.value.with_mut(|value| section(unsafe { &mut *value }));
        let order = if mutant("lock_release") {
            Ordering::Relaxed
        } else {
            Ordering::Release
        };
        // Release pairs with the Acquire above, in the next holder.
        self.held.store(false, order);
        result
    }
}

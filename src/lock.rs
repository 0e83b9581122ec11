//! A spin lock of one byte for critical sections of a few instructions.
//!
//! No user code (wakers, drops, clones, hooks) and no blocking call runs inside; the closure form
//! makes the section visible. One read-modify-write to take it, a plain store to give it back: a
//! `std` mutex needs two (see ARCHITECTURE.md for the figures).
//!
//! # Invariants
//! - LOCK-1: `value` is touched only by the thread that moved `held` from false to true.
#![expect(
    unsafe_code,
    reason = "shared mutable access is what a lock is for; see LOCK-1"
)]

#[cfg(all(test, greenroom_loom))]
mod loom;
mod oneshot;

pub(crate) use oneshot::OneshotEnd;

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{UnsafeCell, mutant, relax};

/// A value behind a spin lock.
pub(crate) struct Lock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: (LOCK-1) at most one thread at a time reaches the value, so it is only ever sent.
unsafe impl<T: Send> Send for Lock<T> {}
// SAFETY: (LOCK-1) a shared lock hands out exclusive access only.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Lock {
            held: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Runs `section` with the value. `section` must not panic and must not call user code.
    pub(crate) fn with<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        let mut attempt = 0;
        // Acquire pairs with the Release store below: the section sees what the last one wrote.
        while self
            .held
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            relax(&mut attempt);
        }
        // SAFETY: (LOCK-1) the exchange above moved `held` from false to true.
        let result = self.value.with_mut(|value| section(unsafe { &mut *value }));
        let order = if mutant("lock_release") {
            Ordering::Relaxed
        } else {
            Ordering::Release
        };
        // Release pairs with the Acquire above, of the next holder.
        self.held.store(false, order);
        result
    }
}

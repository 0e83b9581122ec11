//! A slot for one value that two ends own: the end that is done last frees it, without a count.
//!
//! An end that is alone needs no lock any more, and an end that is done leaves with a plain store. So two threads
//! that tell each other one thing pay for one exchange each, where a lock in an `Arc` takes six.
//!
//! # Invariants
//! - ONESHOT-1: `value` is touched by the end that has moved the state from open to held; or by an end that is not
//!   shared, if that finds the other one done.
//! - ONESHOT-2: an end that is done touches nothing any more; the second that is done frees the memory.
#![expect(
    unsafe_code,
    reason = "one allocation with two owners; see ONESHOT-1 and ONESHOT-2"
)]

#[cfg(all(test, greenroom_loom))]
mod loom;

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;

use crate::blocks;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{UnsafeCell, mutant, relax};

/// Both ends are there.
const OPEN: u32 = 0;
/// One of them has the value.
const HELD: u32 = 1;
/// One of them is done.
const DONE: u32 = 2;

struct OneshotSlot<T> {
    state: AtomicU32,
    value: UnsafeCell<T>,
}

/// The right of one of two threads to the value in a slot.
pub(crate) struct OneshotEnd<T> {
    slot: NonNull<OneshotSlot<T>>,
    _value: PhantomData<T>,
}

// SAFETY: (ONESHOT-1) one end at a time reaches the value, so it is only ever sent.
unsafe impl<T: Send> Send for OneshotEnd<T> {}
// SAFETY: (ONESHOT-1) an end that is shared gives access only by way of the lock.
unsafe impl<T: Send> Sync for OneshotEnd<T> {}

// No user code runs while the value is held, so no panic leaves it half changed.
impl<T> UnwindSafe for OneshotEnd<T> {}
impl<T> RefUnwindSafe for OneshotEnd<T> {}

impl<T> OneshotEnd<T> {
    pub(crate) fn pair(value: T) -> (Self, Self) {
        let slot = blocks::room::<OneshotSlot<T>>();
        // SAFETY: memory for just that.
        unsafe {
            slot.write(OneshotSlot {
                state: AtomicU32::new(OPEN),
                value: UnsafeCell::new(value),
            });
        }
        let end = || OneshotEnd {
            slot,
            _value: PhantomData,
        };
        (end(), end())
    }

    fn slot(&self) -> &OneshotSlot<T> {
        // SAFETY: (ONESHOT-2) this end is not done.
        unsafe { self.slot.as_ref() }
    }

    /// Whether the other end is done.
    #[inline]
    pub(crate) fn is_alone(&self) -> bool {
        // Acquire pairs with the Release in `leave`: what the other one did is seen.
        self.slot().state.load(Ordering::Acquire) == DONE
    }

    /// Takes the value, if need be from the other end; says whether that is done.
    #[inline]
    fn enter(&self) -> bool {
        let state = &self.slot().state;
        let mut attempt = 0;
        while !self.is_alone() {
            // Acquire pairs with the Release in `leave`: as above.
            let entered = state.compare_exchange(OPEN, HELD, Ordering::Acquire, Ordering::Relaxed);
            match entered {
                Ok(_) => return false,
                Err(HELD) => relax(&mut attempt),
                Err(_done) => {}
            }
        }
        true
    }

    #[inline]
    fn leave(&self, state: u32) {
        let order = if mutant("oneshot_left_relaxed") {
            Ordering::Relaxed
        } else {
            Ordering::Release
        };
        // Release pairs with the Acquires of the other end.
        self.slot().state.store(state, order);
    }

    /// # Safety
    /// (ONESHOT-1) The value is this end's: it has entered.
    #[inline]
    unsafe fn touch<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: by the caller's promise.
        let touched = |value: *mut T| section(unsafe { &mut *value });
        self.slot().value.with_mut(touched)
    }

    /// Runs `section` with the value. `section` must not panic and must not call user code.
    #[inline]
    pub(crate) fn with<R>(&mut self, section: impl FnOnce(&mut T) -> R) -> R {
        let is_alone = self.enter();
        // SAFETY: (ONESHOT-1) entered, and nobody shares this end.
        let result = unsafe { self.touch(section) };
        if !is_alone {
            self.leave(OPEN);
        }
        result
    }

    /// The same for one that may be shared; `None` if the other end is done, since then there is no lock.
    pub(crate) fn look<R>(&self, section: impl FnOnce(&mut T) -> R) -> Option<R> {
        if self.enter() && !mutant("a_shared_end_looks_without_lock") {
            return None;
        }
        // SAFETY: (ONESHOT-1) entered, by an exchange.
        let result = unsafe { self.touch(section) };
        self.leave(OPEN);
        Some(result)
    }

    /// The same as the last that this end does. The value is left to the other end or, if that is done,
    /// dropped.
    #[inline]
    pub(crate) fn finish<R>(self, section: impl FnOnce(&mut T) -> R) -> R {
        let this = ManuallyDrop::new(self);
        let is_alone = this.enter();
        // SAFETY: (ONESHOT-1) entered, and nobody shares what is given up.
        let result = unsafe { this.touch(section) };
        if !is_alone {
            this.leave(DONE);
        } else if !mutant("the_last_end_frees_nothing") {
            // SAFETY: (ONESHOT-2) the second that is done; it is of `room`.
            unsafe { blocks::discard(this.slot) };
        }
        result
    }
}

// The value is never pinned.
impl<T> Unpin for OneshotEnd<T> {}

/// As one that has nothing to say.
impl<T> Drop for OneshotEnd<T> {
    fn drop(&mut self) {
        let this = OneshotEnd {
            slot: self.slot,
            _value: PhantomData,
        };
        this.finish(|_| ());
    }
}

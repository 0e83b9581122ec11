//! A slot for one value with two ends, of which the last one to finish frees it, without a
//! reference count.
//!
//! An end that is alone needs no lock any more, and an end finishes with a plain store. So two
//! threads that tell each other one thing pay one read-modify-write each, where a lock in an `Arc`
//! takes six.
//!
//! # Invariants
//! - ONESHOT-1: `value` is accessed by the end that has changed the state from open to held, or by
//!   an end that is not shared and finds the other one done.
//! - ONESHOT-2: an end that is done accesses nothing any more. The second end to finish frees the
//!   memory.
#![expect(
    unsafe_code,
    reason = "one allocation with two owners; see ONESHOT-1 and ONESHOT-2"
)]

#[cfg(all(test, greenroom_loom))]
mod loom;
mod takeable;

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;

pub(crate) use takeable::TakeableEnd;

use crate::blocks;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{UnsafeCell, mutant, relax};

/// Both ends exist, and neither holds the value.
const OPEN: u32 = 0;
/// One of the ends holds the value.
const HELD: u32 = 1;
/// One of the ends is done.
const DONE: u32 = 2;

struct OneshotSlot<T> {
    state: AtomicU32,
    value: UnsafeCell<T>,
}

impl<T> OneshotSlot<T> {
    fn put(state: u32, value: T) -> NonNull<Self> {
        let slot = blocks::room::<OneshotSlot<T>>();
        // SAFETY: the memory has room for the slot.
        unsafe {
            slot.write(OneshotSlot {
                state: AtomicU32::new(state),
                value: UnsafeCell::new(value),
            });
        }
        slot
    }
}

/// One of the two ends of a slot, with access to its value.
pub(crate) struct OneshotEnd<T> {
    slot: NonNull<OneshotSlot<T>>,
    _value: PhantomData<T>,
}

// SAFETY: (ONESHOT-1) one end at a time accesses the value, so the value is only ever sent.
unsafe impl<T: Send> Send for OneshotEnd<T> {}
// SAFETY: a shared end grants no access to the value.
unsafe impl<T: Send> Sync for OneshotEnd<T> {}

// No user code runs while the value is held, so no panic leaves it half changed.
impl<T> UnwindSafe for OneshotEnd<T> {}
impl<T> RefUnwindSafe for OneshotEnd<T> {}

impl<T> OneshotEnd<T> {
    pub(crate) fn pair(value: T) -> (Self, Self) {
        let slot = OneshotSlot::put(OPEN, value);
        let end = || OneshotEnd {
            slot,
            _value: PhantomData,
        };
        (end(), end())
    }

    /// Creates an end whose other end is done.
    pub(crate) fn alone(value: T) -> Self {
        OneshotEnd {
            slot: OneshotSlot::put(DONE, value),
            _value: PhantomData,
        }
    }

    fn slot(&self) -> &OneshotSlot<T> {
        // SAFETY: (ONESHOT-2) this end is not done.
        unsafe { self.slot.as_ref() }
    }

    /// Returns whether the other end is done.
    #[inline]
    pub(crate) fn is_alone(&self) -> bool {
        // Acquire pairs with the Release in `leave`: this end sees what the other one did.
        self.slot().state.load(Ordering::Acquire) == DONE
    }

    /// Waits until the other end does not hold the value, and takes it. Returns whether the other
    /// end is done.
    #[inline]
    fn enter(&self) -> bool {
        let state = &self.slot().state;
        let mut attempt = 0;
        while !self.is_alone() {
            // Acquire pairs with the Release in `leave`, as above.
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

    /// Calls `section` with the value.
    ///
    /// # Safety
    /// (ONESHOT-1) This end has entered, so it holds the value.
    #[inline]
    unsafe fn touch<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: by the caller's promise.
        let touched = |value: *mut T| section(unsafe { &mut *value });
        self.slot().value.with_mut(touched)
    }

    /// Calls `section` with the value. `section` must not panic and must not call user code.
    #[inline]
    pub(crate) fn with<R>(&mut self, section: impl FnOnce(&mut T) -> R) -> R {
        let is_alone = self.enter();
        // SAFETY: (ONESHOT-1) this end has entered, and is not shared.
        let result = unsafe { self.touch(section) };
        if !is_alone {
            self.leave(OPEN);
        }
        result
    }

    /// Calls `section` as `with` does, as the last access of this end. The value is left to the
    /// other end or, if that is done, dropped.
    #[inline]
    pub(crate) fn finish<R>(self, section: impl FnOnce(&mut T) -> R) -> R {
        let this = ManuallyDrop::new(self);
        let is_alone = this.enter();
        // SAFETY: (ONESHOT-1) this end has entered, and is not shared.
        let result = unsafe { this.touch(section) };
        if !is_alone {
            this.leave(DONE);
        } else if !mutant("the_last_end_frees_nothing") {
            // SAFETY: (ONESHOT-2) the second end to finish; the slot was allocated with `room`.
            unsafe { blocks::discard(this.slot) };
        }
        result
    }
}

// The value is never pinned.
impl<T> Unpin for OneshotEnd<T> {}

/// Finishes this end without another access.
impl<T> Drop for OneshotEnd<T> {
    fn drop(&mut self) {
        let this = OneshotEnd {
            slot: self.slot,
            _value: PhantomData,
        };
        this.finish(|_| ());
    }
}

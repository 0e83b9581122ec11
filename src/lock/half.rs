//! One half of a lock that two own: it is freed by the half that is done last, and nobody counts.
//!
//! A half that is alone needs no lock any more, and whoever is about to be alone leaves with a plain store. So
//! two that tell each other one thing pay for one exchange each, where a lock in an `Arc` takes six.
//!
//! # Invariants
//! - ONESHOT-1: `value` is touched by the half that has moved the state from open to held; or, by whoever has it
//!   to itself, if that finds the other one done.
//! - ONESHOT-2: a half that is done touches nothing any more; the one that is done second frees the memory.
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

/// Both halves are there.
const OPEN: u32 = 0;
/// One of them has the value.
const HELD: u32 = 1;
/// One of them is done.
const DONE: u32 = 2;

struct Whole<T> {
    state: AtomicU32,
    value: UnsafeCell<T>,
}

/// The right of one of two to a value.
pub(crate) struct Half<T> {
    whole: NonNull<Whole<T>>,
    _value: PhantomData<T>,
}

// SAFETY: (ONESHOT-1) one half at a time reaches the value, so it is only ever sent.
unsafe impl<T: Send> Send for Half<T> {}
// SAFETY: (ONESHOT-1) a half that is shared gives access only by way of the lock.
unsafe impl<T: Send> Sync for Half<T> {}

// No user code runs while the value is held, so no panic leaves it half changed.
impl<T> UnwindSafe for Half<T> {}
impl<T> RefUnwindSafe for Half<T> {}

impl<T> Half<T> {
    pub(crate) fn pair(value: T) -> (Self, Self) {
        let whole = blocks::room::<Whole<T>>();
        // SAFETY: memory for just that.
        unsafe {
            whole.write(Whole {
                state: AtomicU32::new(OPEN),
                value: UnsafeCell::new(value),
            });
        }
        let half = || Half {
            whole,
            _value: PhantomData,
        };
        (half(), half())
    }

    fn whole(&self) -> &Whole<T> {
        // SAFETY: (ONESHOT-2) this half is not done.
        unsafe { self.whole.as_ref() }
    }

    /// Whether the other half is done.
    #[inline]
    pub(crate) fn is_alone(&self) -> bool {
        // Acquire pairs with the Release in `leave`: what the other one did is seen.
        self.whole().state.load(Ordering::Acquire) == DONE
    }

    /// Takes the value, if need be from the other half; says whether that is done.
    #[inline]
    fn enter(&self) -> bool {
        let state = &self.whole().state;
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
        let order = if mutant("half_left_relaxed") {
            Ordering::Relaxed
        } else {
            Ordering::Release
        };
        // Release pairs with the Acquires of the other half.
        self.whole().state.store(state, order);
    }

    /// # Safety
    /// (ONESHOT-1) The value is this half's: it has entered.
    #[inline]
    unsafe fn touch<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: by the caller's promise.
        let touched = |value: *mut T| section(unsafe { &mut *value });
        self.whole().value.with_mut(touched)
    }

    /// Runs `section` with the value. `section` must not panic and must not call user code.
    #[inline]
    pub(crate) fn with<R>(&mut self, section: impl FnOnce(&mut T) -> R) -> R {
        let is_alone = self.enter();
        // SAFETY: (ONESHOT-1) entered, and nobody shares this half.
        let result = unsafe { self.touch(section) };
        if !is_alone {
            self.leave(OPEN);
        }
        result
    }

    /// The same for one that may be shared; `None` if the other half is done, since then there is no lock.
    pub(crate) fn look<R>(&self, section: impl FnOnce(&mut T) -> R) -> Option<R> {
        if self.enter() && !mutant("a_shared_half_looks_without_lock") {
            return None;
        }
        // SAFETY: (ONESHOT-1) entered, by an exchange.
        let result = unsafe { self.touch(section) };
        self.leave(OPEN);
        Some(result)
    }

    /// The same as the last that this half does. The value is left to the other half or, if that is done,
    /// dropped.
    #[inline]
    pub(crate) fn finish<R>(self, section: impl FnOnce(&mut T) -> R) -> R {
        let this = ManuallyDrop::new(self);
        let is_alone = this.enter();
        // SAFETY: (ONESHOT-1) entered, and nobody shares what is given up.
        let result = unsafe { this.touch(section) };
        if !is_alone {
            this.leave(DONE);
        } else if !mutant("the_last_half_frees_nothing") {
            // SAFETY: (ONESHOT-2) the second that is done; it is of `room`.
            unsafe { blocks::discard(this.whole) };
        }
        result
    }
}

// The value is never pinned.
impl<T> Unpin for Half<T> {}

/// As one that has nothing to say.
impl<T> Drop for Half<T> {
    fn drop(&mut self) {
        let this = Half {
            whole: self.whole,
            _value: PhantomData,
        };
        this.finish(|_| ());
    }
}

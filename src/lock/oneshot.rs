//! A slot for one value with two ends, of which the last one to finish frees it, without a
//! reference count.
//!
//! An end that is alone needs no lock any more, and an end finishes with a plain store. So two
//! threads that pass each other one thing pay one read-modify-write each, where a lock in an `Arc`
//! takes six. An end can be put into a word that threads share, out of which one of them takes it.
//!
//! # Invariants
//! - ONESHOT-1: `value` is accessed by the end that has changed the state from open to held, or by
//!   an end that is not shared and finds the other one done.
//! - ONESHOT-2: an end that is done accesses nothing any more. The second end to finish frees the
//!   memory.
//! - TAKEABLE-1: a word that is not null is the slot of an end that this word owns. The thread that
//!   set bit 0 uses the end until it clears the bit. The thread that replaced the word by null owns
//!   the end.

#![expect(
    unsafe_code,
    reason = "one allocation with two owners, one of which may be a tagged pointer; see ONESHOT-1 \
              to TAKEABLE-1"
)]

#[cfg(all(test, greenroom_loom))]
mod loom;

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::{NonNull, null_mut};

use crate::blocks;
use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
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

    /// Returns a number that both ends have, and no other slot while one of them exists.
    pub(crate) fn id(&self) -> usize {
        self.slot.addr().get()
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

/// Set while a thread looks at the slot.
const LOOKING: usize = 1;

/// An end that may have been taken.
pub(crate) struct TakeableEnd<T> {
    word: AtomicPtr<OneshotSlot<T>>,
    _end: PhantomData<OneshotEnd<T>>,
}

// SAFETY: (TAKEABLE-1) the word owns an end, which is `Send`.
unsafe impl<T: Send> Send for TakeableEnd<T> {}
// SAFETY: (TAKEABLE-1) one thread at a time uses the end.
unsafe impl<T: Send> Sync for TakeableEnd<T> {}

// As for `OneshotEnd`.
impl<T> UnwindSafe for TakeableEnd<T> {}
impl<T> RefUnwindSafe for TakeableEnd<T> {}

impl<T> TakeableEnd<T> {
    #[inline]
    pub(crate) fn new(end: OneshotEnd<T>) -> Self {
        TakeableEnd {
            word: AtomicPtr::new(ManuallyDrop::new(end).slot.as_ptr()),
            _end: PhantomData,
        }
    }

    /// Takes the end, if it was not taken before.
    #[inline]
    pub(crate) fn take_mut(&mut self) -> Option<OneshotEnd<T>> {
        // Relaxed: no other thread has a reference.
        let slot = NonNull::new(self.word.load(Ordering::Relaxed))?;
        self.word.store(null_mut(), Ordering::Relaxed);
        Some(OneshotEnd {
            slot,
            _value: PhantomData,
        })
    }

    /// Returns the [`id`](OneshotEnd::id) of the end, if it was not taken.
    pub(crate) fn id(&self) -> Option<usize> {
        // Relaxed: the slot is not accessed.
        let id = self.word.load(Ordering::Relaxed).addr() & !LOOKING;
        (id != 0).then_some(id)
    }

    /// Returns whether the other end is done, or the end was taken.
    #[inline]
    pub(crate) fn is_alone(&mut self) -> bool {
        // Relaxed: no other thread has a reference.
        let slot = NonNull::new(self.word.load(Ordering::Relaxed));
        slot.is_none_or(|slot| {
            let end = ManuallyDrop::new(OneshotEnd {
                slot,
                _value: PhantomData,
            });
            end.is_alone()
        })
    }

    /// Takes the end out of a shared reference, if it was not taken before.
    pub(crate) fn take(&self) -> Option<OneshotEnd<T>> {
        let slot = self.replace(|_| null_mut())?;
        Some(OneshotEnd {
            slot,
            _value: PhantomData,
        })
    }

    /// Calls `section` with the value, unless the end was taken. `section` must not panic and must
    /// not call user code.
    pub(crate) fn look<R>(&self, section: impl FnOnce(&mut T) -> R) -> Option<R> {
        let slot = self.replace(|slot| slot.map_addr(|addr| addr | LOOKING))?;
        let mut end = ManuallyDrop::new(OneshotEnd {
            slot,
            _value: PhantomData,
        });
        let result = end.with(section);
        // Release pairs with the Acquire in `replace`: the next user sees what this one did.
        self.word.store(slot.as_ptr(), Ordering::Release);
        Some(result)
    }

    /// Replaces the word while no other thread looks at the slot, and returns the slot.
    fn replace(
        &self,
        new: impl Fn(*mut OneshotSlot<T>) -> *mut OneshotSlot<T>,
    ) -> Option<NonNull<OneshotSlot<T>>> {
        let mut attempt = 0;
        loop {
            // Relaxed: the exchange decides.
            let seen = self.word.load(Ordering::Relaxed);
            let slot = NonNull::new(seen)?;
            if seen.addr() & LOOKING != 0 {
                relax(&mut attempt);
                continue;
            }
            if mutant("an_end_is_taken_twice") {
                self.word.store(new(seen), Ordering::Relaxed);
                return Some(slot);
            }
            // Acquire pairs with the Release in `look`.
            let taken =
                self.word
                    .compare_exchange(seen, new(seen), Ordering::Acquire, Ordering::Relaxed);
            if taken.is_ok() {
                return Some(slot);
            }
        }
    }
}

impl<T> Drop for TakeableEnd<T> {
    fn drop(&mut self) {
        drop(self.take_mut());
    }
}

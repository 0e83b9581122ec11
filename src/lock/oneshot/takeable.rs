//! An end of a slot that can be taken out of a shared reference, once.
//!
//! The end is one word: a pointer whose bit 0 is set while a thread looks at the slot. A taker
//! waits for that thread, which runs a few instructions.
//!
//! # Invariants
//! - TAKEABLE-1: a word that is not null is the slot of an end that this word owns. The thread that
//!   set bit 0 uses the end until it clears the bit. The thread that replaced the word by null owns
//!   the end.
#![expect(unsafe_code, reason = "an end as a tagged pointer; see TAKEABLE-1")]

#[cfg(all(test, greenroom_loom))]
mod loom;

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::{NonNull, null_mut};

use super::{OneshotEnd, OneshotSlot};
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::{mutant, relax};

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

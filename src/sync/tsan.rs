//! Locks that ThreadSanitizer can follow, in builds for it (`--cfg greenroom_tsan`).
//!
//! ThreadSanitizer sees only instrumented code, and `std` is not instrumented. Once a thread has
//! waited for a lock of `std`, the lock orders nothing for it. It would then report the accesses of
//! successive holders as a race. So each mutex here has a word beside it, which each holder loads
//! first and stores last. That orders what the mutex orders: each critical section before the later
//! ones, and nothing else. ThreadSanitizer does not see fences either; `acquire` in `sync.rs`
//! replaces those that guard memory.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, LockResult, PoisonError, TryLockError, TryLockResult};
use std::time::Duration;

pub(crate) struct OrderedMutex<T> {
    order: AtomicUsize,
    inner: std::sync::Mutex<T>,
}

/// A guard, whose fields are dropped in this order.
pub(crate) struct MutexGuard<'a, T> {
    section: LockSection<'a>,
    inner: std::sync::MutexGuard<'a, T>,
}

/// A critical section, from after the lock to before the unlock.
struct LockSection<'a>(&'a AtomicUsize);

impl<'a> LockSection<'a> {
    fn new(order: &'a AtomicUsize) -> Self {
        // Acquire pairs with the Release in `drop` of the previous holder.
        order.load(Ordering::Acquire);
        LockSection(order)
    }
}

impl Drop for LockSection<'_> {
    fn drop(&mut self) {
        // Release pairs with the Acquire in `new` of the next holder.
        self.0.store(0, Ordering::Release);
    }
}

impl<T> OrderedMutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        OrderedMutex {
            order: AtomicUsize::new(0),
            inner: std::sync::Mutex::new(value),
        }
    }

    /// Locks the mutex. Never returns an error, since `sync.rs` ignores poison.
    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.enter(inner))
    }

    /// Locks the mutex, or returns an error if it is locked.
    pub(crate) fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        match self.inner.try_lock() {
            Ok(inner) => Ok(self.enter(inner)),
            Err(TryLockError::Poisoned(poisoned)) => Ok(self.enter(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        }
    }

    /// Returns the value. The owner has no holder beside it.
    pub(crate) fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }

    fn enter<'a>(&'a self, inner: std::sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard {
            section: LockSection::new(&self.order),
            inner,
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// Leaves the critical section, waits, and enters it again. The condition variable orders nothing
/// beyond its mutex.
pub(crate) fn wait_until<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    wait: Option<Duration>,
) -> MutexGuard<'a, T> {
    let MutexGuard { section, inner } = guard;
    let order = section.0;
    drop(section);
    let inner = super::body::wait_in_std(condvar, inner, wait);
    MutexGuard {
        section: LockSection::new(order),
        inner,
    }
}

/// The cell of `std`, whose initialised value is visible to all threads. It orders nothing else,
/// since every look at the clock goes through one.
pub(crate) struct OnceLock<T> {
    is_made: AtomicBool,
    making: OrderedMutex<()>,
    inner: std::sync::OnceLock<T>,
}

impl<T> OnceLock<T> {
    pub(crate) const fn new() -> Self {
        OnceLock {
            is_made: AtomicBool::new(false),
            making: OrderedMutex::new(()),
            inner: std::sync::OnceLock::new(),
        }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        // Acquire pairs with the Release of `get_or_init`.
        let is_made = self.is_made.load(Ordering::Acquire);
        self.inner.get().filter(|_| is_made)
    }

    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        if let Some(value) = self.get() {
            return value;
        }
        let _section = self.making.lock();
        let value = self.inner.get_or_init(make);
        // Release pairs with the Acquire of `get`.
        self.is_made.store(true, Ordering::Release);
        value
    }
}

//! The one door to `std` or loom: atomics, mutex, condition variable, unsafe cell.
//!
//! Nothing else in the crate names `std::sync::atomic`, `Mutex` or `Condvar`, so under
//! `--cfg greenroom_loom` every structure that goes through here is explored by the model checker.
//! A mutex never reports poison: what a panic leaves behind is decided where user code is called.

#[cfg(all(target_family = "wasm", not(target_feature = "atomics")))]
compile_error!(
    "greenroom needs threads, which a WebAssembly target has only with the feature `atomics`"
);
#[cfg(not(all(target_has_atomic = "ptr", target_has_atomic = "64")))]
compile_error!(
    "greenroom needs atomic operations on pointers and on 64 bits, which this target does not have"
);

mod fences;
mod fork;
#[cfg(greenroom_tsan)]
mod tsan;

#[cfg(greenroom_loom)]
mod body {
    pub(crate) mod atomic {
        pub(crate) use loom::sync::atomic::{
            AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
        };
    }
    pub(crate) use loom::cell::UnsafeCell;
    use loom::sync as imp;
    pub(crate) use loom::thread::yield_now;

    /// One value for each thread of a model; `std`'s would be one for all of them.
    macro_rules! own_local {
        ($(#[$attr:meta])* static $name:ident: $type:ty = const { $init:expr };) => {
            ::loom::thread_local! { $(#[$attr])* static $name: $type = $init }
        };
    }
    pub(crate) use own_local as thread_local;

    /// One for each run of a model, which so begins with the same; `std`'s would be one for all of them.
    macro_rules! own_static {
        ($(#[$attr:meta])* static $name:ident: [$type:ty; $len:expr] = [const $init:block; _];) => {
            ::loom::lazy_static! {
                $(#[$attr])* static ref $name: [$type; $len] = std::array::from_fn(|_| $init);
            }
        };
        ($(#[$attr:meta])* static $name:ident: $type:ty = $init:expr;) => {
            ::loom::lazy_static! { $(#[$attr])* static ref $name: $type = $init; }
        };
    }
    pub(crate) use own_static;

    /// Memory whose leak or second freeing fails the model.
    pub(crate) mod memory {
        pub(crate) use loom::alloc::{alloc, dealloc};
    }

    /// True in model builds, where constants shrink so that models stay small.
    pub(crate) const MODEL: bool = true;

    /// Whether the named fault is switched on in this run of a model.
    pub(crate) fn mutant(name: &str) -> bool {
        static CHOSEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
        CHOSEN
            .get_or_init(|| std::env::var("GREENROOM_MUTANT").ok())
            .as_deref()
            == Some(name)
    }

    pub(crate) use imp::MutexGuard;
    pub(super) use imp::{Condvar, Mutex};

    /// In a model no time passes: a time-out is an event that the model itself lets happen.
    pub(super) fn wait_until<'a, T>(
        condvar: &Condvar,
        guard: MutexGuard<'a, T>,
        _wait: Option<std::time::Duration>,
    ) -> MutexGuard<'a, T> {
        condvar
            .wait(guard)
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    std::thread_local! {
        static FOLLOWS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    }

    /// From now on the model that runs on this thread follows those that wait for a lock, too. One
    /// with few threads can.
    #[cfg(test)]
    pub(crate) fn follow_waits() {
        FOLLOWS.set(true);
    }

    /// Whoever waits has changed nothing, as if it came later, which is a way of its own and mostly
    /// tried too. So this one is not followed further, unless the model asks for it; two who wait
    /// for a third would take turns for ever.
    pub(super) fn relax(_attempt: u32) {
        if !FOLLOWS.get() {
            loom::skip_branch();
        }
        yield_now();
    }
}

#[cfg(not(greenroom_loom))]
mod body {
    pub(crate) mod atomic {
        pub(crate) use std::sync::atomic::{
            AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
        };
    }
    pub(crate) use std::thread::yield_now;
    pub(crate) use std::thread_local;

    macro_rules! own_static {
        ($(#[$attr:meta])* static $name:ident: [$type:ty; $len:expr] = [const $init:block; _];) => {
            $(#[$attr])* static $name: [$type; $len] = [const $init; $len];
        };
        ($(#[$attr:meta])* static $name:ident: $type:ty = $init:expr;) => {
            $(#[$attr])* static $name: $type = $init;
        };
    }
    pub(crate) use own_static;

    pub(crate) mod memory {
        pub(crate) use std::alloc::{alloc, dealloc};
    }

    pub(crate) const MODEL: bool = false;

    #[cfg(not(greenroom_mutants))]
    #[inline(always)]
    pub(crate) fn mutant(_name: &str) -> bool {
        false
    }

    /// Whether the named fault is built in: the one that the environment names while this is compiled, so that
    /// the others cost no instruction, which would hide races.
    #[cfg(greenroom_mutants)]
    #[inline(always)]
    pub(crate) fn mutant(name: &str) -> bool {
        const CHOSEN: Option<&str> = option_env!("GREENROOM_MUTANT");
        CHOSEN == Some(name)
    }

    /// `std`'s cell with loom's interface.
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            UnsafeCell(std::cell::UnsafeCell::new(value))
        }

        pub(crate) fn into_inner(self) -> T {
            self.0.into_inner()
        }

        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }

    #[cfg(greenroom_tsan)]
    pub(crate) use super::tsan::{Condvar, Mutex, MutexGuard, wait_until};
    #[cfg(not(greenroom_tsan))]
    pub(crate) use std::sync::MutexGuard;
    #[cfg(not(greenroom_tsan))]
    pub(super) use std::sync::{Condvar, Mutex};
    #[cfg(not(greenroom_tsan))]
    pub(super) use wait_in_std as wait_until;

    pub(super) fn wait_in_std<'a, T>(
        condvar: &std::sync::Condvar,
        guard: std::sync::MutexGuard<'a, T>,
        wait: Option<std::time::Duration>,
    ) -> std::sync::MutexGuard<'a, T> {
        match wait {
            None => condvar
                .wait(guard)
                .unwrap_or_else(std::sync::PoisonError::into_inner),
            Some(wait) => {
                condvar
                    .wait_timeout(guard, wait)
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
                    .0
            }
        }
    }

    /// Twice as long from look to look, since each look takes the cache line from the one inside. After
    /// `SPINS` looks, 63 pauses or some 3 µs, that one has probably lost its core, so the time slice is given
    /// away; after `YIELDS` it may not even run at our priority, so the thread sleeps, for a `NAP` each time. In a
    /// child of a `fork` it may be a thread of the parent's, and so is taken to be after `NAPS`, a second.
    pub(super) fn relax(attempt: u32) {
        const SPINS: u32 = 6;
        const YIELDS: u32 = 1024;
        const NAP: std::time::Duration = std::time::Duration::from_micros(50);
        const NAPS: u32 = 20_000;
        if attempt <= SPINS {
            for _ in 0..1 << (attempt - 1) {
                std::hint::spin_loop();
            }
        } else if attempt <= YIELDS {
            yield_now();
        } else {
            let is_lost = attempt > YIELDS + NAPS && !super::Process::is_first();
            assert!(!is_lost, "{}", super::LEFT_BEHIND);
            std::thread::sleep(NAP);
        }
    }
}

use std::sync::TryLockError;
use std::time::Duration;

#[cfg(all(test, greenroom_loom))]
pub(crate) use body::follow_waits;
pub(crate) use body::{MODEL, MutexGuard, UnsafeCell, atomic, memory, mutant};
pub(crate) use body::{own_static, thread_local, yield_now};
pub(crate) use fences::Fences;
pub(crate) use fork::{InChildren, LEFT_BEHIND, PerProcess, Process};
#[cfg(not(greenroom_tsan))]
pub(crate) use std::sync::OnceLock;
#[cfg(greenroom_tsan)]
pub(crate) use tsan::OnceLock;

/// Atomics for process-wide statics, which no model explores (loom has no constant constructors).
pub(crate) mod global {
    pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
}

/// More references than this and the process is aborted, as `Arc` does: a program that forgets two
/// thousand million of them must not reach zero by counting on.
pub(crate) const COUNT_MAX: u32 = i32::MAX as u32;

/// On cache lines of its own: whoever writes to it disturbs nobody who reads what lies beside. 128 bytes,
/// since processors fetch lines of 64 in pairs.
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);

impl<T> std::ops::Deref for CachePadded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A mutex without poison.
pub(crate) struct Mutex<T>(body::Mutex<T>);

impl<T> Mutex<T> {
    #[cfg(not(greenroom_loom))]
    pub(crate) const fn new(value: T) -> Self {
        Mutex(body::Mutex::new(value))
    }

    #[cfg(greenroom_loom)]
    pub(crate) fn new(value: T) -> Self {
        Mutex(body::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// `None` if it is locked.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A condition variable over [`Mutex`].
pub(crate) struct Condvar(body::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Condvar(body::Condvar::new())
    }

    /// Waits for a notice, at most `wait` long (`None`: for ever). May wake without a reason.
    pub(crate) fn wait<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        wait: Option<Duration>,
    ) -> MutexGuard<'a, T> {
        body::wait_until(&self.0, guard, wait)
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// An Acquire fence after a Relaxed access to an atomic, which `load` loads. ThreadSanitizer sees no fence, so there
/// it is a load with that order.
#[inline(always)]
pub(crate) fn acquire<T>(load: impl FnOnce(atomic::Ordering) -> T) {
    if cfg!(greenroom_tsan) {
        load(atomic::Ordering::Acquire);
    } else {
        // Acquire pairs as the caller says.
        atomic::fence(atomic::Ordering::Acquire);
    }
}

/// Waits a little for somebody who is inside a critical section of a few instructions.
///
/// `attempt` counts the waits of one acquisition.
pub(crate) fn relax(attempt: &mut u32) {
    *attempt = attempt.saturating_add(1);
    body::relax(*attempt);
}

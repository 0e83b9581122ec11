//! Atomics, mutex, condition variable and unsafe cell, from `std` or from loom.
//!
//! No other module of the crate names `std::sync::atomic`, `Mutex` or `Condvar`. So under `--cfg
//! greenroom_loom` the model checker explores every structure that uses this module. A mutex never
//! reports poison: the callers of user code handle its panics.

#[cfg(all(target_family = "wasm", not(target_feature = "atomics")))]
compile_error!(
    "greenroom needs threads, which a WebAssembly target has only with the feature `atomics`"
);
#[cfg(not(all(target_has_atomic = "ptr", target_has_atomic = "64")))]
compile_error!(
    "greenroom needs atomic operations on pointers and on 64 bits, which this target does not have"
);

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

    /// Declares a thread-local with one value for each thread of a model; `std`'s would be shared
    /// by all of them.
    macro_rules! own_local {
        ($(#[$attr:meta])* static $name:ident: $type:ty = const { $init:expr };) => {
            ::loom::thread_local! { $(#[$attr])* static $name: $type = $init }
        };
    }
    pub(crate) use own_local as thread_local;

    /// Declares a static that each execution of a model creates anew; `std`'s would be shared by
    /// all of them.
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

    /// An allocator for which a leak or a double free fails the model.
    pub(crate) mod memory {
        pub(crate) use loom::alloc::{alloc, dealloc};
    }

    /// Whether this is a model build, where constants shrink so that models stay small.
    pub(crate) const MODEL: bool = true;

    /// Returns whether the named mutation is enabled in this run of a model.
    pub(crate) fn mutant(name: &str) -> bool {
        static CHOSEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
        CHOSEN
            .get_or_init(|| std::env::var("GREENROOM_MUTANT").ok())
            .as_deref()
            == Some(name)
    }

    pub(crate) use imp::MutexGuard;
    pub(super) use imp::{Condvar, Mutex};

    /// Waits for a notification. No time passes in a model: a timeout is an event that the model
    /// triggers.
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

    /// Makes the model on this thread follow executions in which a thread waits for a lock, too.
    /// Only models with few threads can afford it.
    #[cfg(test)]
    pub(crate) fn follow_waits() {
        FOLLOWS.set(true);
    }

    /// Ends this execution, unless the model follows waits. A waiting thread has changed nothing,
    /// so the execution equals one in which it arrives later, which is mostly explored too. Two
    /// threads that wait for a third would alternate forever.
    pub(super) fn relax(_attempt: u32) {
        if !FOLLOWS.get() {
            loom::skip_branch();
        }
        yield_now();
    }

    /// The fences of a model. A light fence that loom sees as a fence would pair with every other
    /// fence.
    ///
    /// Here both fences are RMWs of one value, which order them among themselves and with nothing
    /// else. They also order two light fences, which is more than the real ones do.
    pub(crate) struct Fences(atomic::AtomicUsize);

    impl Fences {
        pub(crate) fn new() -> Self {
            Fences(atomic::AtomicUsize::new(0))
        }

        pub(crate) fn light(&self) {
            // AcqRel pairs with that of `heavy`.
            self.0.fetch_add(1, atomic::Ordering::AcqRel);
        }

        #[must_use]
        pub(crate) fn heavy(&self) -> bool {
            // AcqRel pairs with that of `light`.
            self.0.fetch_add(1, atomic::Ordering::AcqRel);
            true
        }
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

    /// Returns whether the named mutation is built in. `GREENROOM_MUTANT` names it at compile time.
    /// The others cost no instructions, which would hide races.
    #[cfg(greenroom_mutants)]
    #[inline(always)]
    pub(crate) fn mutant(name: &str) -> bool {
        const CHOSEN: Option<&str> = option_env!("GREENROOM_MUTANT");
        CHOSEN == Some(name)
    }

    /// The cell of `std` with loom's interface.
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            UnsafeCell(std::cell::UnsafeCell::new(value))
        }

        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }

    #[cfg(greenroom_tsan)]
    pub(crate) use super::tsan::{MutexGuard, OrderedMutex as Mutex, wait_until};
    #[cfg(greenroom_tsan)]
    pub(super) use std::sync::Condvar;
    #[cfg(not(greenroom_tsan))]
    pub(crate) use std::sync::MutexGuard;
    #[cfg(not(greenroom_tsan))]
    pub(super) use std::sync::{Condvar, Mutex};
    #[cfg(not(greenroom_tsan))]
    pub(super) use wait_in_std as wait_until;

    /// Waits for a notification, for at most `wait`.
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

    /// Waits twice as long from check to check, since each check takes the cache line from the
    /// thread in the critical section.
    ///
    /// After `SPINS` checks, 63 pauses or about 3 µs, that thread has probably lost its core, so
    /// this one yields. After `YIELDS` checks the other may not even run at our priority, so this
    /// one sleeps, for `NAP` each time. In a child of a `fork` the other may be a thread of the
    /// parent process. It is assumed to be after `NAPS` sleeps, one second.
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

    /// An asymmetric pair of fences: a light and a heavy fence pair as two `SeqCst` fences do.
    ///
    /// Frequent operations use the light fence, rare ones the heavy fence. On Linux the heavy fence
    /// is a `membarrier` system call: every core that runs this process executes a fence, so the
    /// light one only stops the compiler. Where there is no `membarrier`, both are `SeqCst` fences.
    /// Two light fences order nothing.
    ///
    /// # Invariants
    /// - FENCES-1: `is_light` is true only if the process is registered, which it stays.
    pub(crate) struct Fences {
        is_light: bool,
    }

    impl Fences {
        /// Registers the process at the first call, which takes some ms if there are other threads
        /// already.
        pub(crate) fn new() -> Self {
            static REGISTERED: super::PerProcess<bool> = super::PerProcess::new();
            Fences {
                is_light: *REGISTERED.get_or_init(super::membarrier::register),
            }
        }

        /// Executes the light fence.
        #[inline(always)]
        pub(crate) fn light(&self) {
            if self.is_light {
                std::sync::atomic::compiler_fence(atomic::Ordering::SeqCst);
            } else {
                // SeqCst pairs with that of `heavy`.
                atomic::fence(atomic::Ordering::SeqCst);
            }
        }

        /// Executes the heavy fence; returns false if the system refused it, for now or for good.
        #[must_use]
        pub(crate) fn heavy(&self) -> bool {
            // SeqCst pairs with that of `light`.
            atomic::fence(atomic::Ordering::SeqCst);
            // (FENCES-1) So the system knows the command.
            !self.is_light || super::membarrier::fence_all_cores()
        }
    }
}

#[cfg(all(target_os = "linux", not(any(miri, greenroom_loom))))]
mod membarrier {
    #![expect(unsafe_code, reason = "a system call that `std` does not have")]

    /// Registers the process for fences on all cores; returns whether the system has them.
    pub(super) fn register() -> bool {
        membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
    }

    /// Executes a fence on each core that runs this process; returns whether the system did so.
    pub(super) fn fence_all_cores() -> bool {
        membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
    }

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: for every command, the system neither reads nor writes memory of the process.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }
}

/// A system without fences on all cores.
#[cfg(not(any(all(target_os = "linux", not(miri)), greenroom_loom)))]
mod membarrier {
    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn fence_all_cores() -> bool {
        false
    }
}

use std::sync::TryLockError;
use std::time::Duration;

#[cfg(all(test, greenroom_loom))]
pub(crate) use body::follow_waits;
pub(crate) use body::{Fences, MODEL, MutexGuard, UnsafeCell, atomic, memory, mutant};
pub(crate) use body::{own_static, thread_local, yield_now};
pub(crate) use fork::{InChildren, LEFT_BEHIND, PerProcess, Process};
#[cfg(not(greenroom_tsan))]
pub(crate) use std::sync::OnceLock;
#[cfg(greenroom_tsan)]
pub(crate) use tsan::OnceLock;

/// Atomics for process-wide statics, which no model explores, since loom has no constant
/// constructors.
pub(crate) mod global {
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}

/// The largest reference count. Beyond it the process is aborted, as `Arc` does: a program that
/// forgets 2³¹ references must not overflow the count to zero.
pub(crate) const COUNT_MAX: u32 = i32::MAX as u32;

/// A value on separate cache lines, so that writes to it do not slow down reads of its neighbours.
/// 128 bytes, since processors fetch lines of 64 bytes in pairs.
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

    /// Locks the mutex.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn into_inner(self) -> T {
        self.0
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Locks the mutex, or returns `None` if it is locked.
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

    /// Waits for a notification, for at most `wait`; `None` means forever. May wake up spuriously.
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

/// Orders later accesses after a Relaxed access to an atomic, which `load` loads, by an Acquire
/// fence.
///
/// ThreadSanitizer does not see fences, so there it is a load with that ordering.
#[inline(always)]
pub(crate) fn acquire<T>(load: impl FnOnce(atomic::Ordering) -> T) {
    if cfg!(greenroom_tsan) {
        load(atomic::Ordering::Acquire);
    } else {
        // Acquire pairs with the Release that the caller names.
        atomic::fence(atomic::Ordering::Acquire);
    }
}

/// Waits a little for another thread to leave a critical section of a few instructions.
pub(crate) fn relax(attempt: &mut u32) {
    *attempt = attempt.saturating_add(1);
    body::relax(*attempt);
}

/// Notes that this thread looks at an entry of a list. Tests count these; otherwise it is no code.
#[inline(always)]
pub(crate) fn look() {
    #[cfg(test)]
    LOOKS.set(LOOKS.get() + 1);
}

#[cfg(test)]
std::thread_local! {
    /// The number of entries at which this thread has looked.
    pub(crate) static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

//! An asymmetric pair of fences: a light and a heavy fence pair as two `SeqCst` fences do.
//!
//! Frequent operations use the light fence, rare ones the heavy fence. On Linux the heavy fence is
//! a `membarrier` system call: every core that runs this process executes a fence, so the light one
//! only stops the compiler. Where there is no `membarrier`, both are `SeqCst` fences. Two light
//! fences order nothing.

#[cfg(not(greenroom_loom))]
mod body {
    use std::sync::atomic::{Ordering, compiler_fence, fence};

    use super::super::PerProcess;
    use super::membarrier::{fence_all_cores, register};

    /// # Invariants
    /// - FENCES-1: `is_light` is true only if the process is registered, which it stays.
    pub(crate) struct Fences {
        is_light: bool,
    }

    impl Fences {
        /// Registers the process at the first call, which takes some ms if there are other threads
        /// already.
        pub(crate) fn new() -> Self {
            static REGISTERED: PerProcess<bool> = PerProcess::new();
            Fences {
                is_light: *REGISTERED.get_or_init(register),
            }
        }

        /// Executes the light fence.
        #[inline(always)]
        pub(crate) fn light(&self) {
            if self.is_light {
                compiler_fence(Ordering::SeqCst);
            } else {
                // SeqCst pairs with that of `heavy`.
                fence(Ordering::SeqCst);
            }
        }

        /// Executes the heavy fence; returns false if the system refused it, for now or for good.
        #[must_use]
        pub(crate) fn heavy(&self) -> bool {
            // SeqCst pairs with that of `light`.
            fence(Ordering::SeqCst);
            // (FENCES-1) So the system knows the command.
            !self.is_light || fence_all_cores()
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

/// The fences of a model. A light fence that loom sees as a fence would pair with every other
/// fence.
///
/// Here both fences are RMWs of one value, which order them among themselves and with nothing else.
/// They also order two light fences, which is more than the real ones do.
#[cfg(greenroom_loom)]
mod body {
    use loom::sync::atomic::{AtomicUsize, Ordering};

    pub(crate) struct Fences(AtomicUsize);

    impl Fences {
        pub(crate) fn new() -> Self {
            Fences(AtomicUsize::new(0))
        }

        pub(crate) fn light(&self) {
            // AcqRel pairs with that of `heavy`.
            self.0.fetch_add(1, Ordering::AcqRel);
        }

        #[must_use]
        pub(crate) fn heavy(&self) -> bool {
            // AcqRel pairs with that of `light`.
            self.0.fetch_add(1, Ordering::AcqRel);
            true
        }
    }
}

pub(crate) use body::Fences;

//! Two fences of unequal price: a light and a heavy one pair as two `SeqCst` fences do.
//!
//! What is done at each message takes the light one, what is done now and then the heavy one. Where the system has
//! `membarrier` (Linux) the heavy one makes every core that runs this process pass a fence, so the light one only
//! holds the compiler. Elsewhere both are `SeqCst` fences. Two light ones order nothing.

#[cfg(all(target_os = "linux", not(any(miri, greenroom_loom))))]
mod body {
    #![expect(unsafe_code, reason = "a system call that `std` does not have")]

    use std::sync::atomic::{Ordering, compiler_fence, fence};

    use super::super::PerProcess;

    /// # Invariants
    /// - SLEEP-1: `is_light` is true only once the process is registered, which it stays.
    pub(crate) struct Fences {
        is_light: bool,
    }

    impl Fences {
        /// The first one of a process takes the system some ms if there are other threads already.
        pub(crate) fn new() -> Self {
            static REGISTERED: PerProcess<bool> = PerProcess::new();
            let register = || membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
            Fences {
                is_light: *REGISTERED.get_or_init(register),
            }
        }

        #[inline(always)]
        pub(crate) fn light(&self) {
            if self.is_light {
                compiler_fence(Ordering::SeqCst);
            } else {
                // SeqCst pairs with that of `heavy`.
                fence(Ordering::SeqCst);
            }
        }

        /// Says whether it was one: the system may refuse it for now, or have come to forbid it.
        #[must_use]
        pub(crate) fn heavy(&self) -> bool {
            // SeqCst pairs with that of `light`.
            fence(Ordering::SeqCst);
            // (SLEEP-1) So the system knows the command.
            !self.is_light || membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
        }
    }

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: whatever the command, the system neither reads nor writes memory of the process.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }
}

#[cfg(not(any(all(target_os = "linux", not(miri)), greenroom_loom)))]
mod body {
    use std::sync::atomic::{Ordering, fence};

    pub(crate) struct Fences;

    impl Fences {
        pub(crate) fn new() -> Self {
            Fences
        }

        #[inline(always)]
        pub(crate) fn light(&self) {
            // SeqCst pairs with that of `heavy`.
            fence(Ordering::SeqCst);
        }

        #[must_use]
        pub(crate) fn heavy(&self) -> bool {
            // SeqCst pairs with that of `light`.
            fence(Ordering::SeqCst);
            true
        }
    }
}

/// A light fence that were a fence would pair with each other one in a model. Here both exchange the same value,
/// which orders them among themselves and with nothing else. That it orders two light ones, too, is more than is so.
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

//! Kept blocks in builds for AddressSanitizer (`--cfg greenroom_poisoned`): whoever uses one ends the process with
//! "use-after-poison". To the allocator a kept block is in use, so without this nobody would see it.

#[cfg(greenroom_poisoned)]
mod body {
    #![expect(unsafe_code, reason = "functions of AddressSanitizer")]

    use std::ffi::c_void;
    use std::ptr::NonNull;

    unsafe extern "C" {
        fn __asan_poison_memory_region(start: *const c_void, bytes: usize);
        fn __asan_unpoison_memory_region(start: *const c_void, bytes: usize);
    }

    pub(crate) fn hide(block: NonNull<()>, bytes: usize) {
        // SAFETY: (MEMORY-1) the block is the caller's, who does not use it while it is hidden. Only notes about it
        // are written, which are not memory of the program's.
        unsafe { __asan_poison_memory_region(block.as_ptr().cast(), bytes) }
    }

    pub(crate) fn show(block: NonNull<()>, bytes: usize) {
        // SAFETY: (MEMORY-1) the block is the caller's; only notes about it are written.
        unsafe { __asan_unpoison_memory_region(block.as_ptr().cast(), bytes) }
    }
}

#[cfg(not(greenroom_poisoned))]
mod body {
    use std::ptr::NonNull;

    #[inline(always)]
    pub(crate) fn hide(_block: NonNull<()>, _bytes: usize) {}

    #[inline(always)]
    pub(crate) fn show(_block: NonNull<()>, _bytes: usize) {}
}

pub(super) use body::{hide, show};

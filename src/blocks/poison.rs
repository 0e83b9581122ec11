//! Cached blocks in AddressSanitizer builds (`--cfg greenroom_poisoned`): a use ends the process
//! with "use-after-poison". To the allocator a cached block is in use, so without this the bug
//! would not be found. The variable `GREENROOM_UNCACHED` switches the cache of such a build off, so
//! that AddressSanitizer also finds uses of blocks that would have been handed out again.

#[cfg(greenroom_poisoned)]
mod body {
    #![expect(unsafe_code, reason = "functions of AddressSanitizer")]

    use std::env;
    use std::ffi::c_void;
    use std::ptr::NonNull;
    use std::sync::LazyLock;

    unsafe extern "C" {
        fn __asan_poison_memory_region(start: *const c_void, bytes: usize);
        fn __asan_unpoison_memory_region(start: *const c_void, bytes: usize);
    }

    pub(crate) fn keeps() -> bool {
        static KEEPS: LazyLock<bool> =
            LazyLock::new(|| env::var_os("GREENROOM_UNCACHED").is_none());
        *KEEPS
    }

    pub(crate) fn hide(block: NonNull<()>, bytes: usize) {
        // SAFETY: (MEMORY-1) the caller owns the block and does not use it while it is hidden. This
        // writes only AddressSanitizer's notes, which are no memory of the program.
        unsafe { __asan_poison_memory_region(block.as_ptr().cast(), bytes) }
    }

    pub(crate) fn show(block: NonNull<()>, bytes: usize) {
        // SAFETY: (MEMORY-1) the caller owns the block; this writes only AddressSanitizer's notes.
        unsafe { __asan_unpoison_memory_region(block.as_ptr().cast(), bytes) }
    }
}

#[cfg(not(greenroom_poisoned))]
mod body {
    use std::ptr::NonNull;

    #[inline(always)]
    pub(crate) fn keeps() -> bool {
        true
    }

    #[inline(always)]
    pub(crate) fn hide(_block: NonNull<()>, _bytes: usize) {}

    #[inline(always)]
    pub(crate) fn show(_block: NonNull<()>, _bytes: usize) {}
}

pub(super) use body::{hide, keeps, show};

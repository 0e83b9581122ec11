//! An allocator that counts live allocations while it is switched on.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

/// The allocator of the system, with counts. It is off until [`start`]; switched off it costs one
/// load for each call.
pub struct Counting;

static ON: AtomicBool = AtomicBool::new(false);
static BYTES: AtomicIsize = AtomicIsize::new(0);
static CHUNKS: AtomicIsize = AtomicIsize::new(0);
static BLOCKS: AtomicIsize = AtomicIsize::new(0);

/// The live part of all that was allocated since [`start`].
#[derive(Clone, Copy, Debug)]
pub struct Live {
    /// The bytes requested.
    pub bytes: isize,
    /// The bytes that glibc's malloc uses for them: 8 for its header, in steps of 16, at least 32.
    pub chunks: isize,
    /// The number of allocations.
    pub blocks: isize,
}

/// Starts to count from zero. Memory that was allocated before and is freed from now on counts as
/// negative.
pub fn start() {
    BYTES.store(0, Ordering::SeqCst);
    CHUNKS.store(0, Ordering::SeqCst);
    BLOCKS.store(0, Ordering::SeqCst);
    ON.store(true, Ordering::SeqCst);
}

/// Returns the current counts.
pub fn live() -> Live {
    Live {
        bytes: BYTES.load(Ordering::SeqCst),
        chunks: CHUNKS.load(Ordering::SeqCst),
        blocks: BLOCKS.load(Ordering::SeqCst),
    }
}

/// Stops counting, and returns the counts.
pub fn stop() -> Live {
    ON.store(false, Ordering::SeqCst);
    live()
}

fn count(size: usize, sign: isize) {
    if ON.load(Ordering::Relaxed) {
        let chunk = ((size + 8).next_multiple_of(16)).max(32);
        BYTES.fetch_add(sign * size.cast_signed(), Ordering::Relaxed);
        CHUNKS.fetch_add(sign * chunk.cast_signed(), Ordering::Relaxed);
        BLOCKS.fetch_add(sign, Ordering::Relaxed);
    }
}

// SAFETY: every call is passed to `System` unchanged; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(layout.size(), -1);
        count(new_size, 1);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(ptr, layout, new_size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

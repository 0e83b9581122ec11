//! The memory that is live in this process, when it is asked for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// Nothing is counted in a server whose time is measured.
static COUNTS: AtomicBool = AtomicBool::new(false);
/// Memory that was requested, minus what was freed, since the first question.
static LIVE: AtomicI64 = AtomicI64::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(bytes: usize, sign: i64) {
    // Relaxed: only the numbers count.
    if COUNTS.load(Ordering::Relaxed) {
        LIVE.fetch_add(sign * bytes as i64, Ordering::Relaxed);
    }
}

// SAFETY: all calls go to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller keeps the contract of the same method.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the memory is of the system's allocator.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(layout.size(), -1);
        count(size, 1);
        // SAFETY: the memory is of the system's allocator.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// Returns the bytes that are live and were requested since the first call, which returns 0.
pub fn live() -> i64 {
    COUNTS.store(true, Ordering::Relaxed);
    LIVE.load(Ordering::Relaxed)
}

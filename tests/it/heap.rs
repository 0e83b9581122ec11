//! What each thread has asked of the allocator, so that tests beside one another don't disturb.

#![expect(unsafe_code, reason = "an allocator, which hands every call on")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// What this thread has allocated, and not freed, so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heap {
    /// Bytes allocated less bytes freed, both by this thread.
    pub live: isize,
    /// How often something was allocated.
    pub allocations: usize,
}

/// That of the thread that calls this.
pub fn here() -> Heap {
    HEAP.with(Cell::get)
}

thread_local! {
    // Constant and without a drop: to look at it allocates nothing, at any time.
    static HEAP: Cell<Heap> = const { Cell::new(Heap { live: 0, allocations: 0 }) };
}

#[global_allocator]
static COUNTING: Counting = Counting;

struct Counting;

fn count(size: usize, freed: usize) {
    let mut heap = HEAP.get();
    heap.live += size.cast_signed() - freed.cast_signed();
    heap.allocations += usize::from(size > 0);
    HEAP.set(heap);
}

// SAFETY: every call is handed to `System` as it is; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: the caller's promises.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller's promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

//! A counting allocator: it counts per thread, so that tests running in parallel don't disturb each
//! other.

#![expect(unsafe_code, reason = "an allocator that forwards every call")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The heap use of a thread so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heap {
    /// Bytes allocated less bytes freed, both by this thread.
    pub live: isize,
    /// The number of allocations.
    pub allocations: usize,
}

/// Returns the counts of the calling thread.
pub fn here() -> Heap {
    HEAP.with(Cell::get)
}

/// Returns whether the library caches the blocks that it frees. Builds for tools that detect uses
/// after free do not.
pub fn caches_blocks() -> bool {
    let is_uncached = cfg!(any(miri, greenroom_uncached))
        || cfg!(greenroom_poisoned) && std::env::var_os("GREENROOM_UNCACHED").is_some();
    !is_uncached
}

thread_local! {
    // Constant and without a destructor: reading it never allocates.
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

// SAFETY: every call is forwarded to `System` unchanged; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

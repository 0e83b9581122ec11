//! Blocks of raw memory for messages, reused through a small cache of each thread.
//!
//! A thread keeps at most [`CACHE_BYTES_MAX`] bytes; what does not fit goes back to the allocator,
//! so a burst gives its memory back as it is read. Blocks are never built on the stack.
//!
//! # Invariants
//! - B1: a block is owned by exactly one queue, batch, or cache at a time.
//! - B2: `class` tells the layout that the block was allocated with.
#![expect(unsafe_code, reason = "raw allocations with a header; see B1 and B2")]

use std::alloc::{Layout, handle_alloc_error};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::sync::MODEL;
use crate::sync::memory::{alloc, dealloc};

/// The first block of an empty mailbox: one cache line, for the message or two of a quiet actor.
const SMALL_BYTES: usize = 64;
/// The blocks that follow in a burst: the cost of a block is shared by dozens of messages.
const LARGE_BYTES: usize = 1024;
const SMALL_KEPT_MAX: usize = 256;
const LARGE_KEPT_MAX: usize = 40;
/// What one thread's cache may hold, in bytes.
pub(crate) const CACHE_BYTES_MAX: usize = 64 * 1024;
const _: () = assert!(
    SMALL_KEPT_MAX * SMALL_BYTES + LARGE_KEPT_MAX * LARGE_BYTES <= CACHE_BYTES_MAX,
    "the cache is bounded"
);

/// The alignment of cached blocks; messages that need more get a block of their own.
const ALIGN: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Small,
    Large,
    /// Exactly one message, too large or too aligned for the others; never cached.
    Single,
}

/// What stands before the messages of a block.
#[repr(C)]
pub(super) struct Block<M> {
    /// The block itself, until it is put in a list.
    pub(super) next: NonNull<Block<M>>,
    /// Messages `read..written` are in the block.
    pub(super) read: u16,
    pub(super) written: u16,
    pub(super) capacity: u16,
    class: Class,
    _messages: PhantomData<M>,
}

const HEADER_BYTES: usize = size_of::<Block<u64>>();

impl<M> Block<M> {
    const FITS_CACHE: bool =
        align_of::<M>() <= ALIGN && size_of::<M>() <= LARGE_BYTES - HEADER_BYTES;
    const SINGLE: (Layout, usize) = match Layout::new::<Block<u64>>().extend(Layout::new::<M>()) {
        Ok((layout, offset)) => (layout.pad_to_align(), offset),
        Err(_) => panic!("a message is larger than the address space"),
    };
    /// Where the first message stands.
    const OFFSET: usize = if Self::FITS_CACHE {
        HEADER_BYTES
    } else {
        Self::SINGLE.1
    };

    const fn capacity_of(bytes: usize) -> u16 {
        let size = if size_of::<M>() == 0 {
            1
        } else {
            size_of::<M>()
        };
        ((bytes - HEADER_BYTES) / size) as u16
    }

    /// An empty block; `burst` asks for one of the larger kind.
    pub(super) fn allocate(burst: bool) -> NonNull<Block<M>> {
        let (class, capacity) = if !Self::FITS_CACHE {
            (Class::Single, 1)
        } else if burst || Self::capacity_of(SMALL_BYTES) == 0 {
            (Class::Large, Self::capacity_of(LARGE_BYTES))
        } else {
            (Class::Small, Self::capacity_of(SMALL_BYTES))
        };
        let block = take(class)
            .unwrap_or_else(|| allocate(Self::layout(class)))
            .cast::<Block<M>>();
        let header = Block {
            next: block,
            read: 0,
            written: 0,
            capacity,
            class,
            _messages: PhantomData::<M>,
        };
        // SAFETY: (B1) fresh memory with room and alignment for the header.
        unsafe { block.write(header) };
        block
    }

    /// Gives the block up; messages still in it are forgotten.
    ///
    /// # Safety
    /// The caller owns the block (B1).
    pub(super) unsafe fn free(block: NonNull<Block<M>>) {
        // SAFETY: (B1) ours, with a valid header.
        let class = unsafe { block.as_ref() }.class;
        if !keep(class, block.cast()) {
            // SAFETY: (B2) allocated with this layout.
            unsafe { dealloc(block.as_ptr().cast(), Self::layout(class)) };
        }
    }

    fn layout(class: Class) -> Layout {
        match class {
            Class::Small => const { layout(SMALL_BYTES) },
            Class::Large => const { layout(LARGE_BYTES) },
            Class::Single => Self::SINGLE.0,
        }
    }

    /// The place of message `index`.
    ///
    /// # Safety
    /// `block` is alive and `index` below its capacity.
    pub(super) unsafe fn slot(block: NonNull<Block<M>>, index: u16) -> *mut M {
        // SAFETY: the layout of the class has room for `capacity` messages from `OFFSET` on.
        unsafe {
            block
                .as_ptr()
                .byte_add(Self::OFFSET)
                .cast::<M>()
                .add(usize::from(index))
        }
    }
}

const fn layout(bytes: usize) -> Layout {
    match Layout::from_size_align(bytes, ALIGN) {
        Ok(layout) => layout,
        Err(_) => panic!("a block's size is a multiple of its alignment"),
    }
}

fn allocate(layout: Layout) -> NonNull<()> {
    // SAFETY: no layout here has size zero: each holds a header.
    let memory = unsafe { alloc(layout) };
    NonNull::new(memory.cast()).unwrap_or_else(|| handle_alloc_error(layout))
}

/// A stack of free blocks, linked through their first word.
struct Shelf {
    top: Cell<Option<NonNull<()>>>,
    count: Cell<usize>,
}

impl Shelf {
    const fn new() -> Self {
        Shelf {
            top: Cell::new(None),
            count: Cell::new(0),
        }
    }

    fn take(&self) -> Option<NonNull<()>> {
        let block = self.top.get()?;
        // SAFETY: (B1) the cache owns it and wrote the link in `keep`.
        self.top
            .set(unsafe { block.cast::<Option<NonNull<()>>>().read() });
        self.count.set(self.count.get() - 1);
        Some(block)
    }

    fn keep(&self, block: NonNull<()>, max: usize) -> bool {
        // A model keeps nothing: its allocator misses each block that is lost.
        let room = self.count.get() < max && !MODEL;
        if room {
            // SAFETY: (B1) handed over by the caller; a block is at least a header long.
            unsafe { block.cast::<Option<NonNull<()>>>().write(self.top.get()) };
            self.top.set(Some(block));
            self.count.set(self.count.get() + 1);
        }
        room
    }
}

struct Cache {
    small: Shelf,
    large: Shelf,
}

impl Drop for Cache {
    fn drop(&mut self) {
        for (shelf, bytes) in [(&self.small, SMALL_BYTES), (&self.large, LARGE_BYTES)] {
            while let Some(block) = shelf.take() {
                // SAFETY: (B2) the shelves hold blocks of these two layouts.
                unsafe { dealloc(block.as_ptr().cast(), layout(bytes)) };
            }
        }
    }
}

thread_local! {
    static CACHE: Cache = const { Cache { small: Shelf::new(), large: Shelf::new() } };
}

/// `None` also while the thread is being torn down: then the allocator serves.
fn take(class: Class) -> Option<NonNull<()>> {
    CACHE
        .try_with(|cache| match class {
            Class::Small => cache.small.take(),
            Class::Large => cache.large.take(),
            Class::Single => None,
        })
        .ok()
        .flatten()
}

fn keep(class: Class, block: NonNull<()>) -> bool {
    CACHE
        .try_with(|cache| match class {
            Class::Small => cache.small.keep(block, SMALL_KEPT_MAX),
            Class::Large => cache.large.keep(block, LARGE_KEPT_MAX),
            Class::Single => false,
        })
        .unwrap_or(false)
}

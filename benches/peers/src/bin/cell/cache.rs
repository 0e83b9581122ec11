//! Blocks for messages, in two sizes, and a block cache for each thread.

use std::alloc::{self, Layout};
use std::cell::Cell;
use std::ptr::{self, NonNull};

/// The maximum number of bytes of unused blocks in a thread's cache.
const CACHE_BYTES: usize = 64 * 1024;

/// The size of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Class {
    /// For the few messages of a mailbox without load.
    Small,
    /// For a mailbox under load.
    Large,
}

impl Class {
    const fn layout(self) -> Layout {
        let bytes = match self {
            Self::Small => 64,
            Self::Large => 1024,
        };
        match Layout::from_size_align(bytes, align_of::<Block>()) {
            Ok(layout) => layout,
            Err(_) => panic!("a multiple of the alignment"),
        }
    }

    /// Returns the number of bytes for messages.
    pub const fn payload(self) -> usize {
        self.layout().size() - size_of::<Block>()
    }
}

/// The head of a block; its messages follow, in the slots `read..written`.
#[repr(C, align(16))]
pub struct Block {
    /// In the list of a mailbox the block after this one; in the last block, the first one.
    pub next: Cell<*mut Block>,
    written: Cell<u16>,
    read: Cell<u16>,
    pub class: Class,
}

impl Block {
    /// Returns how many slots have been written.
    pub fn written(&self) -> usize {
        usize::from(self.written.get())
    }

    /// Returns how many slots have been read.
    pub fn read(&self) -> usize {
        usize::from(self.read.get())
    }

    /// Counts one more slot as written.
    pub fn add_written(&self) {
        self.written.set(self.written.get() + 1);
    }

    /// Counts one more slot as read.
    pub fn add_read(&self) {
        self.read.set(self.read.get() + 1);
    }
}

/// Returns the address of the first message of `block`.
///
/// # Safety
/// `block` came from [`take_cached`] or [`allocate`] and was not given back.
pub unsafe fn payload(block: NonNull<Block>) -> *mut u8 {
    // SAFETY: a block is larger than its head.
    unsafe { block.as_ptr().add(1).cast() }
}

/// The unused blocks of this thread, a list for each size.
struct Cache {
    lists: [Cell<*mut Block>; 2],
    bytes: Cell<usize>,
}

thread_local! {
    static CACHE: Cache = const {
        Cache {
            lists: [Cell::new(ptr::null_mut()), Cell::new(ptr::null_mut())],
            bytes: Cell::new(0),
        }
    };
}

impl Drop for Cache {
    fn drop(&mut self) {
        for list in &self.lists {
            while let Some(block) = NonNull::new(list.get()) {
                // SAFETY: only this thread accesses its cached blocks.
                list.set(unsafe { block.as_ref() }.next.get());
                free(block);
            }
        }
    }
}

fn clear(block: &Block) {
    block.next.set(ptr::null_mut());
    block.written.set(0);
    block.read.set(0);
}

/// Takes an empty block out of this thread's cache.
pub fn take_cached(class: Class) -> Option<NonNull<Block>> {
    let taken = CACHE.try_with(|cache| {
        let list = &cache.lists[class as usize];
        let block = NonNull::new(list.get())?;
        // SAFETY: only this thread accesses its cached blocks.
        let head = unsafe { block.as_ref() };
        list.set(head.next.get());
        cache.bytes.set(cache.bytes.get() - class.layout().size());
        clear(head);
        Some(block)
    });
    taken.ok().flatten()
}

/// Allocates an empty block.
pub fn allocate(class: Class) -> NonNull<Block> {
    // SAFETY: the size is not zero.
    let block = unsafe { alloc::alloc(class.layout()) }.cast::<Block>();
    let Some(block) = NonNull::new(block) else {
        alloc::handle_alloc_error(class.layout())
    };
    let (next, written, read) = (Cell::new(ptr::null_mut()), Cell::new(0), Cell::new(0));
    // SAFETY: just allocated, large enough and aligned for a head.
    unsafe {
        block.write(Block {
            next,
            written,
            read,
            class,
        })
    };
    block
}

/// Caches or frees a block whose messages have been read or dropped.
///
/// # Safety
/// `block` came from [`take_cached`] or [`allocate`], and is not used any longer.
pub unsafe fn give(block: NonNull<Block>) {
    // SAFETY: only the caller accesses the block.
    let head = unsafe { block.as_ref() };
    let size = head.class.layout().size();
    let kept = CACHE.try_with(|cache| {
        let room = cache.bytes.get() + size <= CACHE_BYTES;
        if room {
            cache.bytes.set(cache.bytes.get() + size);
            head.next
                .set(cache.lists[head.class as usize].replace(block.as_ptr()));
        }
        room
    });
    if kept != Ok(true) {
        free(block);
    }
}

fn free(block: NonNull<Block>) {
    // SAFETY: blocks are allocated with the layout of their class, and the callers own this one.
    unsafe { alloc::dealloc(block.as_ptr().cast(), block.as_ref().class.layout()) };
}

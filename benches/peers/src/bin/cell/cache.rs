//! Blocks for messages, of two sizes, and a cache of them a thread.

use std::alloc::{self, Layout};
use std::cell::Cell;
use std::ptr::{self, NonNull};

/// Bytes of unused blocks that a thread keeps.
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

    /// The room for messages.
    pub const fn payload(self) -> usize {
        self.layout().size() - size_of::<Block>()
    }
}

/// The head of a block; its messages follow, in the places `read..written`.
#[repr(C, align(16))]
pub struct Block {
    /// In a mailbox's list the block after this one, in the last block the first one.
    pub next: Cell<*mut Block>,
    written: Cell<u16>,
    read: Cell<u16>,
    pub class: Class,
}

impl Block {
    /// How many places have been written.
    pub fn written(&self) -> usize {
        usize::from(self.written.get())
    }

    /// How many places have been read.
    pub fn read(&self) -> usize {
        usize::from(self.read.get())
    }

    /// One more place is written.
    pub fn add_written(&self) {
        self.written.set(self.written.get() + 1);
    }

    /// One more place is read.
    pub fn add_read(&self) {
        self.read.set(self.read.get() + 1);
    }
}

/// Where the messages of `block` begin.
///
/// # Safety
/// `block` came from [`take_cached`] or [`allocate`] and was not given back.
pub unsafe fn payload(block: NonNull<Block>) -> *mut u8 {
    // SAFETY: a block is larger than its head.
    unsafe { block.as_ptr().add(1).cast() }
}

/// Unused blocks of this thread, a list for each size.
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
                // SAFETY: cached blocks are nobody else's.
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

/// An empty block out of this thread's cache.
pub fn take_cached(class: Class) -> Option<NonNull<Block>> {
    let taken = CACHE.try_with(|cache| {
        let list = &cache.lists[class as usize];
        let block = NonNull::new(list.get())?;
        // SAFETY: cached blocks are nobody else's.
        let head = unsafe { block.as_ref() };
        list.set(head.next.get());
        cache.bytes.set(cache.bytes.get() - class.layout().size());
        clear(head);
        Some(block)
    });
    taken.ok().flatten()
}

/// An empty block, newly allocated.
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

/// Keeps a block that nobody needs any more, and whose messages are gone, or frees it.
///
/// # Safety
/// `block` came from [`take_cached`] or [`allocate`], and nobody uses it any more.
pub unsafe fn give(block: NonNull<Block>) {
    // SAFETY: the block is the caller's alone.
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

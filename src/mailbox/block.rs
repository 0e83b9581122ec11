//! Blocks of messages.
//!
//! What a burst took is given back as it is read. Blocks are never built on the stack.
//!
//! # Invariants
//! - BLOCK-1: a block is owned by exactly one queue or batch.
//! - BLOCK-2: `class` tells the layout that the block was allocated with.
#![expect(
    unsafe_code,
    reason = "raw memory with a header; see BLOCK-1 and BLOCK-2"
)]

use std::alloc::Layout;
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::blocks;

/// The first block of an empty mailbox, for the message or two of a quiet actor. As the other one, it is of
/// the size of a class of blocks.
const SMALL_BYTES: usize = 72;
/// The blocks that follow in a burst: the cost of a block is shared by dozens of messages.
const LARGE_BYTES: usize = 1032;

/// The alignment of shared blocks; messages that need more get a block of their own.
const ALIGN: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Small,
    Large,
    /// Exactly one message, too large or too aligned for the others.
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

const HEADER_BYTES: usize = size_of::<Block<u64>>().next_multiple_of(ALIGN);

impl<M> Block<M> {
    const SHARES: bool = align_of::<M>() <= ALIGN && size_of::<M>() <= LARGE_BYTES - HEADER_BYTES;
    const SINGLE: (Layout, usize) = match Layout::new::<Block<u64>>().extend(Layout::new::<M>()) {
        Ok((layout, offset)) => (layout.pad_to_align(), offset),
        Err(_) => panic!("a message is larger than the address space"),
    };
    /// Where the first message stands.
    const OFFSET: usize = if Self::SHARES {
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
    // Not inlined: most sends need none, and would pay for its registers.
    #[inline(never)]
    pub(super) fn allocate(burst: bool) -> NonNull<Block<M>> {
        let (class, capacity) = if !Self::SHARES {
            (Class::Single, 1)
        } else if burst || Self::capacity_of(SMALL_BYTES) == 0 {
            (Class::Large, Self::capacity_of(LARGE_BYTES))
        } else {
            (Class::Small, Self::capacity_of(SMALL_BYTES))
        };
        let block = blocks::allocate(Self::layout(class)).cast::<Block<M>>();
        let header = Block {
            next: block,
            read: 0,
            written: 0,
            capacity,
            class,
            _messages: PhantomData::<M>,
        };
        // SAFETY: (BLOCK-1) fresh memory with room and alignment for the header.
        unsafe { block.write(header) };
        block
    }

    /// Gives the block up; messages still in it are forgotten.
    ///
    /// # Safety
    /// The caller owns the block (BLOCK-1).
    pub(super) unsafe fn free(block: NonNull<Block<M>>) {
        // SAFETY: (BLOCK-1) ours, with a valid header.
        let class = unsafe { block.as_ref() }.class;
        // SAFETY: (BLOCK-1, BLOCK-2) allocated with this layout.
        unsafe { blocks::free(block.cast(), Self::layout(class)) };
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

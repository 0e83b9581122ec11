//! Messages in order of arrival: a list of blocks, written at the end, read at the front.
//!
//! A [`MessageQueue`] is a plain value: its exclusive owner may use it. A mailbox keeps one behind
//! its lock for the senders; the reader takes it whole, as a [`Batch`], and reads on without a lock.
//!
//! What a burst took is given back as it is read. Blocks are never built on the stack.
//!
//! # Invariants
//! - BLOCK-1: a block is owned by exactly one queue or batch.
//! - BLOCK-2: `class` tells the layout that the block was allocated with.
//! - QUEUE-1: the queue owns its blocks; messages `read..written` of each are initialised, in order.
//! - QUEUE-2: no block but the last has room, and no block is empty, except a spare handed in by `push`.
#![expect(
    unsafe_code,
    reason = "messages lie in raw blocks; see BLOCK-1, BLOCK-2, QUEUE-1 and QUEUE-2"
)]

use std::alloc::Layout;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use crate::blocks;
use crate::contain::contain;
use crate::sync::mutant;

/// A first-in first-out queue of messages.
pub(crate) struct MessageQueue<M> {
    /// The last block, whose `next` is the first: the list is a ring.
    last: Option<NonNull<Block<M>>>,
}

// SAFETY: (QUEUE-1) the queue owns its messages.
unsafe impl<M: Send> Send for MessageQueue<M> {}

/// A block that a push may need, allocated outside the lock.
pub(crate) struct Spare<M>(Option<NonNull<Block<M>>>);

impl<M> Spare<M> {
    pub(crate) const NONE: Self = Spare(None);

    /// Makes sure there is a block; `burst`: the queue is not empty, so more will follow.
    pub(crate) fn provide(&mut self, burst: bool) {
        self.0.get_or_insert_with(|| Block::allocate(burst));
    }
}

impl<M> Drop for Spare<M> {
    fn drop(&mut self) {
        if let Some(block) = self.0 {
            // SAFETY: an unused spare is ours alone (BLOCK-1).
            unsafe { Block::free(block) };
        }
    }
}

impl<M> MessageQueue<M> {
    pub(crate) const EMPTY: Self = MessageQueue { last: None };

    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Moves the message to the end. Leaves it where it is if a spare block is needed and missing.
    #[must_use]
    pub(crate) fn push(&mut self, message: &mut Option<M>, spare: &mut Spare<M>) -> bool {
        let last = match self.last {
            // SAFETY: (QUEUE-1) our block.
            Some(last) if unsafe { has_room(last) } => last,
            last => {
                let Some(block) = spare.0.take() else {
                    return false;
                };
                if let Some(last) = last
                    && !mutant("block_is_not_linked")
                {
                    // SAFETY: (QUEUE-1) our blocks; a new one is a ring of its own.
                    unsafe { (*block.as_ptr()).next = (*last.as_ptr()).next };
                    // SAFETY: (QUEUE-1) our blocks; a new one is a ring of its own.
                    unsafe { (*last.as_ptr()).next = block };
                }
                self.last = Some(block);
                block
            }
        };
        let message = message.take().expect("a push has a message");
        // SAFETY: (QUEUE-1, QUEUE-2) `last` is ours and has room at `written`.
        unsafe {
            let block = &mut *last.as_ptr();
            Block::slot(last, block.written).write(message);
            block.written += 1;
        }
        true
    }

    /// Takes the oldest message.
    pub(crate) fn pop(&mut self) -> Option<M> {
        let last = self.last?;
        // SAFETY: (QUEUE-1, QUEUE-2) the first block is ours and has a message.
        let (first, (message, emptied)) = unsafe {
            let first = last.as_ref().next;
            (first, read(first))
        };
        if emptied {
            if first == last {
                self.last = None;
            } else {
                // SAFETY: (QUEUE-1) our blocks.
                unsafe { (*last.as_ptr()).next = first.as_ref().next };
            }
            // SAFETY: (BLOCK-1) unlinked just now.
            unsafe { Block::free(first) };
        }
        Some(message)
    }

    /// How many messages there are, counted block by block.
    pub(crate) fn len(&self) -> usize {
        // SAFETY: (QUEUE-1) our blocks, from the first of the ring to the last.
        self.last
            .map_or(0, |last| unsafe { count(last.as_ref().next, last) })
    }

    /// Takes all messages at once.
    pub(crate) fn take(&mut self) -> Batch<M> {
        let first = self.last.take().map(|mut last| {
            // SAFETY: (QUEUE-1) our block; its own successor, it is the end of the list.
            unsafe { std::mem::replace(&mut last.as_mut().next, last) }
        });
        Batch { first }
    }
}

/// Messages that were taken from a queue, to be read on one thread: only the front of it.
pub(crate) struct Batch<M> {
    /// The first block; the last one is its own `next`.
    first: Option<NonNull<Block<M>>>,
}

// SAFETY: (QUEUE-1) the batch owns its messages.
unsafe impl<M: Send> Send for Batch<M> {}

impl<M> Batch<M> {
    pub(crate) const EMPTY: Self = Batch { first: None };

    /// As a pointer, aligned as one is; null if it is empty.
    pub(crate) fn into_raw(self) -> *mut () {
        let first = ManuallyDrop::new(self).first;
        first.map_or(std::ptr::null_mut(), |first| first.as_ptr().cast())
    }

    /// # Safety
    /// It is of [`into_raw`](Batch::into_raw), of the same type, and turned back once.
    pub(crate) unsafe fn from_raw(raw: *mut ()) -> Self {
        Batch {
            first: NonNull::new(raw.cast()),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// How many messages there are, counted block by block.
    pub(crate) fn len(&self) -> usize {
        // SAFETY: (QUEUE-1) our blocks; the last one is its own successor.
        self.first
            .map_or(0, |first| unsafe { count(first, NonNull::dangling()) })
    }

    /// Takes the oldest message.
    pub(crate) fn pop(&mut self) -> Option<M> {
        let first = self.first?;
        // SAFETY: (QUEUE-1, QUEUE-2) the first block is ours and has a message.
        let (message, emptied) = unsafe { read(first) };
        if emptied {
            // SAFETY: (QUEUE-1) our block.
            let next = unsafe { first.as_ref() }.next;
            self.first = (next != first).then_some(next);
            // SAFETY: (BLOCK-1) unlinked just now.
            unsafe { Block::free(first) };
        }
        Some(message)
    }

    /// Drops all messages, one after another, whatever their `Drop` does; returns how many.
    pub(crate) fn clear(&mut self) -> usize {
        let mut dropped = 0;
        while let Some(message) = self.pop() {
            dropped += 1;
            contain(|| drop(message));
        }
        dropped
    }
}

impl<M> Drop for Batch<M> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// How many messages are in the blocks from this one to `last`, or to the one that is its own successor.
///
/// # Safety
/// The blocks are alive, and no other thread uses them.
unsafe fn count<M>(first: NonNull<Block<M>>, last: NonNull<Block<M>>) -> usize {
    let (mut block, mut len) = (first, 0);
    loop {
        // SAFETY: the caller's duty.
        let here = unsafe { block.as_ref() };
        len += usize::from(here.written - here.read);
        if block == last || here.next == block {
            return len;
        }
        block = here.next;
    }
}

/// Takes the next message of a block; says also if that was the last one.
///
/// # Safety
/// `block` is alive, nobody else uses it, and it has a message.
unsafe fn read<M>(block: NonNull<Block<M>>) -> (M, bool) {
    // SAFETY: (QUEUE-1) there is a message at `read`; the caller's duty.
    unsafe {
        let front = &mut *block.as_ptr();
        let message = Block::slot(block, front.read).read();
        front.read += 1;
        (message, front.read == front.written)
    }
}

/// # Safety
/// `block` is alive and nobody else uses it.
unsafe fn has_room<M>(block: NonNull<Block<M>>) -> bool {
    // SAFETY: the caller's duty.
    let block = unsafe { block.as_ref() };
    block.written < block.capacity
}

impl<M> Drop for MessageQueue<M> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

// -- blocks -------------------------------------------------------------------------------------

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
struct Block<M> {
    /// The block itself, until it is put in a list.
    next: NonNull<Block<M>>,
    /// Messages `read..written` are in the block.
    read: u16,
    written: u16,
    capacity: u16,
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
    fn allocate(burst: bool) -> NonNull<Block<M>> {
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
    unsafe fn free(block: NonNull<Block<M>>) {
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
    unsafe fn slot(block: NonNull<Block<M>>, index: u16) -> *mut M {
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

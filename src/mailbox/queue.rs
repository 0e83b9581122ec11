//! A FIFO queue of messages: a list of blocks, written at the end and read at the front.
//!
//! A [`MessageQueue`] is a plain value, used by its exclusive owner. The mailbox keeps one behind
//! its lock for the senders. The reader takes the whole queue as a [`Batch`] and reads that without
//! a lock.
//!
//! The memory of a burst is freed as the burst is read. Blocks are never built on the stack.
//!
//! # Invariants
//! - BLOCK-1: a block is owned by exactly one queue or batch.
//! - BLOCK-2: `class` identifies the layout with which the block was allocated.
//! - QUEUE-1: the queue owns its blocks; messages `read..written` of each are initialised, in
//!   order.
//! - QUEUE-2: only the last block of a queue has room, and no block in the list is empty, except a
//!   spare that `push` has just added.
//! - QUEUE-3: a [`TakenMessage`] is read before its queue or batch is used again. One of a mailbox's
//!   queue is read before the lock is released. Until then no other code uses its slot. An
//!   [`Emptied`] block has left its list, so no queue and no batch uses it.
//! - QUEUE-4: a message stays in its slot until it is taken. So a [`MessageSlot`] is valid until then.
#![expect(
    unsafe_code,
    reason = "messages are stored in raw blocks; see BLOCK-1, BLOCK-2, QUEUE-1 to QUEUE-4"
)]

mod slot;

use std::alloc::Layout;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use crate::blocks::{self, HUGE_BYTES};
use crate::contain::contain;
use crate::sync::mutant;

pub(super) use slot::MessageSlot;

/// A first-in first-out queue of messages.
pub(crate) struct MessageQueue<M> {
    /// The last block. Its `next` is the first block: the list is circular.
    last: Option<NonNull<Block<M>>>,
}

// SAFETY: (QUEUE-1) the queue owns its messages.
unsafe impl<M: Send> Send for MessageQueue<M> {}

/// A block that a push may need, allocated outside the lock.
pub(crate) struct Spare<M>(Option<NonNull<Block<M>>>);

impl<M> Spare<M> {
    pub(crate) const NONE: Self = Spare(None);

    /// Allocates a block if there is none. `burst`: the queue is not empty, so more messages will
    /// follow.
    pub(crate) fn provide(&mut self, burst: bool) {
        self.0.get_or_insert_with(|| Block::allocate(burst));
    }
}

impl<M> Drop for Spare<M> {
    fn drop(&mut self) {
        if let Some(block) = self.0 {
            // SAFETY: (BLOCK-1) an unused spare block is owned by this value alone.
            unsafe { Block::free(block) };
        }
    }
}

impl<M> MessageQueue<M> {
    pub(crate) const EMPTY: Self = MessageQueue { last: None };

    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Moves the message to the end of the queue. Returns false and leaves the message in place if
    /// a block is needed and `spare` has none.
    #[must_use]
    pub(crate) fn push(&mut self, message: &mut Option<M>, spare: &mut Spare<M>) -> bool {
        let original = message.as_ref().expect("a push has a message");
        // SAFETY: the message is forgotten in the next line if the queue has taken it.
        let pushed = unsafe { self.push_from(original, spare) };
        if pushed {
            std::mem::forget(message.take());
        }
        pushed
    }

    /// Does the same for a message that is read from its place only now, and copied only once.
    ///
    /// # Safety
    /// The pointer is valid for a read of the message. If this returns true, the message is the
    /// queue's, and the caller must not use it any more.
    #[must_use]
    pub(crate) unsafe fn push_from(&mut self, message: *const M, spare: &mut Spare<M>) -> bool {
        let last = match self.last {
            // SAFETY: (QUEUE-1) the block is the queue's.
            Some(last) if unsafe { has_room(last) } => last,
            last => {
                let Some(block) = spare.0.take() else {
                    return false;
                };
                if let Some(last) = last
                    && !mutant("block_is_not_linked")
                {
                    // SAFETY: (QUEUE-1) both blocks are the queue's; a new block is a circular list
                    // by itself.
                    unsafe { (*block.as_ptr()).next = (*last.as_ptr()).next };
                    // SAFETY: (QUEUE-1) both blocks are the queue's; a new block is a circular list
                    // by itself.
                    unsafe { (*last.as_ptr()).next = block };
                }
                self.last = Some(block);
                block
            }
        };
        // SAFETY: (QUEUE-1, QUEUE-2) `last` is the queue's and has room at `written`; by the
        // caller's promise there is a message.
        unsafe {
            let block = &mut *last.as_ptr();
            let target = Block::slot(last, block.written);
            target.as_ptr().copy_from_nonoverlapping(message, 1);
            block.written += 1;
        }
        true
    }

    /// Takes the oldest message.
    pub(crate) fn take_one(&mut self) -> Option<TakenMessage<M>> {
        let last = self.last?;
        // SAFETY: (QUEUE-1) the blocks are the queue's.
        let first = unsafe { last.as_ref() }.next;
        // SAFETY: (QUEUE-1, QUEUE-2) the first block is the queue's and contains a message.
        let taken = unsafe { TakenMessage::of(first) };
        if taken.emptied.is_some() {
            if first == last {
                self.last = None;
            } else {
                // SAFETY: (QUEUE-1) the blocks are the queue's.
                unsafe { (*last.as_ptr()).next = first.as_ref().next };
            }
        }
        Some(taken)
    }

    /// Returns the number of messages, which it counts block by block.
    pub(crate) fn len(&self) -> usize {
        // SAFETY: (QUEUE-1) the blocks are the queue's, from the first of the list to the last.
        self.last
            .map_or(0, |last| unsafe { count(last.as_ref().next, last) })
    }

    /// Takes all messages at once.
    pub(crate) fn take(&mut self) -> Batch<M> {
        let first = self.last.take().map(|mut last| {
            // SAFETY: (QUEUE-1) the block is the queue's; as its own successor it becomes the end
            // of the list.
            unsafe { std::mem::replace(&mut last.as_mut().next, last) }
        });
        Batch { first }
    }
}

/// Messages taken from a queue, to be read by one thread. Only the front of the list is kept.
pub(crate) struct Batch<M> {
    /// The first block. The last block is its own `next`.
    first: Option<NonNull<Block<M>>>,
}

// SAFETY: (QUEUE-1) the batch owns its messages.
unsafe impl<M: Send> Send for Batch<M> {}

impl<M> Batch<M> {
    pub(crate) const EMPTY: Self = Batch { first: None };

    /// Converts the batch into a pointer to its first block, or null if it is empty. The pointer
    /// has at least the alignment of a pointer.
    pub(crate) fn into_raw(self) -> *mut () {
        let first = ManuallyDrop::new(self).first;
        first.map_or(std::ptr::null_mut(), |first| first.as_ptr().cast())
    }

    /// Converts a pointer back into a batch.
    ///
    /// # Safety
    /// The pointer comes from [`into_raw`](Batch::into_raw) of a batch of the same type and is
    /// converted back once.
    pub(crate) unsafe fn from_raw(raw: *mut ()) -> Self {
        Batch {
            first: NonNull::new(raw.cast()),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Returns the number of messages, which it counts block by block.
    pub(crate) fn len(&self) -> usize {
        // SAFETY: (QUEUE-1) the blocks are the batch's; the last one is its own successor.
        self.first
            .map_or(0, |first| unsafe { count(first, NonNull::dangling()) })
    }

    /// Returns whether there may be more messages than so many, which is seen at once.
    #[inline(always)]
    pub(super) fn may_exceed(&self, len: u32) -> bool {
        self.first.is_some_and(|first| {
            // SAFETY: (QUEUE-1) the block is the batch's.
            let front = unsafe { first.as_ref() };
            front.next != first || u32::from(front.written) > len
        })
    }

    /// Takes the oldest message.
    #[inline]
    pub(crate) fn take_one(&mut self) -> Option<TakenMessage<M>> {
        let first = self.first?;
        // SAFETY: (QUEUE-1, QUEUE-2) the first block is the batch's and contains a message.
        let taken = unsafe { TakenMessage::of(first) };
        if taken.emptied.is_some() {
            // SAFETY: (QUEUE-1) the block is the batch's.
            let next = unsafe { first.as_ref() }.next;
            self.first = (next != first).then_some(next);
        }
        Some(taken)
    }

    /// Takes the oldest message and reads it.
    pub(crate) fn pop(&mut self) -> Option<M> {
        self.take_one().map(TakenMessage::read)
    }

    /// Calls `f` with each message, oldest first. A panic of `f` leaves the batch as it was.
    pub(crate) fn for_each(&self, mut f: impl FnMut(&M)) {
        let mut next = self.first;
        while let Some(block) = next {
            // SAFETY: (QUEUE-1) the blocks are the batch's; the last one is its own successor.
            let front = unsafe { block.as_ref() };
            for index in front.read..front.written {
                // SAFETY: (QUEUE-2) there is a message at each index from `read` to `written`.
                f(unsafe { Block::slot(block, index).as_ref() });
            }
            next = (front.next != block).then_some(front.next);
        }
    }

    /// Puts messages in front of the others.
    #[cold]
    pub(crate) fn put_front(&mut self, messages: impl IntoIterator<Item = M>) {
        let mut queue = MessageQueue::EMPTY;
        let mut others = std::mem::replace(self, Batch::EMPTY);
        let others = std::iter::from_fn(|| others.pop());
        for message in messages.into_iter().chain(others) {
            let (mut message, mut spare) = (Some(message), Spare::NONE);
            while !queue.push(&mut message, &mut spare) {
                spare.provide(true);
            }
        }
        *self = queue.take();
    }

    /// Drops all messages one by one, also if a drop panics. Returns their number.
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

/// A message that has left its queue or batch, and is still in its block. So a large one of a batch
/// is copied once, straight to its receiver.
#[must_use = "a message that is not read is lost"]
pub(crate) struct TakenMessage<M> {
    target: NonNull<M>,
    /// The block, if the message is its last one.
    emptied: Option<Emptied<M>>,
}

/// A block without messages, which is freed when this is dropped.
pub(crate) struct Emptied<M>(NonNull<Block<M>>);

impl<M> Drop for Emptied<M> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: (BLOCK-1, QUEUE-3) the block has left its list.
        unsafe { Block::free(self.0) };
    }
}

impl<M> TakenMessage<M> {
    /// Whether a message should be copied once only: if it has more than 256 bytes. A smaller one is
    /// moved in a few instructions, and what is kept of it here would take as many.
    pub(crate) const IS_LARGE: bool = size_of::<M>() > 256;

    /// Takes the next message of a block. The caller removes an emptied block from its list.
    ///
    /// # Safety
    /// `block` is alive, no other code uses it, and it contains a message.
    #[inline(always)]
    unsafe fn of(mut block: NonNull<Block<M>>) -> Self {
        // SAFETY: (QUEUE-1) there is a message at `read`, by the caller's promise.
        let target = unsafe { Block::slot(block, block.as_ref().read) };
        // SAFETY: by the caller's promise.
        let header = unsafe { block.as_mut() };
        header.read += 1;
        let emptied = (header.read == header.written).then(|| Emptied(block));
        TakenMessage { target, emptied }
    }

    /// Moves the message out, and frees its block if it was emptied.
    #[inline(always)]
    pub(crate) fn read(self) -> M {
        self.read_apart().0
    }

    /// Moves the message out. Also returns its block, if it was emptied.
    #[inline(always)]
    pub(crate) fn read_apart(self) -> (M, Option<Emptied<M>>) {
        // SAFETY: (QUEUE-3) the message is in its place.
        (unsafe { self.target.read() }, self.emptied)
    }
}

/// Counts the messages from block `first` to block `last`, or to a block that is its own successor.
///
/// # Safety
/// The blocks are alive, and no other thread accesses them.
unsafe fn count<M>(first: NonNull<Block<M>>, last: NonNull<Block<M>>) -> usize {
    let (mut block, mut len) = (first, 0);
    loop {
        // SAFETY: by the caller's promise.
        let here = unsafe { block.as_ref() };
        len += usize::from(here.written - here.read);
        if block == last || here.next == block {
            return len;
        }
        block = here.next;
    }
}

/// Returns whether the block has room for a message.
///
/// # Safety
/// `block` is alive and no other code uses it.
unsafe fn has_room<M>(block: NonNull<Block<M>>) -> bool {
    // SAFETY: by the caller's promise.
    let block = unsafe { block.as_ref() };
    block.written < block.capacity
}

impl<M> Drop for MessageQueue<M> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

// -- blocks -------------------------------------------------------------------------------------

/// The bytes of the first block of an empty mailbox, enough for a quiet actor. As `LARGE_BYTES`,
/// this is a size class of the block cache.
const SMALL_BYTES: usize = 72;
/// The bytes of the blocks that follow in a burst: dozens of messages share the cost of one block.
const LARGE_BYTES: usize = 1032;

/// The most messages in a block of another size, for messages that do not fit into these. More would
/// hardly share its cost better, and a short burst would reserve more that it does not use.
const MESSAGES_MAX: usize = 32;

/// The alignment of blocks, unless their messages need more.
const ALIGN: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Small,
    Large,
}

/// The header of a block, before its messages.
#[repr(C)]
struct Block<M> {
    /// The block itself, until it is added to a list.
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
    /// The offset of the first message.
    const OFFSET: usize = HEADER_BYTES.next_multiple_of(align_of::<M>());
    /// The bytes of a block with one message.
    const ONE: usize = Self::OFFSET + size_of::<M>();
    /// Whether a large block has the usual size.
    const FITS: bool = Self::ONE <= LARGE_BYTES;
    const SMALL: Layout = Self::layout_with(match Self::FITS && align_of::<M>() <= ALIGN {
        true => SMALL_BYTES,
        false => Self::ONE,
    });
    const LARGE: Layout = Self::layout_with(match Self::capacity_of(HUGE_BYTES) {
        _ if Self::FITS => LARGE_BYTES,
        0 => Self::ONE,
        MESSAGES_MAX.. => Self::OFFSET + MESSAGES_MAX * size_of::<M>(),
        _ => HUGE_BYTES,
    });

    const fn layout_with(bytes: usize) -> Layout {
        let align = if align_of::<M>() > ALIGN {
            align_of::<M>()
        } else {
            ALIGN
        };
        match Layout::from_size_align(bytes, align) {
            Ok(layout) => layout,
            Err(_) => panic!("a message is larger than the address space"),
        }
    }

    const fn capacity_of(bytes: usize) -> usize {
        let size = if size_of::<M>() == 0 {
            1
        } else {
            size_of::<M>()
        };
        bytes.saturating_sub(Self::OFFSET) / size
    }

    /// Allocates an empty block; a large one if `burst` is set.
    // Not inlined: most sends need none, and would pay for its registers.
    #[inline(never)]
    fn allocate(burst: bool) -> NonNull<Block<M>> {
        let class = match burst || Self::capacity_of(Self::SMALL.size()) == 0 {
            true => Class::Large,
            false => Class::Small,
        };
        let capacity = Self::capacity_of(Self::layout(class).size()) as u16;
        let block = blocks::allocate(Self::layout(class)).cast::<Block<M>>();
        let header = Block {
            next: block,
            read: 0,
            written: 0,
            capacity,
            class,
            _messages: PhantomData::<M>,
        };
        // SAFETY: (BLOCK-1) new memory with the size and alignment for the header.
        unsafe { block.write(header) };
        block
    }

    /// Frees the block. Messages that are still in it are leaked.
    ///
    /// # Safety
    /// The caller owns the block (BLOCK-1).
    // Not inlined: so the drop of a `Spare` is, which is nearly always empty.
    #[inline(never)]
    unsafe fn free(block: NonNull<Block<M>>) {
        // SAFETY: (BLOCK-1) the caller owns the block, whose header is valid.
        let class = unsafe { block.as_ref() }.class;
        // SAFETY: (BLOCK-1, BLOCK-2) allocated with this layout.
        unsafe { blocks::free(block.cast(), Self::layout(class)) };
    }

    fn layout(class: Class) -> Layout {
        match class {
            Class::Small => Self::SMALL,
            Class::Large => Self::LARGE,
        }
    }

    /// Returns the address of message `index`.
    ///
    /// # Safety
    /// `block` is alive and `index` is below its capacity.
    unsafe fn slot(block: NonNull<Block<M>>, index: u16) -> NonNull<M> {
        // SAFETY: the layout of the class has room for `capacity` messages from `OFFSET` on.
        unsafe {
            block
                .byte_add(Self::OFFSET)
                .cast::<M>()
                .add(usize::from(index))
        }
    }
}

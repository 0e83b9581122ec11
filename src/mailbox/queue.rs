//! Messages in order of arrival: a list of blocks, written at the end, read at the front.
//!
//! A [`MessageQueue`] is a plain value: whoever has it exclusively may use it. A mailbox keeps one behind
//! its lock for the senders; the reader takes it whole, as a [`Batch`], and reads on without a lock.
//!
//! # Invariants
//! - QUEUE-1: the queue owns its blocks; messages `read..written` of each are initialised, in order.
//! - QUEUE-2: no block but the last has room, and no block is empty, except a spare handed in by `push`.
#![expect(
    unsafe_code,
    reason = "messages lie in raw blocks; see QUEUE-1 and QUEUE-2"
)]

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::block::Block;
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

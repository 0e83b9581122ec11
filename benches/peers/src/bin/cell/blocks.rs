//! Mailbox b2: a list of small blocks; the word is the list, the flags and a lock.
//!
//! The word points to the *last* block, whose `next` is the first one, so one pointer is enough for
//! both ends. Swapping in [`LOCKED`] takes the lock; a plain store of the new word releases it.
//! Nothing is allocated, dropped or called in the critical section.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::cache::{self, Block, Class};
use crate::mail::{CLOSED, DORMANT, FLAGS, Mail, More, RECEPTIVE, deliver, is_woken, rouse};

/// The word while a thread holds the lock. No other word has this bit.
const LOCKED: usize = FLAGS + 1;
/// How often a thread looks at a held lock before it yields its core to the holder.
const SPINS: u32 = 100;

pub struct Blocks<M> {
    /// The last block, and the flags of [`crate::mail`] in its alignment bits.
    word: AtomicPtr<Block>,
    /// The first of the blocks that were taken. Only the reader accesses it.
    taken: UnsafeCell<*mut Block>,
    messages: PhantomData<M>,
}

// SAFETY: messages are passed between threads by value (`M: Send`), never shared; blocks are
// accessed under the lock or, once taken, by the one reader; so is `taken` (contract of `Mail`).
unsafe impl<M: Send> Send for Blocks<M> {}
// SAFETY: as above.
unsafe impl<M: Send> Sync for Blocks<M> {}

/// The held lock: the word when it was taken, to be changed and stored on release.
struct Held<'a> {
    word: &'a AtomicPtr<Block>,
    last: *mut Block,
    flags: usize,
}

impl Held<'_> {
    /// Releases the lock.
    ///
    /// Ordering: Release publishes the blocks and all writes of the holder to the next holder,
    /// whose swap is an Acquire.
    fn unlock(self) {
        self.word.store(
            self.last.map_addr(|address| address | self.flags),
            Ordering::Release,
        );
    }
}

impl<M> Blocks<M> {
    const FITS: () = assert!(
        size_of::<M>() <= Class::Large.payload() && align_of::<M>() <= align_of::<Block>(),
        "a message this large belongs into a box"
    );

    const fn capacity(class: Class) -> usize {
        class.payload()
            / if size_of::<M>() == 0 {
                1
            } else {
                size_of::<M>()
            }
    }

    /// Returns the class of a new block: small for the first messages, large for a mailbox under
    /// load.
    fn class(is_first: bool) -> Class {
        if is_first && Self::capacity(Class::Small) > 0 {
            Class::Small
        } else {
            Class::Large
        }
    }

    fn lock(&self) -> Held<'_> {
        let mut spins = 0;
        loop {
            let word = self
                .word
                .swap(ptr::without_provenance_mut(LOCKED), Ordering::Acquire);
            if word.addr() != LOCKED {
                let last = word.map_addr(|address| address & !FLAGS);
                return Held {
                    word: &self.word,
                    last,
                    flags: word.addr() & FLAGS,
                };
            }
            while self.word.load(Ordering::Relaxed).addr() == LOCKED {
                spins += 1;
                if spins < SPINS {
                    std::hint::spin_loop()
                } else {
                    std::thread::yield_now()
                }
            }
        }
    }

    /// Returns the last block, if it has room.
    ///
    /// # Safety
    /// `last` is null or a block of this mailbox, and the lock is held.
    unsafe fn room(last: *mut Block) -> Option<NonNull<Block>> {
        let last = NonNull::new(last)?;
        // SAFETY: blocks stay alive until the reader has read them.
        let block = unsafe { last.as_ref() };
        (block.written() < Self::capacity(block.class)).then_some(last)
    }

    fn give_back(spare: Option<NonNull<Block>>) {
        if let Some(spare) = spare {
            // SAFETY: a spare block was allocated and not used.
            unsafe { cache::give(spare) };
        }
    }

    /// Makes `new` the last block.
    fn append(held: &mut Held<'_>, new: NonNull<Block>) {
        // SAFETY: `new` is not shared until it is in the list.
        let block = unsafe { new.as_ref() };
        if held.last.is_null() {
            block.next.set(new.as_ptr());
        } else {
            // SAFETY: the lock is held, so no other thread accesses blocks in the list.
            let last = unsafe { &*held.last };
            block.next.set(last.next.replace(new.as_ptr()));
        }
        held.last = new.as_ptr();
    }
}

impl<M: Send> Mail<M> for Blocks<M> {
    fn new() -> Self {
        const { Self::FITS }
        Self {
            word: AtomicPtr::new(ptr::null_mut()),
            taken: UnsafeCell::new(ptr::null_mut()),
            messages: PhantomData,
        }
    }

    fn push(&self, message: M) -> Result<bool, M> {
        let mut spare = None;
        loop {
            let mut held = self.lock();
            if held.flags & CLOSED != 0 {
                held.unlock();
                Self::give_back(spare);
                return Err(message);
            }
            // SAFETY: the word's pointer is null or our last block, and the lock is held.
            let mut room = unsafe { Self::room(held.last) };
            if room.is_none() {
                let class = Self::class(held.last.is_null());
                room = spare.take().or_else(|| cache::take_cached(class));
                let Some(new) = room else {
                    // Never allocate under the lock.
                    held.unlock();
                    spare = Some(cache::allocate(class));
                    continue;
                };
                Self::append(&mut held, new);
            }
            let Some(block) = room else { unreachable!() };
            // SAFETY: the lock is held and the block has room, so slot `written` is within it,
            // aligned and empty. (The payload starts at a multiple of 16 and `M` has no greater
            // alignment.)
            unsafe {
                let place = block.as_ref().written();
                cache::payload(block).cast::<M>().add(place).write(message);
                block.as_ref().add_written();
            }
            let (flags, schedule) = deliver(held.flags);
            held.flags = flags;
            held.unlock();
            Self::give_back(spare);
            return Ok(schedule);
        }
    }

    fn wake(&self) -> bool {
        let mut held = self.lock();
        let (flags, schedule) = rouse(held.flags);
        held.flags = flags;
        held.unlock();
        schedule
    }

    fn close(&self) -> bool {
        let mut held = self.lock();
        let (flags, schedule) = deliver(held.flags | CLOSED);
        held.flags = flags;
        held.unlock();
        schedule
    }

    fn sleep(&self, receptive: bool) -> bool {
        let mut held = self.lock();
        let closed = held.flags & CLOSED;
        let news = receptive && (!held.last.is_null() || closed != 0);
        let sleeps = !is_woken(held.flags) && !news;
        held.flags = match (sleeps, receptive) {
            (false, _) => closed,
            (true, false) => closed | DORMANT,
            (true, true) => closed | DORMANT | RECEPTIVE,
        };
        held.unlock();
        sleeps
    }

    unsafe fn pop(&self) -> Option<M> {
        // SAFETY: we are the one reader.
        let taken = unsafe { &mut *self.taken.get() };
        let first = NonNull::new(*taken)?;
        // SAFETY: the reader owns the blocks that were taken, and they are not empty.
        let block = unsafe { first.as_ref() };
        let place = block.read();
        // SAFETY: `read < written`: the slot holds a message, which is read once, as `read` grows.
        let message = unsafe { cache::payload(first).cast::<M>().add(place).read() };
        block.add_read();
        if place + 1 == block.written() {
            *taken = block.next.get();
            // SAFETY: all of it has been read.
            unsafe { cache::give(first) };
        }
        Some(message)
    }

    unsafe fn take(&self) -> More {
        let word = self.word.load(Ordering::Relaxed).addr();
        // A locked word may have messages: the lock tells.
        if word & !FLAGS == 0 {
            return if word & CLOSED == 0 {
                More::NotNow
            } else {
                More::Never
            };
        }
        let mut held = self.lock();
        let last = std::mem::replace(&mut held.last, ptr::null_mut());
        let closed = held.flags & CLOSED;
        if held.flags & DORMANT != 0 {
            held.flags = closed;
        }
        held.unlock();
        if last.is_null() {
            return if closed == 0 {
                More::NotNow
            } else {
                More::Never
            };
        }
        // SAFETY: this is the one reader, which owns the list now.
        unsafe { *self.taken.get() = (*last).next.replace(ptr::null_mut()) };
        More::Some
    }
}

impl<M> Drop for Blocks<M> {
    fn drop(&mut self) {
        let last = self.word.get_mut().map_addr(|address| address & !FLAGS);
        let first = if last.is_null() {
            last
        } else {
            // SAFETY: the mailbox is not shared any longer; `last.next` is the first block.
            unsafe { (*last).next.replace(ptr::null_mut()) }
        };
        for list in [*self.taken.get_mut(), first] {
            let mut rest = list;
            while let Some(first) = NonNull::new(rest) {
                // SAFETY: these blocks are not shared; slots `read..written` hold messages.
                unsafe {
                    let (read, written) = (first.as_ref().read(), first.as_ref().written());
                    let messages = cache::payload(first).cast::<M>().add(read);
                    ptr::slice_from_raw_parts_mut(messages, written - read).drop_in_place();
                    rest = first.as_ref().next.get();
                    cache::give(first);
                }
            }
        }
    }
}

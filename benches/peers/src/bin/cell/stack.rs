//! Mailbox b1: a Treiber stack of boxed messages with the flags in the same word.
//!
//! Every step is one compare-and-swap. The reader takes the whole stack and reverses it.

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::mail::{CLOSED, DORMANT, FLAGS, Mail, More, RECEPTIVE, deliver, is_woken, rouse};

struct Node<M> {
    next: *mut Node<M>,
    message: M,
}

pub struct Stack<M> {
    /// The newest node, and the flags of [`crate::mail`] in its alignment bits.
    word: AtomicPtr<Node<M>>,
    /// The messages taken, oldest first. Only the reader accesses it.
    taken: UnsafeCell<*mut Node<M>>,
}

// SAFETY: messages are passed between threads by value (`M: Send`), never shared; only the one
// reader (contract of `pop` and `take`) and `drop` access `taken`.
unsafe impl<M: Send> Send for Stack<M> {}
// SAFETY: as above.
unsafe impl<M: Send> Sync for Stack<M> {}

fn flags<M>(word: *mut Node<M>) -> usize {
    word.addr() & FLAGS
}

fn node<M>(word: *mut Node<M>) -> *mut Node<M> {
    word.map_addr(|address| address & !FLAGS)
}

fn join<M>(node: *mut Node<M>, flags: usize) -> *mut Node<M> {
    const { assert!(align_of::<Node<M>>() > FLAGS) }
    node.map_addr(|address| address | flags)
}

impl<M> Stack<M> {
    /// Replaces the word by the result of `change`; if that is `None`, leaves the word and returns
    /// `None`.
    ///
    /// Ordering: Release publishes the pushed node and all writes of the actor or the waker.
    /// Acquire sees what the last step published, so a thread that schedules the actor publishes
    /// that, too.
    fn update<T>(
        &self,
        mut change: impl FnMut(*mut Node<M>) -> Option<(*mut Node<M>, T)>,
    ) -> Option<T> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let (new, result) = change(word)?;
            match self
                .word
                .compare_exchange_weak(word, new, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return Some(result),
                Err(now) => word = now,
            }
        }
    }
}

impl<M: Send> Mail<M> for Stack<M> {
    fn new() -> Self {
        Self {
            word: AtomicPtr::new(ptr::null_mut()),
            taken: UnsafeCell::new(ptr::null_mut()),
        }
    }

    fn push(&self, message: M) -> Result<bool, M> {
        let pushed = Box::into_raw(Box::new(Node {
            next: ptr::null_mut(),
            message,
        }));
        let scheduled = self.update(|word| {
            if flags(word) & CLOSED != 0 {
                return None;
            }
            // SAFETY: `pushed` came from a box just now and is not shared before the swap.
            unsafe { (*pushed).next = node(word) };
            let (flags, schedule) = deliver(flags(word));
            Some((join(pushed, flags), schedule))
        });
        // SAFETY: the push was refused, so the node is not shared.
        scheduled.ok_or_else(|| unsafe { Box::from_raw(pushed) }.message)
    }

    fn wake(&self) -> bool {
        let scheduled = self.update(|word| {
            let (flags, schedule) = rouse(flags(word));
            Some((join(node(word), flags), schedule))
        });
        scheduled == Some(true)
    }

    fn close(&self) -> bool {
        let scheduled = self.update(|word| {
            let (flags, schedule) = deliver(flags(word) | CLOSED);
            Some((join(node(word), flags), schedule))
        });
        scheduled == Some(true)
    }

    fn sleep(&self, receptive: bool) -> bool {
        let asleep = self.update(|word| {
            let (node, closed) = (node(word), flags(word) & CLOSED);
            let news = receptive && (!node.is_null() || closed != 0);
            if is_woken(flags(word)) || news {
                return Some((join(node, closed), false));
            }
            let receptive = if receptive { RECEPTIVE } else { 0 };
            Some((join(node, closed | DORMANT | receptive), true))
        });
        asleep == Some(true)
    }

    unsafe fn pop(&self) -> Option<M> {
        // SAFETY: we are the one reader.
        let taken = unsafe { &mut *self.taken.get() };
        if taken.is_null() {
            return None;
        }
        // SAFETY: nodes come from boxes, and the reader owns those in `taken`.
        let node = *unsafe { Box::from_raw(*taken) };
        *taken = node.next;
        Some(node.message)
    }

    unsafe fn take(&self) -> More {
        let word = self.word.load(Ordering::Relaxed);
        if node(word).is_null() {
            return if flags(word) & CLOSED == 0 {
                More::NotNow
            } else {
                More::Never
            };
        }
        let newest = self.update(|word| {
            let flags = flags(word);
            let flags = if flags & DORMANT == 0 {
                flags
            } else {
                flags & CLOSED
            };
            Some((join(ptr::null_mut(), flags), node(word)))
        });
        let mut newest = newest.unwrap_or(ptr::null_mut());
        let mut oldest = ptr::null_mut();
        while !newest.is_null() {
            // SAFETY: the nodes were pushed (seen by Acquire) and taken, so the reader owns them.
            let next = unsafe { std::mem::replace(&mut (*newest).next, oldest) };
            oldest = newest;
            newest = next;
        }
        // SAFETY: we are the one reader.
        unsafe { *self.taken.get() = oldest };
        More::Some
    }
}

impl<M> Drop for Stack<M> {
    fn drop(&mut self) {
        for list in [*self.taken.get_mut(), node(*self.word.get_mut())] {
            let mut next = list;
            while !next.is_null() {
                // SAFETY: nodes come from boxes, and the mailbox is not shared any longer.
                next = unsafe { Box::from_raw(next) }.next;
            }
        }
    }
}

//! A queue that all workers share: for what comes from outside, and for what overflows a ring.
//!
//! First in, first out, behind a mutex; its length is readable without it.
//!
//! # Invariants
//! - INJECTOR-1: `len` is written under the lock, after the queue; it is exact for whoever holds the lock.

use std::collections::VecDeque;

use super::ring::Entry;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};

pub(crate) struct Injector {
    queue: Mutex<InjectorQueue>,
    len: AtomicUsize,
}

struct InjectorQueue {
    entries: VecDeque<Raw>,
    /// How many of the front were there when the shutdown began and have not been taken.
    before: usize,
}

/// Makes the pointer `Send`: an entry is a runnable, which is.
struct Raw(Entry);

#[expect(unsafe_code, reason = "an entry is a `Runnable` in its raw form")]
// SAFETY: a `Runnable` is `Send`.
unsafe impl Send for Raw {}

impl Injector {
    /// A queue that has grown beyond this gives its memory back when it is empty.
    const KEPT_MAX: usize = 1024;

    pub(crate) fn new() -> Self {
        Injector {
            queue: Mutex::new(InjectorQueue {
                entries: VecDeque::new(),
                before: 0,
            }),
            len: AtomicUsize::new(0),
        }
    }

    pub(crate) fn push(&self, entries: impl IntoIterator<Item = Entry>) {
        let mut queue = self.queue.lock();
        queue.entries.extend(entries.into_iter().map(Raw));
        // Release pairs with the Acquire in `len`.
        self.len.store(queue.entries.len(), Ordering::Release);
    }

    pub(crate) fn pop(&self) -> Option<Entry> {
        if self.len() == 0 {
            return None;
        }
        let mut queue = self.queue.lock();
        let Raw(entry) = queue.entries.pop_front()?;
        queue.before = queue.before.saturating_sub(1);
        self.taken(&mut queue);
        Some(entry)
    }

    /// Takes the oldest, to be run, and with it up to `more` others, each given to `keep`.
    pub(crate) fn pop_some(&self, more: usize, keep: impl FnMut(Entry)) -> Option<Entry> {
        if self.len() == 0 {
            return None;
        }
        let mut queue = self.queue.lock();
        let Raw(first) = queue.entries.pop_front()?;
        let more = more.min(queue.entries.len());
        queue.entries.drain(..more).map(|raw| raw.0).for_each(keep);
        self.taken(&mut queue);
        Some(first)
    }

    fn taken(&self, queue: &mut InjectorQueue) {
        if queue.entries.is_empty() && queue.entries.capacity() > Self::KEPT_MAX {
            queue.entries = VecDeque::new();
        }
        // Release pairs with the Acquire in `len`.
        self.len.store(queue.entries.len(), Ordering::Release);
    }

    /// Counts all that is there now, `queued` included, as there before the shutdown.
    pub(crate) fn mark_before(&self, queued: impl IntoIterator<Item = Entry>) {
        let mut queue = self.queue.lock();
        queue.entries.extend(queued.into_iter().map(Raw));
        queue.before = queue.entries.len();
        // Release pairs with the Acquire in `len`.
        self.len.store(queue.entries.len(), Ordering::Release);
    }

    /// How many that were there before the shutdown have not been taken yet.
    pub(crate) fn before(&self) -> usize {
        self.queue.lock().before
    }

    pub(crate) fn len(&self) -> usize {
        // Acquire pairs with the Release of the last change.
        self.len.load(Ordering::Acquire)
    }
}

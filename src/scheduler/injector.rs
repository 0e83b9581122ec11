//! A queue that all workers share, for tasks from outside the workers and for the overflow of a
//! ring.
//!
//! It is first in, first out, behind a mutex. Its length can be read without the mutex.
//!
//! # Invariants
//! - INJECTOR-1: `len` is written under the lock, after the queue. It is exact for a thread that
//!   holds the lock.

use std::collections::VecDeque;

use super::ring::Queued;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};

pub(crate) struct Injector {
    queue: Mutex<InjectorQueue>,
    len: AtomicUsize,
}

struct InjectorQueue {
    entries: VecDeque<Queued>,
    /// The number of entries at the front that were queued when the shutdown began.
    before: usize,
}

#[expect(unsafe_code, reason = "an entry is a `Runnable` in its raw form")]
// SAFETY: an entry is a pointer to a `Runnable`, which is `Send`.
unsafe impl Send for InjectorQueue {}

impl Injector {
    /// The largest capacity that an empty queue retains.
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

    pub(crate) fn push(&self, entries: impl IntoIterator<Item = Queued>) {
        let mut queue = self.queue.lock();
        queue.entries.extend(entries);
        // Release pairs with the Acquire in `len`.
        self.len.store(queue.entries.len(), Ordering::Release);
    }

    pub(crate) fn pop(&self) -> Option<Queued> {
        if self.len() == 0 {
            return None;
        }
        let mut queue = self.queue.lock();
        let entry = queue.entries.pop_front()?;
        queue.before = queue.before.saturating_sub(1);
        self.taken(&mut queue);
        Some(entry)
    }

    /// Takes the oldest entry, to be run, and passes up to `more` others to `keep`.
    pub(crate) fn pop_some(&self, more: usize, keep: impl FnMut(Queued)) -> Option<Queued> {
        if self.len() == 0 {
            return None;
        }
        let mut queue = self.queue.lock();
        let first = queue.entries.pop_front()?;
        let more = more.min(queue.entries.len());
        queue.entries.drain(..more).for_each(keep);
        self.taken(&mut queue);
        Some(first)
    }

    /// Publishes the length after entries were taken, and frees a large empty queue.
    fn taken(&self, queue: &mut InjectorQueue) {
        if queue.entries.is_empty() && queue.entries.capacity() > Self::KEPT_MAX {
            queue.entries = VecDeque::new();
        }
        // Release pairs with the Acquire in `len`.
        self.len.store(queue.entries.len(), Ordering::Release);
    }

    /// Adds `queued`, and counts all entries as queued before the shutdown.
    pub(crate) fn mark_before(&self, queued: impl IntoIterator<Item = Queued>) {
        let mut queue = self.queue.lock();
        queue.entries.extend(queued);
        queue.before = queue.entries.len();
        // Release pairs with the Acquire in `len`.
        self.len.store(queue.entries.len(), Ordering::Release);
    }

    /// Returns how many entries that were queued before the shutdown are left.
    pub(crate) fn before(&self) -> usize {
        self.queue.lock().before
    }

    pub(crate) fn len(&self) -> usize {
        // Acquire pairs with the Release of the last change.
        self.len.load(Ordering::Acquire)
    }
}

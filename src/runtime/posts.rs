//! What each worker runs at the moment, and whether a look at that is armed.
//!
//! # Invariants
//! - LONG-1: a turn is in its post before `is_armed` is checked. A look resets `is_armed` before it
//!   reads the posts. Both use the lock of the post. So of turns that hold all workers, a look sees
//!   all, or one of them arms another look.

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{CachePadded, Mutex, mutant};

pub(super) struct Posts<T> {
    posts: Box<[CachePadded<Mutex<Option<T>>>]>,
    is_armed: AtomicBool,
}

impl<T: Clone> Posts<T> {
    pub(super) fn new(workers: usize) -> Self {
        Posts {
            posts: (0..workers)
                .map(|_| CachePadded(Mutex::new(None)))
                .collect(),
            is_armed: AtomicBool::new(false),
        }
    }

    /// Notes that the worker runs this turn. Returns whether the caller must arm a look.
    #[must_use]
    pub(super) fn occupy(&self, worker: usize, turn: T) -> bool {
        *self.posts[worker].lock() = Some(turn);
        // Relaxed: ordered by the lock of the post (LONG-1).
        !self.is_armed.load(Ordering::Relaxed) && self.arms()
    }

    /// Notes that the worker runs no turn.
    pub(super) fn vacate(&self, worker: usize) {
        let turn = self.posts[worker].lock().take();
        drop(turn);
    }

    /// Returns what the workers run, or `None` if one of them runs nothing.
    pub(super) fn look(&self) -> Option<Vec<T>> {
        // Relaxed: ordered by the locks of the posts (LONG-1).
        let disarm = || self.is_armed.store(false, Ordering::Relaxed);
        let is_late = mutant("a_look_disarms_last");
        if !is_late {
            disarm();
        }
        let turns = self.posts.iter().map(|post| post.lock().clone()).collect();
        if is_late {
            disarm();
        }
        turns
    }

    /// Returns whether the caller must arm a look, since no other thread has.
    #[must_use]
    pub(super) fn arms(&self) -> bool {
        !self.is_armed.swap(true, Ordering::Relaxed)
    }
}

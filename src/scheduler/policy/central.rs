//! One queue for all workers, behind a mutex, with a condition variable for idle workers.
//!
//! The type parameter is the kind of queue. Nothing polls: a worker that finds the queue empty
//! waits until there is an entry, or until it has other duties.

use super::{Duties, Runnable};
use crate::sync::{Condvar, Mutex};

/// A queue that decides the order in which runnables are taken.
pub(super) trait QueueOrder: Send {
    fn push(&mut self, runnable: Runnable);
    fn pop(&mut self) -> Option<Runnable>;
}

pub(super) struct Central<Q> {
    state: Mutex<CentralState<Q>>,
    changed: Condvar,
}

struct CentralState<Q> {
    queue: Q,
    /// The number of workers that wait.
    waiting: usize,
}

impl<Q: QueueOrder> Central<Q> {
    pub(super) fn new(queue: Q) -> Self {
        Central {
            state: Mutex::new(CentralState { queue, waiting: 0 }),
            changed: Condvar::new(),
        }
    }

    /// Adds a runnable, and wakes a worker if one waits.
    pub(super) fn push(&self, runnable: Runnable) {
        let mut state = self.state.lock();
        state.queue.push(runnable);
        let wanted = state.waiting > 0;
        drop(state);
        if wanted {
            self.changed.notify_one();
        }
    }

    /// Takes the next runnable, or waits for one as long as the duties allow.
    pub(super) fn pop(&self, duties: &Duties<'_>) -> Option<Runnable> {
        let mut state = self.state.lock();
        let mut over = false;
        loop {
            if let Some(runnable) = state.queue.pop() {
                return Some(runnable);
            }
            let wait = duties.until_next();
            if over || duties.must_return() || wait.is_some_and(|wait| wait.is_zero()) {
                return None;
            }
            duties.parks();
            state.waiting += 1;
            state = self.changed.wait(state, wait);
            state.waiting -= 1;
            // After a timed wait, check the queue once more, and then return to fire the deadline.
            over = wait.is_some();
        }
    }

    /// Wakes all workers that wait, so that they check their duties.
    pub(super) fn interrupt(&self) {
        // A worker that read its duties before they changed waits once the lock is free.
        drop(self.state.lock());
        self.changed.notify_all();
    }
}

//! One queue for all workers, behind a mutex, with a condition variable for those who wait.
//!
//! What kind of queue it is, is the parameter. Nothing polls: whoever finds nothing waits until there
//! is something, or until he has other duties.

use super::{Duties, Runnable};
use crate::sync::{Condvar, Mutex};

/// An order in which runnables come out.
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
    /// How many workers wait.
    waiting: usize,
}

impl<Q: QueueOrder> Central<Q> {
    pub(super) fn new(queue: Q) -> Self {
        Central {
            state: Mutex::new(CentralState { queue, waiting: 0 }),
            changed: Condvar::new(),
        }
    }

    pub(super) fn push(&self, runnable: Runnable) {
        let mut state = self.state.lock();
        state.queue.push(runnable);
        let wanted = state.waiting > 0;
        drop(state);
        if wanted {
            self.changed.notify_one();
        }
    }

    /// Takes the next, or waits for it as long as the duties allow.
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
            // Whoever had a time-out looks once more, and then at the deadline that it was for.
            over = wait.is_some();
        }
    }

    /// Has all who wait look at their duties.
    pub(super) fn interrupt(&self) {
        // Whoever looked at his duties before they changed is waiting when the lock is free.
        drop(self.state.lock());
        self.changed.notify_all();
    }
}

//! The workers that sleep, in the order in which they went to sleep.

use std::thread::ThreadId;

/// A stack of worker indices: the last worker to go to sleep is woken first.
pub(super) struct SleeperStack {
    stack: Vec<usize>,
    /// For each worker that waits in a driver, its thread. A task that a reactor wakes runs best on
    /// the same thread.
    threads: Vec<Option<ThreadId>>,
}

impl SleeperStack {
    pub(super) fn new(workers: usize) -> Self {
        SleeperStack {
            stack: Vec::with_capacity(workers),
            threads: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.stack.len()
    }

    pub(super) fn contains(&self, me: usize) -> bool {
        self.stack.contains(&me)
    }

    pub(super) fn push(&mut self, me: usize) {
        self.stack.push(me);
    }

    /// Moves this worker, which is in the stack, to the bottom, so that it is woken last.
    pub(super) fn push_to_bottom(&mut self, me: usize) {
        self.stack.retain(|&sleeper| sleeper != me);
        self.stack.insert(0, me);
    }

    pub(super) fn bottom(&self) -> Option<usize> {
        self.stack.first().copied()
    }

    /// Removes this worker; returns whether it was in the stack.
    pub(super) fn remove(&mut self, me: usize) -> bool {
        let at = self.stack.iter().position(|&sleeper| sleeper == me);
        at.inspect(|&at| {
            self.stack.remove(at);
        })
        .is_some()
    }

    /// Takes the worker to wake next: one whose driver runs on this thread, or else the last to go
    /// to sleep.
    pub(super) fn pop(&mut self) -> Option<usize> {
        if !self.threads.is_empty() {
            let here = Some(std::thread::current().id());
            let is_own = |&me: &usize| self.threads.get(me).copied().flatten() == here;
            if let Some(own) = self.stack.iter().copied().find(|me| is_own(me)) {
                self.remove(own);
                return Some(own);
            }
        }
        self.stack.pop()
    }

    /// Notes that this worker waits in a driver on the calling thread, until
    /// [`woken`](SleeperStack::woken).
    pub(super) fn waits_here(&mut self, me: usize) {
        if self.threads.len() <= me {
            self.threads.resize(me + 1, None);
        }
        self.threads[me] = Some(std::thread::current().id());
    }

    pub(super) fn woken(&mut self, me: usize) {
        if let Some(thread) = self.threads.get_mut(me) {
            *thread = None;
        }
    }
}

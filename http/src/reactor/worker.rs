//! The state of a driven worker: it runs, or its thread waits with the poller or for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Wake;
use std::thread::{self, Thread};
use std::time::Duration;

/// A worker that is driven. As a waker, it lets the worker run again.
#[derive(Debug)]
pub(super) struct WorkerWaker {
    state: AtomicU8,
    thread: Thread,
    /// Ends the wait of the thread that polls.
    kick: Arc<mio::Waker>,
}

const RUNNING: u8 = 0;
/// It must run again.
const WOKEN: u8 = 1;
/// Its thread waits for the system.
const POLLING: u8 = 2;
/// Its thread waits for another thread.
const PARKED: u8 = 3;

impl WorkerWaker {
    /// Creates the worker of the calling thread, which must run.
    pub(super) fn new(kick: Arc<mio::Waker>) -> Self {
        WorkerWaker {
            state: AtomicU8::new(WOKEN),
            thread: thread::current(),
            kick,
        }
    }

    /// Begins to run. Later wakes count.
    pub(super) fn run(&self) {
        // Acquire pairs with the Release of `wake_by_ref`: it sees what was done before the wake.
        self.state.swap(RUNNING, Ordering::Acquire);
    }

    pub(super) fn is_woken(&self) -> bool {
        // Relaxed: `run` reads it again.
        self.state.load(Ordering::Relaxed) == WOKEN
    }

    /// Waits for the system with `wait`, unless the worker was woken.
    pub(super) fn poll_system(&self, wait: impl FnOnce()) {
        if self.change(RUNNING, POLLING) {
            wait();
            self.change(POLLING, RUNNING);
        }
    }

    /// Waits until the worker is woken, so long at most.
    pub(super) fn park(&self, time: Option<Duration>) {
        if !self.change(RUNNING, PARKED) {
            return;
        }
        if let Some(time) = time {
            thread::park_timeout(time);
            self.change(PARKED, RUNNING);
            return;
        }
        while !self.is_woken() {
            thread::park();
        }
    }

    fn change(&self, from: u8, to: u8) -> bool {
        // Relaxed: only `run` goes on to what was done before a wake.
        let changed = self
            .state
            .compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
        changed.is_ok()
    }
}

impl Wake for WorkerWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Release pairs with the Acquire of `run`. Each wake is one, so that the last one counts.
        match self.state.swap(WOKEN, Ordering::Release) {
            // Without the kick, it waits for the next event. Nothing better can be done.
            POLLING => drop(self.kick.wake()),
            PARKED => self.thread.unpark(),
            _ => {}
        }
    }
}

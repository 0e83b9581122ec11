//! The thread that sees to it that the seat is not free for long.
//!
//! A worker that has work leaves the seat, and mostly comes back soon. To wake another thread each
//! time would cost more than a request. So this thread checks every few milliseconds whether the seat
//! was taken meanwhile. While the seat is taken, it rests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use super::core::Reactor;

/// The time after which a seat that was free all the time is taken.
const TICK: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(super) struct Watch {
    rests: AtomicBool,
    thread: Thread,
}

impl Watch {
    pub(super) fn new(thread: Thread) -> Self {
        Watch {
            rests: AtomicBool::new(false),
            thread,
        }
    }

    /// Notes that the seat was left.
    pub(super) fn notice(&self) {
        // Relaxed: the lock of the seat orders this after a rest that has seen the seat taken.
        if self.rests.load(Ordering::Relaxed) && self.rests.swap(false, Ordering::Relaxed) {
            self.thread.unpark();
        }
    }

    /// Rests until the seat is left, unless it is free.
    fn rest(&self, reactor: &Reactor) {
        // Relaxed: the seat is looked at later, and left before `notice`, under its lock.
        self.rests.store(true, Ordering::Relaxed);
        if reactor.seat.is_free() {
            self.rests.store(false, Ordering::Relaxed);
        }
        while self.rests.load(Ordering::Relaxed) {
            thread::park();
        }
    }
}

/// Attends to sockets to which no thread attends.
fn attend(reactor: &Reactor) {
    // A worker that waits is the better sitter.
    while !reactor.seat.call_idle()
        && let Some(taken) = reactor.seat.take()
    {
        if reactor.drives() {
            // All workers are busy, and the first one that is not takes the seat.
            return reactor.look(taken);
        }
        reactor.wait_for_events(taken);
    }
}

/// Keeps watch as long as the process runs.
pub(super) fn keep(reactor: &'static Reactor) {
    loop {
        let before = reactor.seat.taken();
        thread::sleep(TICK);
        if !reactor.seat.is_free() {
            reactor.watch.rest(reactor);
        } else if reactor.seat.taken() == before {
            attend(reactor);
        }
    }
}

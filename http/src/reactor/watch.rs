//! The thread that sees to it that the seat is not free for long.
//!
//! A worker that has work leaves the seat, and mostly comes back soon. To wake another thread each
//! time would cost more than a request. So this thread checks every few milliseconds whether the seat
//! was taken meanwhile. While the seat is taken, it rests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use super::seat::Seat;

/// The time after which a seat that was free all the time is taken.
pub(super) const TICK: Duration = Duration::from_millis(5);

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
    pub(super) fn rest(&self, seat: &Seat) {
        // Relaxed: the seat is looked at later, and left before `notice`, under its lock.
        self.rests.store(true, Ordering::Relaxed);
        if seat.is_free() {
            self.rests.store(false, Ordering::Relaxed);
        }
        while self.rests.load(Ordering::Relaxed) {
            thread::park();
        }
    }
}

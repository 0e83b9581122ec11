//! A worker that waits inside a foreign reactor, where it is a future, instead of parking.
//!
//! # Invariants
//! - DRIVEN-1: a worker that has lain down is a sleeper until [`resume`](super::WorkerLocal::resume) says that it is up.
//!   It takes nothing meanwhile: another thread may be about to wake it for something.

use std::cell::{Cell, RefCell};
use std::task::Waker;
use std::time::Duration;

/// What a driven worker waits with, and for how long.
pub(crate) struct Driven {
    waker: RefCell<Waker>,
    /// The time that it was to wait is over.
    is_over: Cell<bool>,
    /// It has lain down, and may wait so long.
    waits: Cell<Option<Wait>>,
}

/// How long a worker may wait at most; `None`: until it is woken.
type Wait = Option<Duration>;

impl Driven {
    pub(crate) fn new() -> Self {
        Driven {
            waker: RefCell::new(Waker::noop().clone()),
            is_over: Cell::new(false),
            waits: Cell::new(None),
        }
    }

    /// Begins a poll of the worker; `is_over`: the time that it was to wait is.
    pub(crate) fn begin_poll(&self, waker: &Waker, is_over: bool) {
        self.waker.borrow_mut().clone_from(waker);
        self.is_over.set(is_over);
    }

    /// Returns how long the worker may wait, if it has lain down.
    pub(crate) fn waits(&self) -> Option<Wait> {
        self.waits.get()
    }

    pub(super) fn set_waits(&self, waits: Option<Wait>) {
        self.waits.set(waits);
    }

    pub(super) fn waker(&self) -> Waker {
        self.waker.borrow().clone()
    }

    /// Returns once that the time is over.
    pub(super) fn take_over(&self) -> bool {
        self.is_over.take()
    }
}

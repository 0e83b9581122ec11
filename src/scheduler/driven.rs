//! A worker that waits inside a foreign reactor, where it is a future, instead of parking.
//!
//! # Invariants
//! - DRIVEN-1: a worker that has gone to sleep remains a sleeper until
//!   [`resume`](super::WorkerLocal::resume) reports that it is awake. It takes no entry meanwhile,
//!   since another thread may be about to wake it for one.

use crate::waker::KeptWaker;
use std::cell::Cell;
use std::task::Waker;
use std::time::Duration;

/// The waker of a driven worker, and how long it may wait.
pub(crate) struct Driven {
    waker: Cell<KeptWaker>,
    /// The time that the worker was to wait has passed.
    is_over: Cell<bool>,
    /// How long the worker may wait, if it sleeps.
    waits: Cell<Option<Wait>>,
}

/// How long a worker may wait at most. `None` means until it is woken.
type Wait = Option<Duration>;

impl Driven {
    pub(crate) fn new() -> Self {
        Driven {
            waker: Cell::new(KeptWaker::noop()),
            is_over: Cell::new(false),
            waits: Cell::new(None),
        }
    }

    /// Begins a poll of the worker; `is_over` says that its wait has passed.
    pub(crate) fn begin_poll(&self, waker: &Waker, is_over: bool) {
        // The waker is out of the cell while its functions are called.
        let mut own = self.waker.replace(KeptWaker::noop());
        own.renew(waker);
        self.waker.set(own);
        self.is_over.set(is_over);
    }

    /// Returns how long the worker may wait, if it sleeps.
    pub(crate) fn waits(&self) -> Option<Wait> {
        self.waits.get()
    }

    pub(super) fn set_waits(&self, waits: Option<Wait>) {
        self.waits.set(waits);
    }

    /// Returns a waker of this poll.
    pub(super) fn waker(&self) -> KeptWaker {
        let own = self.waker.replace(KeptWaker::noop());
        let another = own.clone();
        self.waker.set(own);
        another
    }

    /// Returns whether the wait has passed, and clears that.
    pub(super) fn take_over(&self) -> bool {
        self.is_over.take()
    }
}

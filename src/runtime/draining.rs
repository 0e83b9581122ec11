//! A wait in `block_on`, in a drop of the drain that its thread makes.
//!
//! One thread drains at a time, and what the drop waits for may be left to drain. So the wait goes on
//! to drain itself.

use std::cell::Cell;
use std::sync::Arc;
use std::task::{Context, Waker};

use super::inner::Inner;
use crate::contain::OnDrop;
use crate::sync::mutant;
use crate::waiters::Ticket;

crate::sync::thread_local! {
    /// The address of the runtime that this thread drains, or 0.
    static DRAINED: Cell<usize> = const { Cell::new(0) };
}

/// Notes that this thread drains the runtime, until the guard is dropped.
pub(super) fn begin(runtime: &Inner) -> OnDrop<impl FnMut()> {
    let own = std::ptr::from_ref(runtime).addr();
    let before = DRAINED.try_with(|it| it.replace(own)).unwrap_or(0);
    OnDrop(move || {
        let _ = DRAINED.try_with(|it| it.set(before));
    })
}

/// A wait of a thread that drains the runtime.
pub(super) struct DrainingWait<'a> {
    runtime: &'a Inner,
    ticket: Ticket,
}

impl<'a> DrainingWait<'a> {
    /// Returns the wait that begins, if this thread drains the runtime.
    pub(super) fn here(runtime: &'a Arc<Inner>) -> Option<Self> {
        let own = Arc::as_ptr(runtime).addr();
        let drains = DRAINED.try_with(|it| it.get() == own).unwrap_or(false);
        (drains && !mutant("a_wait_in_a_drain_only_waits")).then(|| DrainingWait {
            runtime,
            ticket: Ticket::default(),
        })
    }

    /// Drops what is left. If there was none, parks; the next late push wakes the waker.
    pub(super) fn go_on(&mut self, waker: &Waker, park: impl FnOnce()) {
        let (runtime, mut cx) = (self.runtime, Context::from_waker(waker));
        if runtime.drop_left() {
            // What the thread waits for may have ended.
            return;
        }
        let has_late = || runtime.scheduler.has_late();
        let shutdown = &runtime.shutdown;
        if shutdown
            .poll_late(&mut self.ticket, &mut cx, has_late)
            .is_pending()
        {
            park();
        }
    }
}

impl Drop for DrainingWait<'_> {
    fn drop(&mut self) {
        self.runtime.shutdown.leave_late(&mut self.ticket);
    }
}

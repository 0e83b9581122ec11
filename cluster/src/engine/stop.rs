//! `Stop`: what ends all tasks of an engine.
//!
//! It happens once. A task that begins afterwards ends at once.

use std::sync::atomic::{AtomicBool, Ordering};

use event_listener::Event;

#[derive(Default)]
pub(crate) struct Stop {
    is_stopped: AtomicBool,
    event: Event,
}

impl Stop {
    pub(crate) fn stop(&self) {
        // Pairs with the load in `is_stopped`: a waiter that finds it false hears the event.
        self.is_stopped.store(true, Ordering::SeqCst);
        self.event.notify(usize::MAX);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    /// Waits until it is stopped.
    pub(crate) async fn wait(&self) {
        loop {
            let listener = self.event.listen();
            if self.is_stopped() {
                return;
            }
            listener.await;
        }
    }
}

//! What a connection and the body of a stream know of each other: hyper owns the body.
//!
//! One task polls both, so each value is read by the task that has written it, and no order of memory
//! counts.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

#[derive(Debug)]
pub(crate) struct StreamGauge {
    /// The bytes that the client has not taken.
    unsent: AtomicUsize,
    /// Those of all connections.
    all_unsent: Arc<AtomicUsize>,
    is_stopped: AtomicBool,
    has_ended: AtomicBool,
}

impl StreamGauge {
    pub(super) fn new(all_unsent: Arc<AtomicUsize>, is_stopped: bool) -> Self {
        StreamGauge {
            unsent: AtomicUsize::new(0),
            all_unsent,
            is_stopped: AtomicBool::new(is_stopped),
            has_ended: AtomicBool::new(false),
        }
    }

    /// Notes that so many bytes are to be sent.
    pub(crate) fn add(&self, bytes: usize) {
        self.unsent.fetch_add(bytes, Relaxed);
        self.all_unsent.fetch_add(bytes, Relaxed);
    }

    /// Notes that the client has taken so many bytes. Those of heads and of chunks' lengths are among
    /// them.
    pub(super) fn note_sent(&self, bytes: usize) {
        let unsent = self.unsent.load(Relaxed);
        let sent = bytes.min(unsent);
        self.unsent.store(unsent - sent, Relaxed);
        self.all_unsent.fetch_sub(sent, Relaxed);
    }

    /// Lets the stream end, since the server does.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Relaxed)
    }

    /// Notes that nothing more comes of the stream.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Relaxed);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Relaxed)
    }
}

impl Drop for StreamGauge {
    fn drop(&mut self) {
        self.all_unsent.fetch_sub(*self.unsent.get_mut(), Relaxed);
    }
}

//! A looper as its handles and jobs share it.
//!
//! The number of handles decides when the looper closes by itself; jobs do not count.

use std::sync::Arc;

use super::hub::Hub;
use super::identity::{Identity, Key};
use crate::runtime::context;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub(super) struct Seat {
    pub(super) hub: Arc<dyn Hub>,
    pub(super) key: Key,
    pub(super) identity: Identity,
    handles: AtomicUsize,
    /// It changes only in the critical section of the inbox (INBOX-1).
    is_closed: AtomicBool,
}

impl Seat {
    /// Creates the seat of a looper with one handle.
    pub(super) fn new(hub: Arc<dyn Hub>, key: Key, identity: Identity) -> Arc<Self> {
        Arc::new(Seat {
            hub,
            key,
            identity,
            handles: AtomicUsize::new(1),
            is_closed: AtomicBool::new(key == Key::MAX),
        })
    }

    pub(super) fn is_closed(&self) -> bool {
        // Relaxed: the critical section of the inbox orders it.
        self.is_closed.load(Ordering::Relaxed)
    }

    pub(super) fn close(&self) {
        // Relaxed: as above.
        self.is_closed.store(true, Ordering::Relaxed);
    }

    pub(super) fn add_handle(&self) {
        // Relaxed: the new handle is made from another one, so the count is not zero.
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds a handle unless the last one is gone.
    pub(super) fn try_add_handle(&self) -> bool {
        context::apply_effects();
        let more = |handles: usize| (handles > 0).then_some(handles + 1);
        // Relaxed: the table's lock orders what the handle is used for.
        let added = self
            .handles
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        added.is_ok()
    }

    /// Removes a handle. Returns whether it was the last one.
    pub(super) fn remove_handle(&self) -> bool {
        context::apply_effects();
        // AcqRel pairs with itself: the posts of the other handles happen before the close.
        self.handles.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

//! What a runtime knows of the ends of its work that were declared.

use super::deadlock::Listed;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::waiters::Waiters;

pub(crate) struct DeclaredEnds {
    /// A worker that has lain down has declared it, and tells when it is up again.
    pub(crate) is_declared: AtomicBool,
    pub(crate) last: Mutex<Option<End>>,
    pub(crate) waiters: Waiters,
}

impl DeclaredEnds {
    pub(crate) fn new() -> Self {
        DeclaredEnds {
            is_declared: AtomicBool::new(false),
            last: Mutex::new(None),
            waiters: Waiters::new(),
        }
    }

    pub(crate) fn is_declared(&self) -> bool {
        // Acquire pairs with the Release in `declare_from_sleep`.
        self.is_declared.load(Ordering::Acquire)
    }

    /// The runtime is over, and will never run anything again.
    pub(crate) fn end(&self) {
        self.waiters.wake_all();
    }
}

/// A moment when nothing was under way: who had asked for it by then, and the asks that waited.
pub(crate) struct End {
    pub(crate) askers: u64,
    pub(crate) deadlocked: Vec<Listed>,
}

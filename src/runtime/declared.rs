//! The declarations of quiescence of a runtime, and the tasks that wait for one.

use super::deadlock::{ListedAsk, ListedWait, WaitCycle};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::waiters::Waiters;

pub(crate) struct DeclaredEnds {
    /// Set by a worker that has gone to sleep and declared quiescence; it notifies when it is awake
    /// again.
    pub(crate) is_declared: AtomicBool,
    pub(crate) last: Mutex<Option<Quiescence>>,
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

    /// Wakes all waiters, because the runtime is over and will never run anything again.
    pub(crate) fn end(&self) {
        self.waiters.wake_all();
    }
}

/// A moment of quiescence: the number of the last waiter by then, and what waited forever.
pub(crate) struct Quiescence {
    pub(crate) quiescence_waits: u64,
    /// The asks that end.
    pub(crate) deadlocked: Vec<ListedAsk>,
    /// The other waits of actors.
    pub(crate) waits: Vec<ListedWait>,
    /// Cycles of these waits, if no ask ends.
    pub(crate) cycles: Vec<WaitCycle>,
}

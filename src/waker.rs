//! A waker that is kept for a task that waits.
//!
//! The functions of a waker are user code: its clone, its call and its drop may panic. Here they
//! are contained. A caller that keeps a waker behind a lock or in a cell makes it before it enters,
//! and drops what it replaced after it has left.

use std::fmt;
use std::sync::Arc;
use std::task::{Wake, Waker};

use crate::contain::contain;

/// A waker in storage. A panic of its clone, its call or its drop is contained.
pub(crate) struct KeptWaker(Waker);

impl KeptWaker {
    /// Keeps a clone of `waker`. If the clone panics, `waker` is called at once. So its task is
    /// polled again, and tries again.
    #[inline]
    pub(crate) fn new(waker: &Waker) -> Self {
        let mut kept = None;
        contain(|| kept = Some(waker.clone()));
        match kept {
            Some(kept) => KeptWaker(kept),
            None => KeptWaker::of_no_clone(waker),
        }
    }

    #[cold]
    #[inline(never)]
    fn of_no_clone(waker: &Waker) -> Self {
        contain(|| waker.wake_by_ref());
        KeptWaker::noop()
    }

    /// Returns a waker that wakes nothing.
    #[inline]
    pub(crate) fn noop() -> Self {
        KeptWaker(Waker::noop().clone())
    }

    /// Replaces this waker, unless it wakes the task of `waker`.
    #[inline]
    pub(crate) fn renew(&mut self, waker: &Waker) {
        if !self.will_wake(waker) {
            *self = KeptWaker::new(waker);
        }
    }

    #[inline]
    pub(crate) fn will_wake(&self, waker: &Waker) -> bool {
        self.0.will_wake(waker)
    }

    #[inline]
    pub(crate) fn wake(mut self) {
        let waker = std::mem::replace(&mut self.0, Waker::noop().clone());
        contain(|| waker.wake());
    }

    pub(crate) fn wake_by_ref(&self) {
        contain(|| self.0.wake_by_ref());
    }

    pub(crate) fn as_waker(&self) -> &Waker {
        &self.0
    }
}

/// Behind a counted pointer it is a waker whose own functions do not panic.
impl Wake for KeptWaker {
    fn wake(self: Arc<Self>) {
        KeptWaker::wake_by_ref(&self);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        KeptWaker::wake_by_ref(self);
    }
}

impl Clone for KeptWaker {
    fn clone(&self) -> Self {
        KeptWaker::new(&self.0)
    }
}

impl From<Waker> for KeptWaker {
    fn from(waker: Waker) -> Self {
        KeptWaker(waker)
    }
}

impl Drop for KeptWaker {
    #[inline]
    fn drop(&mut self) {
        let waker = std::mem::replace(&mut self.0, Waker::noop().clone());
        contain(|| drop(waker));
    }
}

impl fmt::Debug for KeptWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

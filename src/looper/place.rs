//! A lock as all handles, tasks and the table share it, with its value if it has one.
//!
//! The state changes only under the lock of the controller's table; so its own mutex is never
//! contended. The value is in the slot unless a guard or the world has it.

use std::sync::Arc;

use super::identity::{Identity, Kind};
use super::line::LockState;
use crate::contain::contain;
use crate::sync::{Mutex, MutexGuard};

pub struct Place<V: ?Sized = dyn Send + Sync> {
    /// The number of its controller in this process.
    pub(super) controller: u64,
    pub(super) identity: Identity,
    state: Mutex<LockState>,
    pub(super) value: V,
}

/// The value of a lock. An exclusive guard takes it out, and shared ones clone the pointer.
pub struct Slot<T>(Mutex<Option<Arc<T>>>);

impl<T> Slot<T> {
    pub(super) fn new(value: T) -> Self {
        Slot(Mutex::new(Some(Arc::new(value))))
    }

    pub(super) fn share(&self) -> Option<Arc<T>> {
        self.0.lock().clone()
    }

    pub(super) fn take(&self) -> Option<Arc<T>> {
        self.0.lock().take()
    }

    pub(super) fn put(&self, value: Option<Arc<T>>) {
        *self.0.lock() = value;
    }
}

/// Contains a panic of the value's drop. A job may have the last pointers to several values, and a
/// second panic while the first one unwinds would end the process.
impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        let value = self.take();
        contain(|| drop(value));
    }
}

impl<V> Place<V> {
    pub(super) fn new(controller: u64, identity: Identity, value: V) -> Arc<Self> {
        Arc::new(Place {
            controller,
            identity,
            state: Mutex::new(LockState::default()),
            value,
        })
    }
}

impl<V: ?Sized> Place<V> {
    pub(super) fn has_value(&self) -> bool {
        matches!(self.identity.kind, Kind::Guarded)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, LockState> {
        self.state.lock()
    }
}

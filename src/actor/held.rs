//! A counted reference to an actor's core, which may belong to any thread.
//!
//! It keeps the cell's memory and nothing else: not the mailbox open, nor the actor alive.
#![expect(unsafe_code, reason = "a counted pointer; see A2 in cell.rs")]

use std::ops::Deref;
use std::ptr::NonNull;

use super::core::Core;

pub(super) struct Held<M>(NonNull<Core<M>>);

// SAFETY: (A2) the core is shared by counting, and made for use from any thread.
unsafe impl<M: Send> Send for Held<M> {}
// SAFETY: as above.
unsafe impl<M: Send> Sync for Held<M> {}

impl<M> Held<M> {
    /// # Safety
    /// The caller has a reference, which this takes over.
    pub(super) unsafe fn from_raw(core: NonNull<Core<M>>) -> Self {
        Held(core)
    }
}

impl<M> From<&Core<M>> for Held<M> {
    fn from(core: &Core<M>) -> Self {
        core.retain();
        Held(NonNull::from(core))
    }
}

impl<M> Deref for Held<M> {
    type Target = Core<M>;

    fn deref(&self) -> &Core<M> {
        // SAFETY: (A2) this holds a reference.
        unsafe { self.0.as_ref() }
    }
}

impl<M> Drop for Held<M> {
    fn drop(&mut self) {
        // SAFETY: (A2) the reference is given up.
        unsafe { Core::release(self.0) };
    }
}

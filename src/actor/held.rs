//! A counted reference to an actor's core, which may belong to any thread.
//!
//! It keeps the cell's memory and nothing else: not the mailbox open, nor the actor alive.
#![expect(unsafe_code, reason = "a counted pointer; see A2 in cell.rs")]

use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;

use super::core::{At, Core};

#[repr(transparent)]
pub(super) struct Held<M>(NonNull<Core<M>>);

// SAFETY: (A2) the core is shared by counting, and made for use from any thread.
unsafe impl<M: Send> Send for Held<M> {}
// SAFETY: as above.
unsafe impl<M: Send> Sync for Held<M> {}

// No user code runs in the middle of a change of the core, so no panic leaves one half made.
impl<M> UnwindSafe for Held<M> {}
impl<M> RefUnwindSafe for Held<M> {}

impl<M> Held<M> {
    /// # Safety
    /// The pointer is good for the whole cell (A1), and the caller has a reference, which this takes over.
    pub(super) unsafe fn from_raw(core: NonNull<Core<M>>) -> Self {
        Held(core)
    }

    pub(super) fn at(&self) -> At<'_, M> {
        // SAFETY: (A2) this holds a reference.
        unsafe { At::new(self.0) }
    }
}

impl<M> From<At<'_, M>> for Held<M> {
    fn from(core: At<'_, M>) -> Self {
        core.retain();
        Held(core.pointer())
    }
}

impl<M> Clone for Held<M> {
    fn clone(&self) -> Self {
        Held::from(self.at())
    }
}

impl<M> Deref for Held<M> {
    type Target = Core<M>;

    fn deref(&self) -> &Core<M> {
        self.at().core()
    }
}

impl<M> Drop for Held<M> {
    fn drop(&mut self) {
        // SAFETY: (A2) the reference is given up.
        unsafe { Core::release(self.0) };
    }
}

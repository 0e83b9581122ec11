//! What jobs, guards and outcomes know of their controller.
//!
//! Each method takes the lock of the controller's table for itself, so no caller holds it.

use std::any::Any;
use std::sync::Arc;

use super::identity::{Identity, Key};
use super::place::Place;
use crate::error::{Deadlock, Fault};
use crate::instant::Instant;

/// A pointer to a job whose result is awaited.
pub(super) trait Awaited: Send + Sync {
    /// Returns the address of the job.
    fn at(&self) -> *const ();

    /// Returns the looper of the task, or `None` for the world.
    fn looper(&self) -> Option<Key>;

    /// Returns whether the task has ended.
    fn is_over(&self) -> bool;
}

pub(super) trait Hub: Any + Send + Sync {
    /// Returns the number of the controller in this process.
    fn id(&self) -> u64;

    /// Reports a panic whose outcome is not awaited. `looper` is `None` for the world.
    fn report(&self, looper: Option<&Identity>, fault: &Fault);

    /// Takes a job that has not begun, given its looper and its address. `take` takes its work, and
    /// returns whether it did.
    fn cancel(
        &self,
        job: (Option<Key>, *const ()),
        deadline: Option<(Instant, u64)>,
        take: &mut dyn FnMut() -> bool,
    ) -> bool;

    /// Notes that the task of a looper awaits a result. Returns the deadlock that this closes.
    fn await_result(&self, looper: Key, of: Box<dyn Awaited>) -> Option<Deadlock>;

    /// Removes such a note, given the address of the job.
    fn end_await(&self, looper: Key, of: *const ());

    /// Returns the ticket with which a looper holds a lock.
    fn ticket(&self, place: &Place, looper: Key) -> u32;

    /// Notes that a guard of the lock was dropped, after its value is back in its slot.
    fn drop_guard(&self, place: &Arc<Place>, ticket: u32);
}

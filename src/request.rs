//! Several requests at once, the first of several, one after another, or again until one succeeds.
//!
//! Use these in a task that waits for the outcomes. An actor that receives messages meanwhile takes
//! [`on_answer`](crate::Context::on_answer) instead, and work that computes is
//! [spawned](crate::spawn()).
//!
//! The functions are [`concurrently`](crate::concurrently()),
//! [`try_concurrently`](crate::try_concurrently()), [`sequentially`](crate::sequentially()) and
//! [`retry`](crate::retry()), and here [`race()`], [`first_ok`] and [`run_until`]. This module has
//! the types of their arguments and errors. A request is any future; most are asks. Nothing starts
//! before the first poll, and dropping one of these futures drops the requests in it, which cancels
//! them. [`timeout`](crate::time::timeout()) limits the wait.

pub(crate) mod concurrently;
mod race;
pub(crate) mod retry;
pub(crate) mod sequentially;
mod until;

use std::fmt;
use std::pin::Pin;

pub use crate::actor::OwnedRequest;
pub use concurrently::{FallibleRequests, Requests};
pub use race::{AllFailed, Alternatives, FirstOk, Race, first_ok, race};
pub use retry::Retry;
pub use sequentially::Sequentially;
pub use until::{RunUntil, run_until};

/// The first fault of several requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct First<E> {
    /// The position of the request that failed, counted from 0.
    pub index: usize,
    /// Its error.
    pub error: E,
}

impl<E: fmt::Display> fmt::Display for First<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "request {} failed: {}", self.index, self.error)
    }
}

// The text has the error, so it is not a source as well.
impl<E: std::error::Error> std::error::Error for First<E> {}

/// Puts the future of the next request in its slot, or none. Not in the function that polls it, so
/// that no copy of the future stays on the stack meanwhile.
fn put<F>(mut slot: Pin<&mut Option<F>>, next: impl FnOnce() -> Option<F>) {
    slot.set(next());
}

//! The end of a runtime's work: how it is found, who is told of it, and what keeps it from coming.
//!
//! What counts as work is said in the scheduler's `activity.rs`.

mod declare;
mod watch;

pub use watch::KeepAlive;
#[cfg(all(test, greenroom_loom))]
pub(super) use watch::Quiescent;

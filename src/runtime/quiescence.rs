//! Quiescence, the state of a runtime without work: detection, waiting for it, and `KeepAlive`.
//!
//! The scheduler's `activity.rs` defines what counts as work.

mod declare;
mod watch;

pub use watch::KeepAlive;
#[cfg(all(test, greenroom_loom))]
pub(super) use watch::Quiescent;

//! The shutdown of a runtime: how far it has come, its steps, and who waits for it.

mod drain;
mod future;
mod report;
mod state;
mod steps;

pub use report::ShutdownReport;
pub(super) use state::ShutdownState;

//! The shutdown of a runtime: its steps, and who waits for it.
//!
//! How far it has come is in `shutdown_state.rs`, below what takes part in it.

mod drain;
mod future;
mod steps;

//! The shutdown of a runtime: its steps, and the future that awaits it.
//!
//! The phases are in `shutdown_state.rs`, which the modules that take part in a shutdown use.

mod drain;
mod future;
mod steps;

//! What the programs of one kind have in common: their clients, and the work that is done for them.
//!
//! It does not count as lines of a program, and knows none of the systems.

pub mod chat;
pub mod facts;
pub mod gate;
pub mod pool;
#[cfg(feature = "service")]
pub mod service;

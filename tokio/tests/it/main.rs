//! Crates that need tokio, in actors of greenroom and in actors on tokio.

mod bindings;
mod requests;
mod sockets_and_timers;
mod support;
mod tables;

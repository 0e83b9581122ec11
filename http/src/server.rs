//! The server: listening, connections, and which actor answers what.

mod answer_body;
mod answering;
mod body;
mod builder;
mod callers;
mod connection;
mod hosts;
mod listener;
mod peers;
mod place;
mod route;
mod site;
mod status;
mod streaming;

pub use builder::{Server, ServerBuilder};
pub use listener::StopReport;

//! The client: actors elsewhere, as addresses.

mod builder;
mod connection;
mod exchange;
mod pool;

pub use builder::{Client, ClientBuilder, ConnectError};

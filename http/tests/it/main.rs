//! Servers over real sockets, with clients that send bytes as they like.

mod answers;
mod browser;
mod client;
#[cfg(target_os = "linux")]
mod crowds;
mod driver;
mod ends;
mod events;
mod faults;
mod framing;
mod limits;
mod requests;
mod support;
mod texture_server;
mod view;

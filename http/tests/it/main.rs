//! Servers over real sockets, with clients that send bytes as they like.

mod answers;
mod browser;
mod callers;
mod client;
mod console;
#[cfg(target_os = "linux")]
mod crowds;
mod driver;
mod ends;
mod events;
mod faults;
mod framing;
mod layer_cake;
mod limits;
mod places;
mod refusals;
mod requests;
mod shares;
mod streams;
mod support;
mod texture_server;
mod view;

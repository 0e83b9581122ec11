//! Looks at a running actor system in a terminal: what is stuck, slow, growing or faulting, and why.
//!
//! This library is the program `greenroom-console` without its terminal. It reads the lines that a
//! program sends at `/console/v1`, and draws what they say. The
//! [README](https://github.com/greenroom-rs/greenroom/blob/main/console/README.md) says how it is used.
//! It is public for its tests: any version may change it.
//!
//! # Parts
//! - [`model`]: what is known of the program, from its lines. It does no input or output.
//! - [`why`]: which actors are suspects, and the causes of their waits. It only reads a model.
//! - [`view`]: the screen, drawn into a buffer of ratatui.
//! - [`input`]: keys and the mouse, as actions of the screen.
//! - [`feed`]: where lines come from: a connection, or a record.
//! - [`session`]: what happens to the lines of a feed.

#![forbid(unsafe_code)]

pub mod feed;
pub mod input;
pub mod model;
pub mod session;
pub mod view;
pub mod why;

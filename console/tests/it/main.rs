//! Tests of the console: on the lines of a program, and in a terminal.

mod connection;
#[cfg(unix)]
mod culprits;
mod lines;
mod model;
mod screen;
#[cfg(unix)]
mod terminal;
mod why;

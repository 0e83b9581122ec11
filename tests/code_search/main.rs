//! The example `code_search`, run as its users run it and compared with a plain scan.
//!
//! Every test has its own directory and index, and no test waits for a fixed time. To stop a run in
//! the middle, a test holds the index's lock and reads the program's messages.

#![cfg(all(unix, not(miri)))]

mod hits;
mod program;
mod refusals;
mod scan;
mod stopping;
mod tree;
mod updates;

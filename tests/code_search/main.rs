//! The example `code_search`, run as its users run it and compared with a plain scan.
//!
//! Every test has a directory and an index of its own, and nothing waits for a time: where a run
//! has to be caught in the middle, the test holds the index's lock and reads what the program says.

#![cfg(all(unix, not(miri)))]

mod hits;
mod program;
mod refusals;
mod scan;
mod stopping;
mod tree;
mod updates;

//! Faults of real processes, links and networks.
//!
//! A node that is to suffer is a process of its own: this test binary again, which runs only `node`.
//! `GREENROOM_FAULTS=all` runs the long part as well. What the machine does not allow is skipped,
//! with a line on stderr that begins with `SKIPPED`.
#![cfg(target_os = "linux")]

mod apart;
mod certificates;
mod common;
mod dials;
mod killed;
mod ledger;
mod network;
mod notes;
mod partitions;
mod process;
mod proxy;
mod restarts;
mod rolling;
mod slow;
mod stopped;
mod support;
mod versions;

/// Runs the node of a process that another test has started. Otherwise there is nothing to do.
#[test]
fn node() {
    process::serve();
}

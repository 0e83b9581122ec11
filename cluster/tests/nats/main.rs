//! Nodes that talk over real NATS servers.
//!
//! Processes that are killed or stopped are those of the tests with sockets, over NATS. Without the
//! program `nats-server` all tests are skipped, with a line on stderr that begins with `SKIPPED`.
#![cfg(target_os = "linux")]

#[path = "../processes/apart.rs"]
mod apart;
mod certificates;
mod clusters;
#[path = "../processes/common.rs"]
mod common;
mod counter;
#[path = "../processes/killed.rs"]
mod killed;
#[path = "../processes/ledger.rs"]
mod ledger;
#[path = "../processes/network.rs"]
mod network;
#[path = "../processes/notes.rs"]
mod notes;
mod partitions;
#[path = "../processes/process.rs"]
mod process;
mod server;
mod servers;
mod slow;
#[path = "../processes/stopped.rs"]
mod stopped;
mod support;
mod users;

/// Runs the node of a process that another test has started. Otherwise there is nothing to do.
#[test]
fn node() {
    process::serve();
}

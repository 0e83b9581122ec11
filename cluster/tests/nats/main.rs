//! Nodes that talk over real NATS servers.
//!
//! What is promised of each engine is tested by the files of `it`, and processes that are killed or
//! stopped by those of `processes`. Without the program `nats-server` all tests are skipped, with a
//! line on stderr that begins with `SKIPPED`.
#![cfg(target_os = "linux")]

#[path = "../it/addresses.rs"]
mod addresses;
#[path = "../processes/apart.rs"]
mod apart;
mod certificates;
mod clusters;
#[path = "../processes/common.rs"]
mod common;
mod config;
mod counter;
#[path = "../it/credit.rs"]
mod credit;
#[path = "../it/deadlocks.rs"]
mod deadlocks;
mod floods;
mod idle;
#[path = "../processes/killed.rs"]
mod killed;
#[path = "../processes/ledger.rs"]
mod ledger;
#[cfg(feature = "metrics")]
#[path = "../it/metrics.rs"]
mod metrics;
#[path = "../it/names.rs"]
mod names;
#[path = "../processes/network.rs"]
mod network;
#[path = "../it/nodes.rs"]
mod nodes;
#[path = "../processes/notes.rs"]
mod notes;
mod partitions;
#[path = "../processes/process.rs"]
mod process;
#[path = "../it/replies.rs"]
mod replies;
mod server;
mod servers;
mod slow;
#[path = "../processes/stopped.rs"]
mod stopped;
mod support;
mod users;
#[path = "../it/values.rs"]
mod values;

/// Runs the node of a process that another test has started. Otherwise there is nothing to do.
#[test]
fn node() {
    process::serve();
}

//! Simulations and deadlocks; and tests of the source tree and of its documents.

#[cfg(target_os = "linux")]
#[path = "../support/child.rs"]
mod child;
#[path = "../support/support.rs"]
mod support;

mod deadlock;
mod dropped_waits;
mod figures;
mod simulation;
mod tidy;
mod warnings;

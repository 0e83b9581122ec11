//! Actors that have children, are watched, restarted or supervised; and state machines.

#[cfg(target_os = "linux")]
#[path = "../support/child.rs"]
mod child;
#[path = "../support/support.rs"]
mod support;

mod children;
mod fates;
#[cfg(target_os = "linux")]
mod ledger;
mod machine;
mod restarts;
mod supervision;
mod watching;

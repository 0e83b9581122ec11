//! The behaviour of greenroom-cluster, over real sockets and in simulated nets.
//!
//! What is promised of each engine is a test of every net: it runs over sockets, in a simulated
//! mesh and at a simulated broker, and once more in the tests over NATS. What needs faults or
//! virtual time runs in both simulated nets.

mod nodes;
mod support;

mod addresses;
mod broker;
mod certificates;
mod credit;
mod deadlocks;
mod distance;
#[cfg(feature = "metrics")]
mod metrics;
mod model;
mod names;
mod replies;
mod sockets;
mod values;
#[cfg(feature = "http")]
mod view;

//! The behaviour of greenroom-cluster, over real sockets and in simulated nets.

mod support;

mod addresses;
mod broker;
mod certificates;
mod distance;
#[cfg(feature = "metrics")]
mod metrics;
mod model;
mod names;
mod replies;
mod sockets;
mod values;

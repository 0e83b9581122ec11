//! The behaviour of greenroom-cluster, over real sockets and in simulated nets.

mod support;

mod addresses;
mod certificates;
mod distance;
mod model;
mod names;
mod sockets;
mod values;

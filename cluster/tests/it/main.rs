//! The behaviour of greenroom-cluster, over real sockets and in simulated nets.

mod support;

mod addresses;
mod sockets;

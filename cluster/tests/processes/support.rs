//! What the tests share: how they run, and how much of them.

use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use greenroom_cluster::{Node, NodeBuilder};

use crate::certificates;
pub use crate::common::{LONG, SHORT_LEASE, is_long, scaled, skipped, until};

/// Runs a test, and panics if it hangs.
pub fn run(test: impl Future<Output = ()>) {
    // A thousand restarts take minutes on a busy machine.
    let test = async { greenroom::time::timeout(scaled(5, 25) * LONG, test).await };
    assert!(greenroom::run(test).is_ok(), "hung");
}

/// Returns an address of this machine at which nothing listens. No client has this host.
pub fn free_address() -> String {
    let listener = TcpListener::bind("127.0.9.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // A process that another test starts has all sockets until it becomes another program.
    let socket = TcpStream::from(OwnedFd::from(listener));
    socket.shutdown(Shutdown::Both).unwrap();
    address
}

/// Returns a builder of a node with a certificate.
pub fn builder(name: &str) -> NodeBuilder {
    let [certificate, key, authority] = certificates::files();
    Node::builder(name).identity(certificate, key, authority)
}

/// Returns where a node is to listen, at a free port.
pub fn listener() -> String {
    "127.0.0.1:0".into()
}

/// Returns a builder of the node of a process. What is empty is not there.
pub fn process_builder(name: &str, listen: &str, advertise: &str, seed: &str) -> NodeBuilder {
    let mut builder = builder(name).listen_address(listen);
    if !advertise.is_empty() {
        builder = builder.advertised_address(advertise);
    }
    if !seed.is_empty() {
        builder = builder.seeds([seed]);
    }
    builder
}

/// Returns where others reach a node.
pub fn at(node: &Node) -> String {
    node.listen_addresses()[0].clone()
}

/// Opens a node that dials this address.
pub async fn opens(name: &str, seed: &str, lease: Duration) -> Node {
    let builder = builder(name).seeds([seed]).lease(lease);
    builder.open().await.unwrap()
}

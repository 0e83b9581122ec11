//! What the tests share with those of sockets: how they run, and how nodes are connected.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use greenroom_cluster::{Limits, Nats, Node, NodeBuilder};

pub use crate::common::{LONG, SHORT_LEASE, is_long, skipped, until};
use crate::server::{Server, is_here, nats};

/// The address of the server of the test that runs, for all of its threads.
static ADDRESS: Mutex<String> = Mutex::new(String::new());

/// Runs a test if there is a server, and panics if it hangs. It has a server of its own, and runs
/// beside no other test, since the names of its nodes are those of others.
pub fn run(test: impl Future<Output = ()>) {
    static ALONE: Mutex<()> = Mutex::new(());
    if is_here() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let server = Server::secure();
        *ADDRESS.lock().unwrap() = server.address();
        let test = async { greenroom::time::timeout(5 * LONG, test).await };
        assert!(greenroom::run(test).is_ok(), "hung");
    }
}

/// A server without users, which connects the nodes of a test.
#[derive(Clone)]
pub struct Net(Nats);

impl Net {
    pub async fn node(&self, name: &str) -> Node {
        self.limited_node(name, Limits::default()).await
    }

    pub async fn limited_node(&self, name: &str, limits: Limits) -> Node {
        let node = Node::builder(name).limits(limits).nats(self.0.clone());
        node.open().await.unwrap()
    }

    pub async fn end(&self, node: &Node) {
        node.clone().close().await;
    }

    /// Waits for nothing, since time is real.
    pub async fn settle(&self) {}
}

impl From<&Net> for Net {
    fn from(net: &Net) -> Net {
        net.clone()
    }
}

/// Runs a test of all nets over a server of its own, if there is one.
pub fn everywhere<F: Future<Output = ()>>(test: impl Fn(Net) -> F) {
    on_threads(|net| {
        let test = test(net);
        let ended = greenroom::run(async { greenroom::time::timeout(5 * LONG, test).await });
        assert!(ended.is_ok(), "hung");
    });
}

/// Runs a test with runtimes of its own over a server, if there is one.
pub fn on_threads(test: impl Fn(Net)) {
    if is_here() {
        let server = Server::open();
        test(Net(server.insecure()));
    }
}

/// Returns the address of the server of this test.
pub fn listener() -> String {
    ADDRESS.lock().unwrap().clone()
}

/// Returns a builder of the node of a process, at the server with this address.
pub fn process_builder(name: &str, server: &str, _: &str, _: &str) -> NodeBuilder {
    // For the node of a process, which no test has started here.
    *ADDRESS.lock().unwrap() = server.into();
    Node::builder(name).nats(nats(name, server))
}

/// Returns where others reach a node.
pub fn at(_: &Node) -> String {
    listener()
}

/// Opens a node at the server of this test.
pub async fn opens(name: &str, _: &str, lease: Duration) -> Node {
    let builder = process_builder(name, &listener(), "", "").lease(lease);
    builder.open().await.unwrap()
}

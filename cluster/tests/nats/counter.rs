//! Nodes that have a counter, and those that find it.

use greenroom::{Handle, spawn};
use greenroom_cluster::{Node, RemoteAddress};

use crate::nodes::{Tally, tally};
use crate::server::Server;
use crate::support::LONG;

pub async fn opens(name: &str, server: &Server) -> Node {
    let node = Node::builder(name).nats(server.insecure());
    node.open().await.unwrap()
}

/// Opens a node that has published a counter.
pub async fn counter(name: &str, server: &Server) -> (Node, Handle<Tally, Vec<u64>>) {
    let node = opens(name, server).await;
    let actor = publishes(&node);
    (node, actor)
}

/// Publishes a counter.
pub fn publishes(node: &Node) -> Handle<Tally, Vec<u64>> {
    let actor = spawn!(tally(_));
    node.publish("tally", &actor).unwrap().detach();
    actor
}

pub async fn finds(node: &Node) -> RemoteAddress<Tally> {
    node.lookup("tally").timeout(LONG).await.unwrap()
}

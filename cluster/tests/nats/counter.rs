//! An actor that counts, and the nodes that have it.

use greenroom::{Context, Handle, Reply, spawn};
use greenroom_cluster::{Node, Remote, RemoteAddress};
use serde::{Deserialize, Serialize};

use crate::server::Server;
use crate::support::LONG;

#[derive(Serialize, Deserialize)]
pub enum Tally {
    Add(u64),
    All(#[serde(with = "greenroom_cluster::reply")] Reply<Vec<u64>>),
    Total(#[serde(with = "greenroom_cluster::reply")] Reply<u64>),
    Length(
        String,
        #[serde(with = "greenroom_cluster::reply")] Reply<usize>,
    ),
}

impl Remote for Tally {
    const KIND: &'static str = "tally/1";
}

async fn tally(mut cx: Context<Tally>) {
    let mut added = Vec::new();
    while let Some(message) = cx.recv().await {
        match message {
            Tally::Add(n) => added.push(n),
            Tally::All(reply) => reply.send(added.clone()),
            Tally::Total(reply) => reply.send(added.iter().sum()),
            Tally::Length(text, reply) => reply.send(text.len()),
        }
    }
}

pub async fn opens(name: &str, server: &Server) -> Node {
    let node = Node::builder(name).nats(server.insecure());
    node.open().await.unwrap()
}

/// Opens a node that has published a counter.
pub async fn counter(name: &str, server: &Server) -> (Node, Handle<Tally, ()>) {
    let node = opens(name, server).await;
    let actor = publishes(&node);
    (node, actor)
}

/// Publishes a counter.
pub fn publishes(node: &Node) -> Handle<Tally, ()> {
    let actor = spawn!(tally(_));
    node.publish("tally", &actor).unwrap().detach();
    actor
}

pub async fn finds(node: &Node) -> RemoteAddress<Tally> {
    node.lookup("tally").timeout(LONG).await.unwrap()
}

//! The actors and nodes of the tests.

use greenroom::{Context, Handle, Reply, spawn};
use greenroom_cluster::{Node, Remote, RemoteAddress};
use serde::{Deserialize, Serialize};

/// The messages of a counter that remembers what it was told.
#[derive(Serialize, Deserialize)]
pub enum Tally {
    Add(u64),
    Total(#[serde(with = "greenroom_cluster::reply")] Reply<u64>),
    All(#[serde(with = "greenroom_cluster::reply")] Reply<Vec<u64>>),
    /// Keeps the reply until the actor ends.
    Keep(#[serde(with = "greenroom_cluster::reply")] Reply<u64>),
    /// Drops the reply.
    Forget(#[serde(with = "greenroom_cluster::reply")] Reply<u64>),
    Refuse(#[serde(with = "greenroom_cluster::reply")] Reply<u64>),
    Echo(
        Vec<u8>,
        #[serde(with = "greenroom_cluster::reply")] Reply<Vec<u8>>,
    ),
    /// Passes the reply on to another counter.
    Pass(
        RemoteAddress<Tally>,
        #[serde(with = "greenroom_cluster::reply")] Reply<u64>,
    ),
    Stop,
}

impl Remote for Tally {
    const KIND: &'static str = "tally/1";
}

pub async fn tally(mut cx: Context<Tally>) -> Vec<u64> {
    let (mut added, mut kept) = (Vec::new(), Vec::new());
    while let Some(message) = cx.recv().await {
        match message {
            Tally::Add(n) => added.push(n),
            Tally::Total(reply) => reply.send(added.iter().sum()),
            Tally::All(reply) => reply.send(added.clone()),
            Tally::Keep(reply) => kept.push(reply),
            Tally::Forget(reply) => drop(reply),
            Tally::Refuse(reply) => {
                reply.refuse(greenroom::Refusal::new("out of paper", "tray 2").code(503));
            }
            Tally::Echo(bytes, reply) => reply.send(bytes),
            Tally::Pass(to, reply) => {
                let passed = to.send(Tally::Total(reply)).await;
                drop(passed);
            }
            Tally::Stop => break,
        }
    }
    added
}

/// A node that listens, with a published counter.
pub async fn counter(name: &str) -> (Node, Handle<Tally, Vec<u64>>) {
    let node = Node::builder(name)
        .listen("127.0.0.1:0")
        .open()
        .await
        .unwrap();
    let actor = spawn!(tally(_));
    node.publish("tally", &actor).unwrap().detach();
    (node, actor)
}

/// A node that is connected with another one, and its address of the counter there.
pub async fn client(name: &str, of: &Node) -> (Node, RemoteAddress<Tally>) {
    let node = Node::builder(name)
        .seeds(of.listens())
        .open()
        .await
        .unwrap();
    let far = node.lookup("tally").await.unwrap();
    (node, far)
}

//! The actor of the tests, and two nodes of which one has its address.
//!
//! A [`Net`] is what `support` says: the tests over NATS have another one.

use std::time::Duration;

use greenroom::time::Instant;
use greenroom::{Context, Handle, Reply, spawn};
use greenroom_cluster::{Limits, Node, Published, Remote, RemoteAddress};
use serde::{Deserialize, Serialize};

use crate::support::Net;

/// The messages of a counter that remembers what it received.
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
    /// Passes the reply on to another counter, which keeps it.
    Lend(
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
                reply
                    .refuse(greenroom::Refusal::new("out of paper", "tray 2").with_error_code(503));
            }
            Tally::Echo(bytes, reply) => reply.send(bytes),
            // What is not sent drops its reply.
            Tally::Pass(to, reply) => drop(to.send(Tally::Total(reply)).await),
            Tally::Lend(to, reply) => drop(to.send(Tally::Keep(reply)).await),
            Tally::Stop => break,
        }
    }
    added
}

/// Publishes a new counter, which goes on until it is stopped.
pub fn published(node: &Node) -> Published<Tally> {
    let actor = spawn!(tally(_));
    let published = node.publish("tally", &actor).unwrap();
    let address = actor.address();
    greenroom::spawn(async move { address.closed().await }).detach();
    published
}

/// Two nodes of a net: one with a published counter, and one with its address.
pub struct Pair {
    pub shop: Node,
    pub actor: Handle<Tally, Vec<u64>>,
    pub desk: Node,
    pub far: RemoteAddress<Tally>,
}

pub async fn pair(net: impl Into<Net>) -> Pair {
    limited_pair(net, Limits::default(), Limits::default()).await
}

/// Creates a pair with these limits of the shop and of the desk.
pub async fn limited_pair(net: impl Into<Net>, of_shop: Limits, of_desk: Limits) -> Pair {
    let net = net.into();
    let shop = net.limited_node("shop", of_shop).await;
    let actor = spawn!(tally(_));
    shop.publish("tally", &actor).unwrap().detach();
    let desk = net.limited_node("desk", of_desk).await;
    let far = found(&desk, "tally").await;
    Pair {
        shop,
        actor,
        desk,
        far,
    }
}

/// Finds an actor, also if the machine stops for a while.
pub async fn found<M: Remote>(node: &Node, name: &str) -> RemoteAddress<M> {
    let lookup = node.lookup(name).timeout(Duration::from_secs(60));
    lookup.await.unwrap()
}

/// Waits until a condition holds, at most a minute.
pub async fn until(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never holds");
        greenroom::time::sleep(Duration::from_millis(1)).await;
    }
}

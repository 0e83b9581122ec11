//! The actors and nodes of the tests.

use std::time::Duration;

use greenroom::time::Instant;
use greenroom::{Context, Handle, Reply, sim, spawn};
use greenroom_cluster::{Limits, Node, Remote, RemoteAddress, SimNet};
use serde::{Deserialize, Serialize};

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
            Tally::Pass(to, reply) => {
                let passed = to.send(Tally::Total(reply)).await;
                drop(passed);
            }
            Tally::Stop => break,
        }
    }
    added
}

/// Opens a node that listens, with a published counter.
pub async fn counter(name: &str) -> (Node, Handle<Tally, Vec<u64>>) {
    let node = Node::builder(name)
        .listen_address("127.0.0.1:0")
        .open()
        .await
        .unwrap();
    let actor = spawn!(tally(_));
    node.publish("tally", &actor).unwrap().detach();
    (node, actor)
}

/// Opens a node that is connected with another one, and finds its address of the counter there.
pub async fn client(name: &str, of: &Node) -> (Node, RemoteAddress<Tally>) {
    let node = Node::builder(name)
        .seeds(of.listen_addresses())
        .open()
        .await
        .unwrap();
    let far = node.lookup("tally").await.unwrap();
    (node, far)
}

/// Opens a node in a simulated net.
pub async fn node(name: &str, net: &SimNet) -> Node {
    limited_node(name, net, Limits::default()).await
}

pub async fn limited_node(name: &str, net: &SimNet, limits: Limits) -> Node {
    let node = Node::builder(name).net(net).limits(limits);
    node.open().await.unwrap()
}

/// Two nodes of a simulated net: one with a published counter, and one with its address.
pub struct Pair {
    pub net: SimNet,
    pub shop: Node,
    pub actor: Handle<Tally, Vec<u64>>,
    pub desk: Node,
    pub far: RemoteAddress<Tally>,
}

pub async fn pair() -> Pair {
    pair_in(net()).await
}

pub async fn pair_in(net: SimNet) -> Pair {
    limited_pair_in(net, Limits::default(), Limits::default()).await
}

/// Creates a pair with these limits of the shop and of the desk.
pub async fn limited_pair(of_shop: Limits, of_desk: Limits) -> Pair {
    limited_pair_in(net(), of_shop, of_desk).await
}

async fn limited_pair_in(net: SimNet, of_shop: Limits, of_desk: Limits) -> Pair {
    let shop = limited_node("shop", &net, of_shop).await;
    let actor = spawn!(tally(_), name = "tally");
    shop.publish("tally", &actor).unwrap().detach();
    let desk = limited_node("desk", &net, of_desk).await;
    let far = desk.lookup("tally").await.unwrap();
    Pair {
        net,
        shop,
        actor,
        desk,
        far,
    }
}

/// Returns the seeds of a test: many with `GREENROOM_SEEDS`.
pub fn seeds(few: u64) -> std::ops::Range<u64> {
    let many = std::env::var("GREENROOM_SEEDS").ok();
    0..many.map_or(few, |many| many.parse().unwrap())
}

/// Waits until a condition holds, in virtual time: at most a minute.
pub async fn until(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never holds");
        greenroom::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Creates a net. Half of the seeds have one with a broker.
pub fn net() -> SimNet {
    match std::env::var("GREENROOM_NET").as_deref() {
        Ok("broker") => SimNet::with_broker(),
        Ok("mesh") => SimNet::new(),
        _ if sim::random().is_multiple_of(2) => SimNet::new(),
        _ => SimNet::with_broker(),
    }
}

//! Nodes that talk over a real NATS server.

mod server;

use greenroom::{Context, Handle, Reply, spawn};
use greenroom_cluster::{Node, Remote, RemoteEnd};
use serde::{Deserialize, Serialize};
use server::{Server, is_here};

#[derive(Serialize, Deserialize)]
enum Tally {
    Add(u64),
    All(#[serde(with = "greenroom_cluster::reply")] Reply<Vec<u64>>),
    Total(#[serde(with = "greenroom_cluster::reply")] Reply<u64>),
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
        }
    }
}

async fn opens(name: &str, server: &Server) -> Node {
    let node = Node::builder(name).nats(server.insecure());
    node.open().await.unwrap()
}

/// Opens a node that has published a counter.
async fn counter(name: &str, server: &Server) -> (Node, Handle<Tally, ()>) {
    let node = opens(name, server).await;
    let actor = spawn!(tally(_));
    node.publish("tally", &actor).unwrap().detach();
    (node, actor)
}

#[test]
fn messages_come_in_order_and_asks_are_answered() {
    if !is_here("messages_come_in_order_and_asks_are_answered") {
        return;
    }
    greenroom::run(async {
        let server = Server::open();
        let (_shop, _actor) = counter("shop", &server).await;
        let desk = opens("desk", &server).await;
        let far = desk.lookup::<Tally>("tally").await.unwrap();
        for n in 0..10_000 {
            far.send(Tally::Add(n)).await.unwrap();
        }
        let all = far.ask(Tally::All).await.unwrap();
        assert_eq!(all, (0..10_000).collect::<Vec<_>>());
    });
}

#[test]
fn a_node_that_closes_loses_its_addresses() {
    if !is_here("a_node_that_closes_loses_its_addresses") {
        return;
    }
    greenroom::run(async {
        let server = Server::open();
        let (shop, _actor) = counter("shop", &server).await;
        let desk = opens("desk", &server).await;
        let far = desk.lookup::<Tally>("tally").await.unwrap();
        assert_eq!(far.ask(Tally::Total).await, Ok(0));
        shop.close().await;
        assert_eq!(far.ended().await, RemoteEnd::Lost);
    });
}

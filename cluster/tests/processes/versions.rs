//! Old and new versions side by side.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use greenroom::{Context, Reply, spawn};
use greenroom_cluster::{Node, Remote, RemoteAddress, RemoteLookupError};
use serde::{Deserialize, Serialize};

use crate::support::{LONG, run, until};

/// What each side says first: the magic, and this version of the protocol.
const START: &[u8; 10] = b"greenrm\n\x01\x00";
const OTHER_START: &[u8; 10] = b"greenrm\n\x02\x01";

#[test]
fn a_node_of_another_version_is_named_with_both_versions() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for socket in listener.incoming() {
                let mut socket = socket.unwrap();
                socket.write_all(OTHER_START).unwrap();
                // Until the other side has closed.
                let _ = socket.read_to_end(&mut Vec::new());
            }
        });
        let desk = Node::builder("desk").seeds([&address]);
        let desk = desk.open().await.unwrap();
        let text = format!("{address}: the versions differ: ours is 1, theirs is 258");
        until(async || desk.status().unreached[..] == [&*text]).await;
        let lookup = desk
            .lookup::<New>("tally")
            .timeout(std::time::Duration::ZERO);
        let Err(RemoteLookupError::Unknown { seeds, .. }) = lookup.await else {
            panic!("a name was found");
        };
        assert_eq!(seeds, [text]);
    });
}

#[test]
fn a_client_of_another_version_learns_that_of_the_node_and_is_refused() {
    run(async {
        let shop = Node::builder("shop").listen_address("127.0.0.1:0");
        let shop = shop.open().await.unwrap();
        let mut socket = TcpStream::connect(&shop.listen_addresses()[0]).unwrap();
        let mut start = [0; START.len()];
        socket.read_exact(&mut start).unwrap();
        assert_eq!(&start, START);
        socket.write_all(OTHER_START).unwrap();
        // The rest is its hello. Nothing follows.
        let mut rest = Vec::new();
        socket.read_to_end(&mut rest).unwrap();
        let length = u32::from_le_bytes(rest[..4].try_into().unwrap());
        assert_eq!(rest.len(), 4 + length as usize);
        until(async || shop.status().refused_links == 1).await;
        assert_eq!(shop.status().links, 0);
    });
}

#[derive(Serialize, Deserialize)]
enum Old {
    Add(u64),
    Total(#[serde(with = "greenroom_cluster::reply")] Reply<u64>),
}

impl Remote for Old {
    const KIND: &'static str = "tally/1";
}

/// Its `Add` has another layout, so it is another kind.
#[derive(Serialize, Deserialize)]
enum New {
    Add { amount: u64, note: String },
    Total(#[serde(with = "greenroom_cluster::reply")] Reply<(u64, String)>),
}

impl Remote for New {
    const KIND: &'static str = "tally/2";
}

async fn old(mut cx: Context<Old>) {
    let mut total = 0;
    while let Some(message) = cx.recv().await {
        match message {
            Old::Add(amount) => total += amount,
            Old::Total(reply) => reply.send(total),
        }
    }
}

async fn new(mut cx: Context<New>) {
    let (mut total, mut notes) = (0, String::new());
    while let Some(message) = cx.recv().await {
        match message {
            New::Add { amount, note } => {
                total += amount;
                notes += &note;
            }
            New::Total(reply) => reply.send((total, notes.clone())),
        }
    }
}

#[test]
fn old_and_new_kinds_of_one_name_are_served_side_by_side() {
    run(async {
        let open = async |name: &str| {
            let builder = Node::builder(name).listen_address("127.0.0.1:0");
            builder.open().await.unwrap()
        };
        let (old_shop, new_shop) = (open("old").await, open("new").await);
        let (old, new) = (spawn!(old(_)), spawn!(new(_)));
        old_shop.publish("tally", &old).unwrap().detach();
        new_shop.publish("tally", &new).unwrap().detach();
        let seeds = [&old_shop, &new_shop].map(|shop| shop.listen_addresses()[0].clone());
        let desk = Node::builder("desk").seeds(seeds).open().await.unwrap();
        until(async || desk.status().peers.len() == 2).await;
        // Its link is up before its names are here.
        until(async || desk.all::<Old>("tally").len() + desk.all::<New>("tally").len() == 2).await;
        for n in 1..=10 {
            let far: RemoteAddress<Old> = desk.lookup("tally").timeout(LONG).await.unwrap();
            assert_eq!(far.node(), "old");
            far.send(Old::Add(1)).await.unwrap();
            assert_eq!(far.ask(Old::Total).await, Ok(n));
            let far: RemoteAddress<New> = desk.lookup("tally").timeout(LONG).await.unwrap();
            assert_eq!(far.node(), "new");
            let (amount, note) = (2, "x".into());
            far.send(New::Add { amount, note }).await.unwrap();
            let total = (2 * n, "x".repeat(n as usize));
            assert_eq!(far.ask(New::Total).await, Ok(total));
        }
        // When the old one ends, its clients learn which kind is left.
        old.stop();
        until(async || desk.all::<Old>("tally").is_empty()).await;
        let (ours, theirs) = ("tally/1".into(), "tally/2".into());
        let wrong = desk.lookup::<Old>("tally").await.unwrap_err();
        assert_eq!(wrong, RemoteLookupError::WrongKind { ours, theirs });
    });
}

//! Nodes for which more comes than they take.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use greenroom::Reply;
use greenroom_cluster::{Node, RemoteEnd};

use crate::certificates::NAMES;
use crate::counter::{counter, finds};
use crate::nodes::Tally;
use crate::notes::Note;
use crate::process::{Options, Process};
use crate::server::Server;
use crate::support::{LONG, run};
use crate::users::{on_tokio, stranger};

#[test]
fn fifty_nodes_that_flood_one_make_no_slow_consumer() {
    const NODES: u64 = 50;
    const EACH: u64 = 200;
    run(async {
        let server = Server::open();
        let (shop, actor) = counter("shop", &server).await;
        let floods = (0..NODES).map(|number| {
            let nats = server.insecure();
            greenroom::spawn(async move {
                let node = Node::builder(format!("node-{number}")).nats(nats);
                let node = node.open().await.unwrap();
                let far = finds(&node).await;
                for n in 0..EACH {
                    // Its answer is not wanted.
                    let (reply, _) = Reply::pair();
                    let echo = Tally::Echo(vec![7; 4096], reply);
                    far.send(echo).await.unwrap();
                    far.send(Tally::Add(number * EACH + n)).await.unwrap();
                }
                far.ask(Tally::Total).await.unwrap();
                assert_eq!(node.status().lost_links, 0);
            })
        });
        join_all(floods.collect::<Vec<_>>()).await;
        let mut came = BTreeMap::<u64, Vec<u64>>::new();
        for number in actor.ask(Tally::All).await.unwrap() {
            came.entry(number / EACH).or_default().push(number % EACH);
        }
        let all: Vec<u64> = (0..EACH).collect();
        assert_eq!(came.len() as u64, NODES);
        assert!(came.values().all(|numbers| *numbers == all), "{came:?}");
        let log = server.log();
        assert!(!log.to_lowercase().contains("slow consumer"), "{log}");
        drop(shop);
    });
}

#[test]
fn a_node_that_its_server_gives_up_is_lost_at_once_and_found_again() {
    run(async {
        let config = Server::secure_config(&NAMES);
        let server = Server::with(&config.replace("max_pending: 64MB", "max_pending: 1MB"));
        let lease = Duration::from_secs(3600);
        let mut options = Options::new("shop");
        options.lease = lease;
        options.listen = server.address();
        let shop = Process::start(&options).await;
        let desk = Node::builder("desk").nats(server.known("desk"));
        let desk = desk.lease(lease).open().await.unwrap();
        let far = desk.lookup::<Note>("notes").timeout(LONG).await.unwrap();
        shop.signal("STOP");
        let address = server.address();
        let flood = on_tokio(async move {
            let client = stranger("a", &address).await;
            // More than sockets keep.
            for _ in 0..512 {
                let bytes = vec![0; 64 << 10].into();
                client.publish("gr.to.shop.a", bytes).await.unwrap();
            }
            client.flush().await.unwrap();
        });
        flood.await;
        assert_eq!(far.ended().await, RemoteEnd::Lost);
        let log = server.log();
        assert!(log.contains("Slow Consumer"), "{log}");
        shop.signal("CONT");
        let again = desk.lookup::<Note>("notes").timeout(LONG).await.unwrap();
        assert_eq!(again, far);
        assert_eq!(again.ask(Note::Life).await, Ok(shop.id()));
    });
}

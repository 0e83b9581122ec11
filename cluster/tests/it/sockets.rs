//! What belongs to sockets: closing, seeds, certificates.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use greenroom::{Handle, spawn};
use greenroom_cluster::{Limits, Node, RemoteAddress};

use crate::nodes::{Tally, found, tally, until};

/// Opens a node that listens, with a published counter.
async fn counter(name: &str) -> (Node, Handle<Tally, Vec<u64>>) {
    let node = Node::builder(name).listen_address("127.0.0.1:0");
    let node = node.open().await.unwrap();
    let actor = spawn!(tally(_));
    node.publish("tally", &actor).unwrap().detach();
    (node, actor)
}

/// Opens a node that is connected with another one, and finds its address of the counter there.
async fn client(name: &str, of: &Node) -> (Node, RemoteAddress<Tally>) {
    let node = Node::builder(name).seeds(of.listen_addresses());
    let node = node.open().await.unwrap();
    let far = found(&node, "tally").await;
    (node, far)
}

#[test]
fn a_seed_is_unreached_until_its_link_is_up() {
    greenroom::run(async {
        let [at] = free_addresses();
        let desk = Node::builder("desk").seeds([&at]).open().await.unwrap();
        while !desk.status().unreached.concat().contains("refused") {
            greenroom::yield_now().await;
        }
        let shop = Node::builder("shop")
            .listen_address(&at)
            .open()
            .await
            .unwrap();
        let actor = spawn!(tally(_));
        shop.publish("tally", &actor).unwrap().detach();
        found::<Tally>(&desk, "tally").await;
        assert_eq!(desk.status().unreached, [""; 0]);
    });
}

#[test]
fn nodes_of_one_name_are_told_that_they_may_be() {
    greenroom::run(async {
        let (hub, _actor) = counter("hub").await;
        let twin = || Node::builder("twin").seeds(hub.listen_addresses()).open();
        let (first, second) = (twin().await.unwrap(), twin().await.unwrap());
        let problems = || [first.status().unreached, second.status().unreached].concat();
        while !problems().concat().contains("two nodes have the same name") {
            greenroom::yield_now().await;
        }
    });
}

#[test]
fn a_node_with_as_many_peers_as_it_may_have_disturbs_no_other() {
    greenroom::run(async {
        let (b, _b) = counter("b").await;
        let (c, _c) = counter("c").await;
        let limits = Limits {
            peers: 1,
            ..Limits::default()
        };
        let seeds = [b.listen_addresses(), c.listen_addresses()].concat();
        let a = Node::builder("a").seeds(seeds).limits(limits);
        let _a = a.open().await.unwrap();
        let refused = || b.status().refused_links + c.status().refused_links;
        while refused() < 4 {
            // Both may have been welcome before one of the links was up.
            assert!(b.status().links + c.status().links <= 2);
            greenroom::yield_now().await;
        }
    });
}

#[test]
fn a_node_that_has_said_goodbye_does_not_come_back() {
    greenroom::run(async {
        let (shop, _actor) = counter("shop").await;
        for number in 1..=10 {
            let desk = Node::builder(format!("desk-{number}"))
                .listen_address("127.0.0.1:0")
                .seeds(shop.listen_addresses());
            let desk = desk.open().await.unwrap();
            found::<Tally>(&desk, "tally").await;
            desk.close().await;
            // Whatever it dialled was accepted before the next one.
            assert_eq!(shop.status().links, number);
        }
    });
}

#[test]
fn an_impossible_option_is_told_with_its_value_and_its_limits() {
    greenroom::run(async {
        let shop = || Node::builder("shop");
        let frame = Limits {
            frame: 100,
            ..Limits::default()
        };
        let long = format!("{}:1", "x".repeat(254));
        for (builder, text) in [
            (
                shop().lease(Duration::from_millis(499)),
                "the lease is 499ms, and 500ms to 3600s are allowed".to_owned(),
            ),
            (
                shop().limits(frame),
                "the limit frame is 100, and 4096 to 67108864 are allowed".to_owned(),
            ),
            (
                Node::builder(""),
                "the name \"\" is empty or longer than 255 bytes".to_owned(),
            ),
            (
                shop().listen_address(&long),
                format!("{long:?} is longer than 255 bytes"),
            ),
            (
                shop().seeds(["127.0.0.1:99999"]),
                "\"127.0.0.1:99999\" is no host and port, as in \"127.0.0.1:7447\"".to_owned(),
            ),
        ] {
            let refused = builder.open().await.unwrap_err();
            let text = format!("the node cannot open: {text}");
            assert_eq!(refused.to_string(), text);
        }
    });
}

#[test]
fn a_node_is_dialled_at_the_address_that_it_advertises() {
    greenroom::run(async {
        let wrong = Node::builder("shop").advertised_address("tls/127.0.0.1:1");
        let text = "the node cannot open: \"tls/127.0.0.1:1\" needs an identity";
        assert_eq!(wrong.open().await.unwrap_err().to_string(), text);

        let (hub, _actor) = counter("hub").await;
        let shop = || {
            Node::builder("shop")
                .insecure()
                .seeds(hub.listen_addresses())
        };
        let first = shop().listen_address("0.0.0.0:0").open().await.unwrap();
        // Where it listens, no other node can dial it.
        let at = first.listen_addresses()[0].clone();
        first.close().await;
        let advertised = at.replace("0.0.0.0", "tcp/127.0.0.1");
        let shop = shop()
            .listen_address(at)
            .advertised_address(advertised)
            .open();
        let shop = shop.await.unwrap();
        let actor = spawn!(tally(_));
        shop.publish("own", &actor).unwrap().detach();
        let (desk, _far) = client("desk", &hub).await;
        assert_eq!(found::<Tally>(&desk, "own").await.node(), "shop");
    });
}

// Not beside tests that start processes: a child has all sockets until it becomes another program.
#[test]
fn the_address_of_a_node_is_free_when_it_has_closed() {
    greenroom::run(async {
        let first = Node::builder("shop")
            .listen_address("127.0.9.1:0")
            .open()
            .await
            .unwrap();
        let at = first.listen_addresses()[0].clone();
        first.close().await;
        for _ in 0..50 {
            let node = Node::builder("shop")
                .listen_address(&at)
                .open()
                .await
                .unwrap();
            node.close().await;
        }
    });
}

#[test]
fn what_does_not_greet_is_refused_and_counted() {
    greenroom::run(async {
        let (shop, _actor) = counter("shop").await;
        let magic = &b"greenrm\n"[..];
        let openings = [
            (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "is no node"),
            ([magic, &[9, 9, 1, 0, 0, 0, 0]].concat(), "theirs is 2313"),
            (
                [magic, &[1, 0, 255, 255, 255, 255]].concat(),
                "more than 16384",
            ),
            (
                [magic, &[1, 0, 3, 0, 0, 0, 200, 1, 1]].concat(),
                "malformed",
            ),
            (magic.to_vec(), "has closed the connection"),
        ];
        let refusal = async |opening: &[u8]| {
            let before = shop.status().refused_links;
            let mut socket = TcpStream::connect(&shop.listen_addresses()[0]).unwrap();
            // It ends, also with a reset.
            let _ = socket.write_all(opening);
            let _ = socket.shutdown(Shutdown::Write);
            let _ = socket.read_to_end(&mut Vec::new());
            while shop.status().refused_links <= before {
                greenroom::yield_now().await;
            }
            shop.status().last_refusal.unwrap()
        };
        for (opening, why) in openings {
            let mut refused = refusal(&opening).await;
            // The machine has stopped for so long.
            while refused.contains("no greeting within") {
                refused = refusal(&opening).await;
            }
            assert!(refused.contains(why), "{refused}");
        }
        let (_desk, far) = client("desk", &shop).await;
        assert_eq!(far.ask(Tally::Total).await, Ok(0));
        assert_eq!(shop.status().peers.len(), 1);
    });
}

#[test]
fn silent_connections_keep_no_node_out() {
    greenroom::run(async {
        let (shop, _actor) = counter("shop").await;
        let connect = || TcpStream::connect(&shop.listen_addresses()[0]).unwrap();
        let gives_way = |why: String| why.contains("too many connections greet");
        let mut silent = Vec::new();
        // If the machine stops, those of before are refused for another reason.
        until(|| {
            assert!(silent.len() < 300, "none gives way");
            silent.push(connect());
            shop.status().last_refusal.is_some_and(gives_way)
        })
        .await;
        let (_desk, far) = client("desk", &shop).await;
        assert_eq!(far.ask(Tally::Total).await, Ok(0));
    });
}

/// Returns addresses at which nothing listens, each another one.
fn free_addresses<const N: usize>() -> [String; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.9.2:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().to_string())
}

#[test]
fn nodes_that_dial_each_other_at_the_same_time_lose_no_link() {
    greenroom::run(async {
        for _ in 0..50 {
            let began = Instant::now();
            let addresses = free_addresses::<2>();
            let open = |name, own: usize| {
                // Two seeds lead to the same node.
                let seeds = [&addresses[1 - own]; 2];
                let builder = Node::builder(name).listen_address(&addresses[own]);
                builder.seeds(seeds).open()
            };
            let (a, b) = futures::join!(open("a", 0), open("b", 1));
            let (a, b) = (a.unwrap(), b.unwrap());
            let actor = spawn!(tally(_));
            a.publish("of a", &actor).unwrap().detach();
            b.publish("of b", &actor).unwrap().detach();
            let asks = async |node: &Node, name| {
                let far = found::<Tally>(node, name).await;
                let mut answers = Vec::new();
                for _ in 0..20 {
                    answers.push(far.ask(Tally::Total).await);
                }
                answers
            };
            let (of_b, of_a) = futures::join!(asks(&a, "of b"), asks(&b, "of a"));
            // A link is young for a second: if the machine stops, the second one ends it.
            if began.elapsed() < Duration::from_secs(1) {
                assert_eq!([of_b, of_a].concat(), [const { Ok(0) }; 40]);
                assert_eq!(a.status().lost_links + b.status().lost_links, 0);
            }
        }
    });
}

//! What is different over a broker: packets are lost, and only nodes that talk are connected.

use std::time::Duration;

use futures::future::join_all;
use greenroom::time::Instant;
use greenroom::{sim, spawn};
use greenroom_cluster::{Distance, Limits, NameChange, Node, RemoteEnd, RemoteLookupError, SimNet};

use crate::nodes::{Pair, Tally, pair, tally, until};
use crate::support::{Net, node, seeds};

#[test]
fn a_killed_node_is_lost_after_one_and_a_half_leases_at_most() {
    let times = std::sync::Mutex::new(Vec::new());
    sim::explore(seeds(20), |_| async {
        let net = SimNet::with_broker();
        let Pair { far, .. } = &pair(&net).await;
        net.crash("shop");
        let start = Instant::now();
        assert_eq!(far.ended().await, RemoteEnd::Lost);
        assert!(start.elapsed() <= Duration::from_millis(7500));
        times.lock().unwrap().push(start.elapsed());
    });
    let times = times.into_inner().unwrap();
    // The broker says so in half of the seeds.
    let soon = times
        .iter()
        .filter(|time| **time < Duration::from_millis(50));
    assert!((1..times.len()).contains(&soon.count()), "{times:?}");
}

#[test]
fn a_batch_that_is_lost_ends_the_link_even_if_it_is_the_last_one() {
    sim::explore(seeds(50), |_| async {
        let net = SimNet::with_broker();
        let Pair { far, .. } = &pair(&net).await;
        assert_eq!(far.ask(Tally::Total).await, Ok(0));
        // The acknowledgement of the answer.
        greenroom::time::sleep(Duration::from_millis(300)).await;
        net.loss(1.0, Duration::from_secs(3600));
        far.tell(Tally::Add(1)).unwrap();
        greenroom::time::sleep(Duration::from_millis(10)).await;
        net.loss(0.0, Duration::ZERO);
        let start = Instant::now();
        assert_eq!(far.ended().await, RemoteEnd::Lost);
        assert!(
            start.elapsed() < Duration::from_millis(200),
            "{:?}",
            start.elapsed()
        );
        assert_eq!(far.tell(Tally::Add(2)).unwrap_err().why, Distance::Lost);
    });
}

#[test]
fn a_broker_that_restarts_ends_all_links_and_the_actors_are_found_again() {
    sim::explore(seeds(20), |_| async {
        let net = SimNet::with_broker();
        let Pair { desk, far, .. } = &pair(&net).await;
        net.restart_broker();
        assert_eq!(far.ended().await, RemoteEnd::Lost);
        let again = desk.lookup::<Tally>("tally").await.unwrap();
        assert_eq!(again.ask(Tally::Total).await, Ok(0));
    });
}

#[test]
fn only_nodes_that_talk_are_connected() {
    sim::explore(seeds(4), |_| async {
        let net = SimNet::with_broker();
        let actor = spawn!(tally(_));
        let mut nodes = Vec::new();
        for number in 0..5 {
            let node = node(&format!("node-{number}"), &net).await;
            node.publish("tally", &actor).unwrap().detach();
            nodes.push(node);
        }
        let desk = node("desk", &net).await;
        let far = desk.lookup::<Tally>("tally").await.unwrap();
        greenroom::time::sleep(Duration::from_secs(10)).await;
        let peers = desk.status().peers;
        assert_eq!(peers.len(), 1);
        assert_eq!(peers[0].name, far.node());
        let links: u64 = nodes.iter().map(|node| node.status().links).sum();
        assert_eq!(links, 1);
    });
}

#[test]
fn a_watch_reports_the_names_of_all_nodes_that_begin_so() {
    sim::explore(seeds(20), |_| async {
        let net = SimNet::with_broker();
        let actor = spawn!(tally(_));
        let (early, desk) = (node("early", &net).await, node("desk", &net).await);
        early.publish("log/1", &actor).unwrap().detach();
        let mut watch = desk.watch_names("log/");
        let late = node("late", &net).await;
        late.publish("tally", &actor).unwrap().detach();
        let published = late.publish("log/2", &actor).unwrap();
        let mut come = Vec::new();
        while come.len() < 2 {
            match watch.next().await {
                Some(NameChange::Come { name, node, .. }) => come.push((name, node)),
                other => panic!("{other:?}"),
            }
        }
        come.sort();
        let [one, two] = [("log/1", "early"), ("log/2", "late")];
        assert_eq!(
            come,
            [one, two].map(|(name, node)| (name.into(), node.into()))
        );
        drop(published);
        let gone = watch.next().await;
        assert!(matches!(gone, Some(NameChange::Gone { .. })), "{gone:?}");
        net.crash("early");
        let gone = watch.next().await;
        assert!(matches!(gone, Some(NameChange::Gone { .. })), "{gone:?}");
    });
}

#[test]
fn a_watch_alone_finds_names_again_after_any_loss() {
    sim::explore(seeds(20), |seed| async move {
        let net = SimNet::with_broker();
        let actor = spawn!(tally(_));
        let (shop, desk) = (node("shop", &net).await, node("desk", &net).await);
        let mut watch = desk.watch_names("log/");
        if seed % 2 == 0 {
            // The first question and the first announcement are lost.
            net.loss(1.0, Duration::from_secs(3600));
        }
        shop.publish("log/1", &actor).unwrap().detach();
        greenroom::time::sleep(Duration::from_millis(50)).await;
        net.loss(0.0, Duration::ZERO);
        let start = Instant::now();
        assert!(matches!(watch.next().await, Some(NameChange::Come { .. })));
        assert!(
            start.elapsed() < Duration::from_secs(2),
            "{:?}",
            start.elapsed()
        );
        // They are apart for longer than a lease, and nothing is reported when they no longer are.
        net.partition(["shop"], ["desk"]);
        assert!(matches!(watch.next().await, Some(NameChange::Gone { .. })));
        greenroom::time::sleep(Duration::from_secs(20)).await;
        net.heal();
        let start = Instant::now();
        assert!(matches!(watch.next().await, Some(NameChange::Come { .. })));
        assert!(
            start.elapsed() <= Duration::from_secs(60),
            "{:?}",
            start.elapsed()
        );
    });
}

#[test]
fn a_name_that_no_actor_can_have_is_unknown_at_once() {
    sim::explore(seeds(2), |_| async {
        let net = SimNet::with_broker();
        let desk = node("desk", &net).await;
        let start = Instant::now();
        for name in [String::new(), "x".repeat(256)] {
            let error = desk.lookup::<Tally>(name).await.unwrap_err();
            assert!(
                matches!(error, RemoteLookupError::Unknown { .. }),
                "{error}"
            );
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
    });
}

#[test]
fn a_peer_too_many_is_refused_and_the_lookup_names_the_reason() {
    sim::explore(seeds(5), |_| async {
        let net = SimNet::with_broker();
        let (peers, limits) = (1, Limits::default());
        let shop = Net::from(&net)
            .limited_node("shop", Limits { peers, ..limits })
            .await;
        let actor = spawn!(tally(_));
        shop.publish("tally", &actor).unwrap().detach();
        let (first, second) = (node("first", &net).await, node("second", &net).await);
        let _far = first.lookup::<Tally>("tally").await.unwrap();
        let error = second
            .lookup::<Tally>("tally")
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("shop: refused: the node has 1 peers already"),
            "{error}"
        );
        // It has asked, and was not greeted in vain.
        assert_eq!(
            (
                shop.status().refused_links,
                second.status().refused_links > 0
            ),
            (0, true)
        );
    });
}

#[test]
fn many_nodes_that_flood_one_lose_nothing_and_have_little_under_way() {
    sim::explore(seeds(2), |_| async {
        let net = SimNet::with_broker();
        let shop = node("shop", &net).await;
        let actor = spawn!(tally(_));
        shop.publish("tally", &actor).unwrap().detach();
        let floods = (0..50).map(|number| {
            let net = net.clone();
            greenroom::spawn(async move {
                let node = node(&format!("node-{number}"), &net).await;
                let far = node.lookup::<Tally>("tally").await.unwrap();
                for n in 0..20 {
                    far.send(Tally::Add(n)).await.unwrap();
                }
                far.ask(Tally::Total).await.unwrap();
                assert_eq!(far.end_now(), None);
                assert_eq!(node.status().lost_links, 0);
            })
        });
        join_all(floods).await;
        assert_eq!(actor.ask(Tally::Total).await.unwrap(), 50 * 190);
        until(|| shop.status().peers.is_empty()).await;
    });
}

#[test]
fn options_of_sockets_are_an_error_at_another_engine() {
    sim::explore(seeds(1), |_| async {
        let net = SimNet::with_broker();
        let node = Node::builder("desk").net(&net);
        let opened = node.clone().seeds(["127.0.0.1:7447"]).open().await;
        let error = opened.unwrap_err().to_string();
        assert!(error.contains("no options of sockets"), "{error}");
        drop(node.open().await.unwrap());
    });
}

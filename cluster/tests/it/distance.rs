//! What is promised about loss, order and back-pressure, in virtual time.

use std::time::Duration;

use futures::future::join_all;
use greenroom::time::Instant;
use greenroom::{Context, sim, spawn};
use greenroom_cluster::{
    Distance, Limits, Node, RemoteAskError, RemoteEnd, RemoteLookupError, SimNet,
};

use crate::nodes::{Pair, Tally, pair, published, tally, until};
use crate::replies::{Work, workshop};
use crate::support::{Net, node, seeds, simulated};

const LEASE: Duration = Duration::from_secs(5);

#[test]
fn a_silent_node_is_lost_after_one_and_a_half_leases() {
    simulated(|net| async move {
        let Pair { far, .. } = &pair(&net).await;
        net.partition(["shop"], ["desk"]);
        let start = Instant::now();
        assert_eq!(far.ended().await, RemoteEnd::Lost);
        let silent = start.elapsed();
        assert!(silent > LEASE * 13 / 10, "lost after {silent:?}");
        assert!(silent < LEASE * 155 / 100, "lost after {silent:?}");
    });
}

#[test]
fn a_node_that_only_hears_nothing_is_lost_as_well() {
    simulated(|net| async move {
        let Pair { far, .. } = &pair(&net).await;
        net.silence("shop", "desk");
        assert_eq!(far.ended().await, RemoteEnd::Lost);
    });
}

#[test]
fn a_killed_node_is_lost_at_once() {
    sim::explore(seeds(20), |_| async {
        let net = SimNet::new();
        let Pair { far, .. } = &pair(&net).await;
        net.crash("shop");
        let start = Instant::now();
        assert_eq!(far.end_now(), None);
        assert_eq!(far.ended().await, RemoteEnd::Lost);
        assert_eq!(far.end_now(), Some(RemoteEnd::Lost));
        assert!(start.elapsed() < Duration::from_millis(50));
    });
}

#[test]
fn an_idle_link_is_kept_up() {
    simulated(|net| async move {
        let Pair { desk, far, .. } = &pair(&net).await;
        greenroom::time::sleep(LEASE * 20).await;
        assert_eq!(far.ask(Tally::Total).await, Ok(0));
        assert_eq!(desk.status().lost_links, 0);
    });
}

#[test]
fn a_lookup_finds_the_same_actor_within_5_s_after_a_heal() {
    simulated(|net| async move {
        let Pair { desk, far, .. } = &pair(&net).await;
        far.tell(Tally::Add(40)).unwrap();
        assert_eq!(far.ask(Tally::Total).await, Ok(40));
        net.partition(["shop"], ["desk"]);
        far.ended().await;
        let unknown = desk.lookup::<Tally>("tally").timeout(Duration::ZERO).await;
        assert!(matches!(unknown, Err(RemoteLookupError::Unknown { .. })));
        net.heal();
        let start = Instant::now();
        let again = desk.lookup::<Tally>("tally").timeout(LEASE).await.unwrap();
        assert!(start.elapsed() < Duration::from_secs(5));
        assert_eq!(again, *far);
        again.tell(Tally::Add(2)).unwrap();
        assert_eq!(again.ask(Tally::Total).await, Ok(42));
        // The old address stays lost.
        assert_eq!(far.tell(Tally::Add(1)).unwrap_err().why, Distance::Lost);
    });
}

#[test]
fn a_short_partition_loses_nothing() {
    simulated(|net| async move {
        let Pair { far, .. } = &pair(&net).await;
        net.partition(["shop"], ["desk"]);
        far.tell(Tally::Add(42)).unwrap();
        greenroom::time::sleep(LEASE).await;
        net.heal();
        assert_eq!(far.ask(Tally::Total).await, Ok(42));
    });
}

#[test]
fn each_ask_ends_when_its_node_dies() {
    simulated(|net| async move {
        let Pair { far, .. } = &pair(&net).await;
        let asks = (0..20).map(|_| async { far.ask(Tally::Keep).await });
        let crash = async {
            greenroom::time::sleep(Duration::from_micros(sim::random() % 5000)).await;
            net.crash("shop");
        };
        let (asks, ()) = futures::join!(join_all(asks), crash);
        assert!(
            asks.iter().all(|ask| *ask == Err(RemoteAskError::Lost)),
            "{asks:?}"
        );
    });
}

#[test]
fn an_ask_within_an_answer_ends_when_the_answer_comes_too_late() {
    simulated(|net| async move {
        let (actor, _gate, _nodes, far) = workshop(&net, 2).await;
        let second = Duration::from_secs(1);
        net.delay(second..second);
        // The answer is under way when the asker goes.
        let late = far.ask(|reply| Work::Begin(true, reply));
        let late = late.timeout(second * 3 / 2).await;
        assert_eq!(late.unwrap_err(), RemoteAskError::TimedOut);
        actor.stop();
        assert_eq!(actor.join().await.unwrap(), [true]);
    });
}

#[test]
fn what_waits_for_room_when_its_link_ends_is_not_handled_after_a_new_lookup() {
    simulated(|net| async move {
        let shop = node("shop", &net).await;
        let (go, wait) = futures::channel::oneshot::channel::<()>();
        let late = async |cx: Context<Tally>| {
            wait.await.unwrap();
            tally(cx).await
        };
        let actor = spawn!(late(_), capacity = 1);
        shop.publish("tally", &actor).unwrap().detach();
        let desk = node("desk", &net).await;
        let old = desk.lookup::<Tally>("tally").await.unwrap();
        // The mailbox takes the first one, and the second one waits at the other node.
        for n in 1..=2 {
            old.send(Tally::Add(n)).await.unwrap();
        }
        greenroom::time::sleep(LEASE / 10).await;
        net.partition(["shop"], ["desk"]);
        assert_eq!(old.ended().await, RemoteEnd::Lost);
        until(|| shop.status().peers.is_empty()).await;
        net.heal();
        let new = desk.lookup::<Tally>("tally").await.unwrap();
        go.send(()).unwrap();
        new.send(Tally::Add(3)).await.unwrap();
        assert_eq!(new.ask(Tally::All).await, Ok(vec![1, 3]));
    });
}

#[test]
fn frames_that_come_late_keep_the_order() {
    sim::explore(seeds(20), |_| async {
        let net = SimNet::new();
        let Pair { far, .. } = &pair(&net).await;
        net.loss(0.3, Duration::from_millis(200));
        net.delay(Duration::ZERO..Duration::from_millis(30));
        for n in 0..100 {
            far.send(Tally::Add(n)).await.unwrap();
        }
        let all = far.ask(Tally::All).await.unwrap();
        assert_eq!(all, (0..100).collect::<Vec<u64>>());
    });
}

#[test]
fn nodes_with_different_leases_keep_their_link() {
    simulated(|net| async move {
        let slow = Node::builder("slow")
            .net(&net)
            .lease(Duration::from_secs(60));
        let slow = slow.open().await.unwrap();
        let actor = spawn!(tally(_));
        let _published = slow.publish("tally", &actor).unwrap();
        let quick = Node::builder("quick")
            .net(&net)
            .lease(Duration::from_millis(500));
        let quick = quick.open().await.unwrap();
        let far = quick.lookup::<Tally>("tally").await.unwrap();
        greenroom::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(far.ask(Tally::Total).await, Ok(0));
        assert_eq!(quick.status().lost_links, 0);
    });
}

#[test]
fn a_node_that_comes_back_is_another_life() {
    simulated(|net| async move {
        let Pair { desk, far, .. } = &pair(&net).await;
        far.tell(Tally::Add(1)).unwrap();
        let again = node("shop", &net).await;
        let actor = spawn!(tally(_));
        let _published = again.publish("tally", &actor).unwrap();
        assert_eq!(far.ended().await, RemoteEnd::Lost);
        let new = desk.lookup::<Tally>("tally").await.unwrap();
        assert_ne!(new, *far);
        assert_eq!(new.ask(Tally::Total).await, Ok(0));
    });
}

#[test]
fn a_close_takes_at_most_a_second_with_a_dead_link() {
    simulated(|net| async move {
        let Pair { desk, far, .. } = pair(&net).await;
        net.partition(["shop"], ["desk"]);
        far.tell(Tally::Add(1)).unwrap();
        let start = Instant::now();
        desk.close().await;
        assert!(start.elapsed() <= Duration::from_secs(1));
        assert_eq!(far.ended().await, RemoteEnd::Lost);
    });
}

#[test]
fn a_peer_too_many_is_refused() {
    sim::explore(seeds(5), |_| async {
        let net = SimNet::new();
        let limits = Limits {
            peers: 1,
            ..Limits::default()
        };
        let a = Net::from(&net).limited_node("a", limits).await;
        let _b = node("b", &net).await;
        until(|| a.status().peers.len() == 1).await;
        let _c = node("c", &net).await;
        until(|| a.status().refused_links > 0).await;
        assert_eq!(a.status().peers[0].name, "b");
    });
}

#[test]
fn in_a_partition_both_sides_go_on() {
    simulated(|net| async move {
        let nodes = [node("a", &net).await, node("b", &net).await];
        let _watches = nodes.each_ref().map(|node| node.watch_names(""));
        let _published = nodes.each_ref().map(published);
        until(|| {
            nodes
                .iter()
                .all(|node| node.all::<Tally>("tally").len() == 2)
        })
        .await;
        net.partition(["a"], ["b"]);
        until(|| {
            nodes
                .iter()
                .all(|node| node.all::<Tally>("tally").len() == 1)
        })
        .await;
        for node in &nodes {
            let far = node.lookup::<Tally>("tally").await.unwrap();
            assert_eq!(far.node(), node.name());
            assert_eq!(far.ask(Tally::Total).await, Ok(0));
        }
        net.heal();
        until(|| {
            nodes
                .iter()
                .all(|node| node.all::<Tally>("tally").len() == 2)
        })
        .await;
        for far in nodes[0].all::<Tally>("tally") {
            far.send(Tally::Stop).await.unwrap();
        }
    });
}

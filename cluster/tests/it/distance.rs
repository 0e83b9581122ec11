//! What is promised about loss, order and back-pressure, in virtual time.

use std::time::Duration;

use futures::future::join_all;
use greenroom::time::Instant;
use greenroom::{Context, sim, spawn};
use greenroom_cluster::{
    Distance, Limits, Node, RemoteAskError, RemoteEnd, RemoteLookupError, SimNet,
};

use crate::support::{
    Pair, Tally, limited_node, limited_pair, net, node, pair, pair_in, seeds, tally, until,
};

const LEASE: Duration = Duration::from_secs(5);

#[test]
fn a_silent_node_is_lost_after_one_and_a_half_leases() {
    sim::explore(seeds(20), |_| async {
        let Pair { net, far, .. } = &pair().await;
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
    sim::explore(seeds(20), |_| async {
        let Pair { net, far, .. } = &pair().await;
        net.silence("shop", "desk");
        assert_eq!(far.ended().await, RemoteEnd::Lost);
    });
}

#[test]
fn a_killed_node_is_lost_at_once() {
    sim::explore(seeds(20), |_| async {
        let Pair { net, far, .. } = &pair_in(SimNet::new()).await;
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
    sim::run(1, async {
        let Pair { desk, far, .. } = &pair().await;
        greenroom::time::sleep(LEASE * 100).await;
        assert_eq!(far.ask(Tally::Total).await, Ok(0));
        assert_eq!(desk.status().lost_links, 0);
    });
}

#[test]
fn a_lookup_finds_the_same_actor_within_5_s_after_a_heal() {
    sim::explore(seeds(20), |_| async {
        let Pair { net, desk, far, .. } = &pair().await;
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
    sim::explore(seeds(20), |_| async {
        let Pair { net, far, .. } = &pair().await;
        net.partition(["shop"], ["desk"]);
        far.tell(Tally::Add(42)).unwrap();
        greenroom::time::sleep(LEASE).await;
        net.heal();
        assert_eq!(far.ask(Tally::Total).await, Ok(42));
    });
}

#[test]
fn each_ask_ends_when_its_node_dies() {
    sim::explore(seeds(50), |_| async {
        let Pair { net, far, .. } = &pair().await;
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
fn an_ask_ends_when_its_reply_is_dropped_or_its_actor_ends() {
    sim::explore(seeds(50), |_| async {
        let Pair { far, .. } = &pair().await;
        let forgotten = far.ask(Tally::Forget).await;
        assert!(
            matches!(forgotten, Err(RemoteAskError::NoReply(_))),
            "{forgotten:?}"
        );
        let kept = async { far.ask(Tally::Keep).await };
        let stop = async { far.send(Tally::Stop).await.unwrap() };
        let (kept, ()) = futures::join!(kept, stop);
        // The question may arrive before the end of the actor, or after it.
        assert!(
            matches!(
                kept,
                Err(RemoteAskError::NoReply(_) | RemoteAskError::Closed)
            ),
            "{kept:?}"
        );
    });
}

#[test]
fn a_timeout_ends_an_ask_and_the_reply_is_not_wanted() {
    sim::explore(seeds(20), |_| async {
        let Pair { shop, far, .. } = &pair().await;
        let kept = far.ask(Tally::Keep).timeout(Duration::from_secs(1)).await;
        assert_eq!(kept, Err(RemoteAskError::TimedOut));
        until(|| shop.status().peers[0].answering == 0).await;
    });
}

#[test]
fn at_most_the_capacity_of_a_bounded_actor_is_under_way() {
    sim::explore(seeds(50), |_| async {
        let net = net();
        let shop = node("shop", &net).await;
        let (go, wait) = futures::channel::oneshot::channel::<()>();
        let late = async |cx: Context<Tally>| {
            wait.await.unwrap();
            tally(cx).await
        };
        let actor = spawn!(late(_), capacity = 4);
        let _published = shop.publish("tally", &actor).unwrap();
        let desk = node("desk", &net).await;
        let mut accepted = 0;
        // The mailbox takes 4, and 4 more are under way. A new address does not begin anew.
        while accepted < 8 {
            let far = desk.lookup::<Tally>("tally").await.unwrap();
            if far.tell(Tally::Add(1)).is_ok() {
                accepted += 1;
            }
            drop(far);
            greenroom::time::sleep(Duration::from_millis(1)).await;
        }
        let far = desk.lookup::<Tally>("tally").await.unwrap();
        greenroom::time::sleep(LEASE).await;
        assert_eq!(far.tell(Tally::Add(1)).unwrap_err().why, Distance::Full);
        assert_eq!(actor.len(), 4);
        // Senders wait in order.
        let sends = (0..50).map(|n| far.send(Tally::Add(n)));
        let sends = join_all(sends);
        let go = async { go.send(()).unwrap() };
        let (sent, ()) = futures::join!(sends, go);
        assert!(sent.iter().all(Result::is_ok));
        let all = far.ask(Tally::All).await.unwrap();
        assert_eq!(all[..8], [1; 8]);
        assert_eq!(all[8..], (0..50).collect::<Vec<u64>>());
    });
}

#[test]
fn what_waits_for_room_when_its_link_ends_is_not_handled_after_a_new_lookup() {
    sim::explore(seeds(50), |_| async {
        let net = net();
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
fn a_stream_ends_when_its_last_address_is_dropped_and_all_was_taken() {
    sim::explore(seeds(50), |_| async {
        let Pair {
            shop,
            actor: _actor,
            desk,
            far,
            ..
        } = pair().await;
        for n in 0..10 {
            far.send(Tally::Add(n)).await.unwrap();
        }
        drop(far);
        until(|| desk.status().peers[0].outgoing == 0).await;
        until(|| shop.status().peers[0].incoming == 0).await;
        let far = desk.lookup::<Tally>("tally").await.unwrap();
        assert_eq!(far.ask(Tally::Total).await, Ok(45));
        assert_eq!(desk.status().stray + shop.status().stray, 0);
    });
}

#[test]
fn an_actor_too_many_is_told_with_the_limit() {
    sim::explore(seeds(20), |_| async {
        let limits = Limits {
            streams: 1,
            ..Limits::default()
        };
        let Pair {
            shop, desk, far, ..
        } = &limited_pair(limits, Limits::default()).await;
        assert_eq!(far.ask(Tally::Total).await, Ok(0));
        let other = spawn!(tally(_));
        let _published = shop.publish("other", &other).unwrap();
        let second = desk.lookup::<Tally>("other").await.unwrap();
        let limit = 1;
        let asked = second.ask(Tally::Total).await;
        assert_eq!(asked, Err(RemoteAskError::TooManyStreams { limit }));
        let why = second.tell(Tally::Add(1)).unwrap_err().why;
        assert_eq!(why, Distance::TooManyStreams { limit });
    });
}

#[test]
fn a_full_actor_holds_up_no_other() {
    sim::explore(seeds(20), |_| async {
        let Pair {
            shop, desk, far, ..
        } = &pair().await;
        let stuck = async |cx: Context<Tally>| {
            std::future::pending::<()>().await;
            drop(cx);
        };
        let stuck = spawn!(stuck(_), capacity = 1);
        let _published = shop.publish("stuck", &stuck).unwrap();
        let full = desk.lookup::<Tally>("stuck").await.unwrap();
        let mut waiting = Box::pin(async {
            loop {
                full.send(Tally::Add(1)).await.unwrap();
            }
        });
        let other = async {
            for n in 0..2000 {
                far.send(Tally::Add(n)).await.unwrap();
            }
            far.ask(Tally::Total).await
        };
        match futures::future::select(&mut waiting, std::pin::pin!(other)).await {
            futures::future::Either::Right((total, _)) => assert_eq!(total, Ok(1_999_000)),
            futures::future::Either::Left((never, _)) => never,
        }
        stuck.kill();
    });
}

#[test]
fn a_sender_that_gives_up_lets_the_next_one_go() {
    sim::explore(seeds(50), |_| async {
        let net = net();
        let shop = node("shop", &net).await;
        let actor = spawn!(tally(_), capacity = 1);
        let _published = shop.publish("tally", &actor).unwrap();
        let desk = node("desk", &net).await;
        let far = desk.lookup::<Tally>("tally").await.unwrap();
        let sends = (0..40u64).map(|n| {
            let far = far.clone();
            async move {
                let patience = match n % 2 {
                    0 => Duration::from_secs(1000),
                    _ => Duration::from_micros(sim::random() % 20_000),
                };
                let sent = greenroom::time::timeout(patience, far.send(Tally::Add(n))).await;
                sent.is_ok_and(|sent| sent.is_ok()).then_some(n)
            }
        });
        let sent: Vec<u64> = join_all(sends).await.into_iter().flatten().collect();
        assert_eq!(far.ask(Tally::All).await.unwrap(), sent);
        assert!(sent.iter().filter(|n| *n % 2 == 0).count() == 20);
    });
}

#[test]
fn frames_that_come_late_keep_the_order() {
    sim::explore(seeds(20), |_| async {
        let Pair { net, far, .. } = &pair_in(SimNet::new()).await;
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
    sim::run(3, async {
        let net = net();
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
    sim::explore(seeds(20), |_| async {
        let Pair { net, desk, far, .. } = &pair().await;
        far.tell(Tally::Add(1)).unwrap();
        let again = Node::builder("shop").net(net).open().await.unwrap();
        let actor = spawn!(tally(_));
        let _published = again.publish("tally", &actor).unwrap();
        assert_eq!(far.ended().await, RemoteEnd::Lost);
        let new = desk.lookup::<Tally>("tally").await.unwrap();
        assert_ne!(new, *far);
        assert_eq!(new.ask(Tally::Total).await, Ok(0));
    });
}

#[test]
fn a_sender_with_a_smaller_limit_is_given_its_credit() {
    sim::explore(seeds(5), |_| async {
        let of_desk = Limits {
            bytes: 1000,
            ..Limits::default()
        };
        let Pair { far, .. } = &limited_pair(Limits::default(), of_desk).await;
        for n in 0..1000 {
            far.send(Tally::Add(n)).await.unwrap();
        }
        assert_eq!(far.ask(Tally::Total).await, Ok(499_500));
    });
}

#[test]
fn a_close_takes_at_most_a_second_with_a_dead_link() {
    sim::explore(seeds(5), |_| async {
        let Pair { net, desk, far, .. } = pair().await;
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
        let a = limited_node("a", &net, limits).await;
        let _b = node("b", &net).await;
        until(|| a.status().peers.len() == 1).await;
        let _c = node("c", &net).await;
        until(|| a.status().refused_links > 0).await;
        assert_eq!(a.status().peers[0].name, "b");
    });
}

//! What is promised of loss and back-pressure without any fault, over each net.

use std::time::Duration;

use futures::future::join_all;
use greenroom::{Context, sim, spawn};
use greenroom_cluster::{Distance, Limits, RemoteAskError};

use crate::nodes::{Pair, Tally, found, limited_pair, pair, tally, until};
use crate::support::everywhere;

#[test]
fn a_timeout_ends_an_ask_and_the_reply_is_not_wanted() {
    everywhere(|net| async move {
        let Pair { shop, far, .. } = &pair(&net).await;
        let patience = Duration::from_millis(100);
        let kept = far.ask(Tally::Keep).timeout(patience).await;
        assert_eq!(kept, Err(RemoteAskError::TimedOut));
        until(|| shop.status().peers[0].answering == 0).await;
    });
}

#[test]
fn at_most_the_capacity_of_a_bounded_actor_is_under_way() {
    everywhere(|net| async move {
        let shop = net.node("shop").await;
        let (go, wait) = futures::channel::oneshot::channel::<()>();
        let late = async |cx: Context<Tally>| {
            wait.await.unwrap();
            tally(cx).await
        };
        let actor = spawn!(late(_), capacity = 4);
        let _published = shop.publish("tally", &actor).unwrap();
        let desk = net.node("desk").await;
        let mut accepted = 0;
        // The mailbox takes 4, and 4 more are under way. A new address does not begin anew.
        while accepted < 8 {
            let far = found::<Tally>(&desk, "tally").await;
            if far.tell(Tally::Add(1)).is_ok() {
                accepted += 1;
            }
            drop(far);
            greenroom::time::sleep(Duration::from_millis(1)).await;
        }
        let far = found::<Tally>(&desk, "tally").await;
        until(|| actor.len() == 4).await;
        net.settle().await;
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
fn what_waits_for_room_when_its_sender_ends_is_not_handled() {
    everywhere(|net| async move {
        let shop = net.node("shop").await;
        let (go, wait) = futures::channel::oneshot::channel::<()>();
        let late = async |cx: Context<Tally>| {
            wait.await.unwrap();
            tally(cx).await
        };
        let actor = spawn!(late(_), capacity = 1);
        shop.publish("tally", &actor).unwrap().detach();
        let desk = net.node("desk").await;
        let old = found::<Tally>(&desk, "tally").await;
        // The mailbox takes the first one, and the second one waits at the other node.
        for n in 1..=2 {
            old.send(Tally::Add(n)).await.unwrap();
        }
        net.end(&desk).await;
        until(|| shop.status().peers.is_empty()).await;
        let desk = net.node("desk").await;
        let new = found::<Tally>(&desk, "tally").await;
        go.send(()).unwrap();
        new.send(Tally::Add(3)).await.unwrap();
        assert_eq!(new.ask(Tally::All).await, Ok(vec![1, 3]));
    });
}

#[test]
fn a_stream_ends_when_its_last_address_is_dropped_and_all_was_taken() {
    everywhere(|net| async move {
        let Pair {
            shop,
            actor: _actor,
            desk,
            far,
            ..
        } = pair(&net).await;
        for n in 0..10 {
            far.send(Tally::Add(n)).await.unwrap();
        }
        drop(far);
        until(|| desk.status().peers[0].outgoing == 0).await;
        until(|| shop.status().peers[0].incoming == 0).await;
        let far = found::<Tally>(&desk, "tally").await;
        assert_eq!(far.ask(Tally::Total).await, Ok(45));
        assert_eq!(desk.status().stray + shop.status().stray, 0);
    });
}

#[test]
fn an_actor_too_many_is_told_with_the_limit() {
    everywhere(|net| async move {
        let limits = Limits {
            streams: 1,
            ..Limits::default()
        };
        let Pair {
            shop, desk, far, ..
        } = &limited_pair(&net, limits, Limits::default()).await;
        assert_eq!(far.ask(Tally::Total).await, Ok(0));
        let other = spawn!(tally(_));
        let _published = shop.publish("other", &other).unwrap();
        let second = found::<Tally>(desk, "other").await;
        let limit = 1;
        let asked = second.ask(Tally::Total).await;
        assert_eq!(asked, Err(RemoteAskError::TooManyStreams { limit }));
        let why = second.tell(Tally::Add(1)).unwrap_err().why;
        assert_eq!(why, Distance::TooManyStreams { limit });
    });
}

#[test]
fn a_full_actor_holds_up_no_other() {
    everywhere(|net| async move {
        let Pair {
            shop, desk, far, ..
        } = &pair(&net).await;
        let stuck = async |cx: Context<Tally>| {
            std::future::pending::<()>().await;
            drop(cx);
        };
        let stuck = spawn!(stuck(_), capacity = 1);
        let _published = shop.publish("stuck", &stuck).unwrap();
        let full = found::<Tally>(desk, "stuck").await;
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
    everywhere(|net| async move {
        let shop = net.node("shop").await;
        let actor = spawn!(tally(_), capacity = 1);
        let _published = shop.publish("tally", &actor).unwrap();
        let desk = net.node("desk").await;
        let far = found::<Tally>(&desk, "tally").await;
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
fn a_sender_with_a_smaller_limit_is_given_its_credit() {
    everywhere(|net| async move {
        let of_desk = Limits {
            bytes: 1000,
            ..Limits::default()
        };
        let Pair { far, .. } = &limited_pair(&net, Limits::default(), of_desk).await;
        for n in 0..1000 {
            far.send(Tally::Add(n)).await.unwrap();
        }
        assert_eq!(far.ask(Tally::Total).await, Ok(499_500));
    });
}

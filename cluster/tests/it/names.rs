//! Names: who has them, when they come and go.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use futures::FutureExt;
use greenroom::{Context, RefusalKind, spawn};
use greenroom_cluster::{
    Distance, Limits, NameChange, Node, NotSent, PublishError, Published, Remote, RemoteAddress,
    RemoteAskError, RemoteEnd, RemoteLookupError,
};
use serde::{Deserialize, Serialize};

use crate::nodes::{Pair, Tally, found, pair, published, tally, until};
use crate::support::{Net, everywhere};

#[test]
fn all_holders_of_a_name_are_listed() {
    everywhere(|net| async move {
        let nodes = [
            net.node("a").await,
            net.node("b").await,
            net.node("c").await,
        ];
        let _published = nodes.each_ref().map(published);
        // A watch connects all nodes that hold names.
        let _watches = nodes.each_ref().map(|node| node.watch_names("tally"));
        for node in &nodes {
            until(|| node.all::<Tally>("tally").len() == 3).await;
            let all = node.all::<Tally>("tally");
            let mut names: Vec<&str> = all.iter().map(|far| far.node()).collect();
            assert_eq!(names[0], node.name());
            names.sort_unstable();
            assert_eq!(names, ["a", "b", "c"]);
        }
        for far in nodes[0].all::<Tally>("tally") {
            far.send(Tally::Stop).await.unwrap();
        }
    });
}

#[test]
fn lookups_of_two_names_in_turn_find_all_holders_of_both() {
    everywhere(|net| async move {
        let [a, b, c] = [
            net.node("a").await,
            net.node("b").await,
            net.node("c").await,
        ];
        let _watch = a.watch_names("");
        let actor = spawn!(tally(_));
        for name in ["one", "two"] {
            b.publish(name, &actor).unwrap().detach();
            c.publish(name, &actor).unwrap().detach();
            until(|| a.all::<Tally>(name).len() == 2).await;
        }
        let mut holders = BTreeSet::new();
        for _ in 0..100 {
            for name in ["one", "two"] {
                let far = found::<Tally>(&a, name).await;
                holders.insert((name, far.node().to_owned()));
            }
        }
        assert_eq!(holders.len(), 4, "{holders:?}");
    });
}

#[test]
fn an_actor_that_was_stopped_loses_its_name_at_the_next_message() {
    everywhere(|net| async move {
        let (shop, desk) = (net.node("shop").await, net.node("desk").await);
        let (_go, wait) = futures::channel::oneshot::channel::<()>();
        let busy = async |cx: Context<Tally>| {
            let _ = wait.await;
            drop(cx);
        };
        let actor = spawn!(busy(_));
        shop.publish("tally", &actor).unwrap().detach();
        let far = found::<Tally>(&desk, "tally").await;
        actor.stop();
        far.tell(Tally::Add(1)).unwrap();
        assert_eq!(far.ended().await, RemoteEnd::Ended);
        until(|| desk.all::<Tally>("tally").is_empty()).await;
    });
}

#[test]
fn a_watch_tells_what_comes_and_goes() {
    everywhere(|net| async move {
        let Pair {
            shop, desk, actor, ..
        } = pair(&net).await;
        let mut watch = desk.watch_names("tal");
        let change = |gone| {
            let (name, kind, node) = ("tally".into(), "tally/1".into(), "shop".into());
            match gone {
                false => NameChange::Come { name, kind, node },
                true => NameChange::Gone { name, kind, node },
            }
        };
        assert_eq!(watch.next().await, Some(change(false)));
        actor.stop();
        assert_eq!(watch.next().await, Some(change(true)));
        let other = published(&shop);
        let unseen = spawn!(tally(_));
        let _unseen = shop.publish("other", &unseen).unwrap();
        assert_eq!(watch.next().await, Some(change(false)));
        net.end(&shop).await;
        assert_eq!(watch.next().await, Some(change(true)));
        other.address().ended().await;
        desk.close().await;
        assert_eq!(watch.next().await, None);
    });
}

#[test]
fn a_dropped_guard_takes_the_name_and_not_the_actor() {
    everywhere(|net| async move {
        let (shop, desk) = (net.node("shop").await, net.node("desk").await);
        let published = published(&shop);
        let far = found::<Tally>(&desk, "tally").await;
        // Equal addresses have the same hash.
        let hasher = RandomState::new();
        let hashes = [&far, &published.address()].map(|far| hasher.hash_one(far));
        assert_eq!(hashes[0], hashes[1]);
        drop(published);
        until(|| desk.all::<Tally>("tally").is_empty()).await;
        assert_eq!(far.ask(Tally::Total).await, Ok(0));
        far.tell(Tally::Stop).unwrap();
        assert_eq!(far.ended().await, RemoteEnd::Ended);
    });
}

#[test]
fn a_name_keeps_no_actor_open() {
    everywhere(|net| async move {
        let (shop, desk) = (net.node("shop").await, net.node("desk").await);
        let actor = spawn!(tally(_));
        shop.publish("tally", &actor).unwrap().detach();
        let far = found::<Tally>(&desk, "tally").await;
        drop(actor);
        assert_eq!(far.ended().await, RemoteEnd::Ended);
        until(|| desk.all::<Tally>("tally").is_empty()).await;
    });
}

#[test]
fn a_lookup_waits_for_a_name() {
    everywhere(|net| async move {
        let desk = net.node("desk").await;
        let found = desk
            .lookup::<Tally>("tally")
            .timeout(Duration::from_secs(60));
        let later = async {
            net.settle().await;
            let shop = net.node("shop").await;
            let published = published(&shop);
            (shop, published)
        };
        let (far, _shop) = futures::join!(found.into_future(), later);
        far.unwrap().tell(Tally::Stop).unwrap();
    });
}

/// Another type under the same name.
#[derive(Serialize, Deserialize)]
struct Other;

impl Remote for Other {
    const KIND: &'static str = "other/7";
}

#[test]
fn another_kind_is_told_with_both_names() {
    everywhere(|net| async move {
        let Pair {
            desk, far, actor, ..
        } = &pair(&net).await;
        let wrong = desk.lookup::<Other>("tally").await.unwrap_err();
        let (ours, theirs) = ("other/7".to_owned(), "tally/1".to_owned());
        assert_eq!(wrong, RemoteLookupError::WrongKind { ours, theirs });
        assert!(desk.all::<Other>("tally").is_empty());
        actor.stop();
        far.ended().await;
    });
}

/// A message with an address, whose type the two sides may take for another one.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
struct Carry<M: Remote>(RemoteAddress<M>);

impl<M: Remote> Remote for Carry<M> {
    const KIND: &'static str = "carry/1";
}

/// Takes an address, and returns why it is of no use.
async fn tries(mut cx: Context<Carry<Tally>>) -> (RemoteAskError, NotSent<Tally>) {
    let Carry(far) = cx.recv().await.unwrap();
    let asked = far.ask(Tally::Total).await.unwrap_err();
    (asked, far.tell(Tally::Add(42)).unwrap_err())
}

#[test]
fn an_address_of_another_kind_handles_nothing_and_tells_both_kinds() {
    everywhere(|net| async move {
        let [shop, desk] = [net.node("shop").await, net.node("desk").await];
        let actor = spawn!(tries(_));
        let _published = shop.publish("tries", &actor).unwrap();
        let handle = async |mut cx: Context<Other>| cx.recv().await.is_some();
        let other = spawn!(handle(_));
        let own = desk.publish("other", &other).unwrap();
        let far = found::<Carry<Other>>(&desk, "tries").await;
        far.send(Carry(own.address())).await.unwrap();
        // An actor ends with its last address.
        let _open = actor.address();
        let (asked, sent) = actor.join().await.unwrap();
        let (ours, theirs) = ("tally/1".to_owned(), "other/7".to_owned());
        assert_eq!(sent.why, Distance::WrongKind { ours, theirs });
        assert_eq!(asked, sent.why.into());
        assert!(matches!(sent.message, Tally::Add(42)));
        other.stop();
        assert!(!other.join().await.unwrap());
    });
}

#[test]
fn an_unknown_name_tells_who_was_asked() {
    everywhere(|net| async move {
        let Pair { desk, .. } = &pair(&net).await;
        let unknown = desk.lookup::<Tally>("tilly");
        let unknown = unknown.timeout(Duration::from_millis(100)).await;
        let text = "no actor has the name \"tilly\": waited 100ms, connected with shop";
        assert_eq!(unknown.unwrap_err().to_string(), text);
    });
}

#[test]
fn a_name_that_cannot_be_published_is_refused_with_the_reason() {
    everywhere(|net| async move {
        let limits = Limits {
            names: 2,
            ..Limits::default()
        };
        let node = net.limited_node("a", limits).await;
        let actor = spawn!(tally(_));
        let _first = node.publish("first", &actor).unwrap();
        let refused = |name: &str| node.publish(name, &actor).unwrap_err();
        assert_eq!(refused("first"), PublishError::Taken("first".into()));
        let text = "x".repeat(256);
        let length = PublishError::Length {
            text: text.clone(),
            limit: 255,
        };
        assert_eq!(refused(&text), length);
        let _second = node.publish("second", &actor).unwrap();
        assert_eq!(refused("third"), PublishError::TooMany { limit: 2 });
        let ended = spawn!(tally(_));
        ended.kill();
        ended.closed().await;
        assert_eq!(
            node.publish("late", &ended).unwrap_err(),
            PublishError::Closed
        );
        let copy = node.clone();
        node.close().await;
        assert_eq!(
            copy.publish("late", &actor).unwrap_err(),
            PublishError::NodeClosed
        );
        let closed = copy.lookup::<Tally>("first").await.unwrap_err();
        assert_eq!(closed, RemoteLookupError::NodeClosed);
    });
}

#[test]
fn an_address_in_a_message_leads_to_a_third_node() {
    everywhere(|net| async move {
        let (nodes, [one, two]) = three(&net).await;
        let all = nodes[0].all::<Tally>("tally");
        let (b, c) = (&all[0], &all[1]);
        assert_eq!((b.node(), c.node()), ("b", "c"));
        c.send(Tally::Add(42)).await.unwrap();
        // Messages of two nodes have no order: this one is handled before that of b.
        assert_eq!(c.ask(Tally::Total).await, Ok(42));
        // Node b passes the reply on to c, whose answer comes back.
        assert_eq!(b.ask(|reply| Tally::Pass(c.clone(), reply)).await, Ok(42));
        net.end(&nodes[2]).await;
        c.ended().await;
        let lost = b.ask(|reply| Tally::Pass(c.clone(), reply)).await;
        assert!(
            matches!(
                lost,
                Err(RemoteAskError::NoReply(_) | RemoteAskError::Refused(_))
            ),
            "{lost:?}"
        );
        b.tell(Tally::Stop).unwrap();
        b.ended().await;
        assert!(two.address().ended().now_or_never().is_some());
        drop(one);
    });
}

/// Opens three nodes, of which the second and the third one have a counter.
async fn three(net: &Net) -> ([Node; 3], [Published<Tally>; 2]) {
    let nodes = [
        net.node("a").await,
        net.node("b").await,
        net.node("c").await,
    ];
    let _watch = nodes[0].watch_names("");
    let counters = [published(&nodes[1]), published(&nodes[2])];
    until(|| nodes[0].all::<Tally>("tally").len() == 2).await;
    (nodes, counters)
}

#[test]
fn a_reply_that_was_passed_on_tells_the_end_of_the_node_that_has_it() {
    everywhere(|net| async move {
        let (nodes, _counters) = three(&net).await;
        let [b, c] = nodes[0].all::<Tally>("tally").try_into().unwrap();
        let mut lent = b.ask(|reply| Tally::Lend(c.clone(), reply)).into_future();
        assert!((&mut lent).now_or_never().is_none());
        // The third node has the reply.
        let has = |node: &Node| node.status().peers.iter().any(|peer| peer.answering == 1);
        until(|| has(&nodes[2])).await;
        net.end(&nodes[2]).await;
        let Err(RemoteAskError::Refused(why)) = lent.await else {
            panic!("it was not refused");
        };
        let lost = RemoteAskError::Lost.to_string();
        assert_eq!(
            (why.kind(), why.explanation()),
            (RefusalKind::Unavailable, &*lost)
        );
        // The node that has passed it on is there.
        assert_eq!(b.ask(Tally::Total).await, Ok(0));
        b.tell(Tally::Stop).unwrap();
        c.ended().await;
    });
}

#[test]
fn a_reply_that_was_passed_on_is_lost_with_the_node_that_was_asked() {
    everywhere(|net| async move {
        let (nodes, _counters) = three(&net).await;
        let [b, c] = nodes[0].all::<Tally>("tally").try_into().unwrap();
        let mut lent = b.ask(|reply| Tally::Lend(c.clone(), reply)).into_future();
        assert!((&mut lent).now_or_never().is_none());
        let has = |node: &Node| node.status().peers.iter().any(|peer| peer.answering == 1);
        until(|| has(&nodes[2])).await;
        net.end(&nodes[1]).await;
        assert_eq!(lent.await, Err(RemoteAskError::Lost));
        assert_eq!(c.ask(Tally::Total).await, Ok(0));
        c.tell(Tally::Stop).unwrap();
    });
}

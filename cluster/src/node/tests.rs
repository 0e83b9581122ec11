//! What a node takes from peers that are not honest, without an engine.

use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use futures_lite::future::Boxed;

use super::NodeState;
use super::names::target;
use crate::engine::{LinkEngine, NodeEvent};
use crate::fuzzing::{Kept, Note};
use crate::link::frame::{ClusterMember, Hello, LENGTH, LinkFrame, Publication, Window};
use crate::link::{Link, lock};
use crate::{Limits, RemoteAddress, RemoteEnd};

/// An engine that runs nothing, and keeps its tasks and the nodes that it was given.
#[derive(Default)]
struct Still(Mutex<Vec<ClusterMember>>, Mutex<Vec<Boxed<()>>>);

impl LinkEngine for Still {
    fn spawn(&self, task: Boxed<()>) {
        lock(&self.1).push(task);
    }

    fn sleep(&self, _: Duration) -> Boxed<()> {
        Box::pin(std::future::pending())
    }

    fn note(&self, event: NodeEvent<'_>) -> bool {
        if let NodeEvent::Learnt { members, .. } = event {
            lock(&self.0).extend_from_slice(members);
        }
        false
    }

    fn problems(&self) -> Vec<String> {
        Vec::new()
    }

    fn stop(&self) -> Boxed<()> {
        Box::pin(std::future::ready(()))
    }
}

fn hello(name: &str, incarnation: u128, addresses: Vec<String>) -> Hello {
    let (lease, frame) = (5000, 4 << 10);
    let member = ClusterMember {
        name: name.into(),
        incarnation,
        addresses,
    };
    Hello {
        member,
        lease,
        frame,
        features: 0,
    }
}

fn node() -> (Arc<NodeState>, Arc<Still>) {
    let engine = Arc::new(Still::default());
    let state = NodeState::new(hello("a", 1, Vec::new()), Limits::default(), engine.clone());
    (state, engine)
}

/// Returns the publication of an actor that grants so many messages.
fn publication(messages: u32) -> Publication {
    let bytes = 1 << 10;
    Publication {
        actor: 3,
        name: "tally".into(),
        kind: "tally/1".into(),
        window: Window { messages, bytes },
    }
}

fn publish(link: &Arc<Link>, publication: Publication) {
    let frame = LinkFrame::Publish(publication).encode();
    link.frame(&frame[LENGTH..]).unwrap();
}

#[test]
fn addresses_that_fill_more_than_a_frame_are_refused() {
    let (state, engine) = node();
    let long = vec!["x".repeat(100); 50];
    let (small, wire) = (hello("b", 2, Vec::new()), Arc::new(Kept::default()));
    let link = state.up(small, wire.clone()).unwrap();
    let refused = state.up(hello("c", 3, long.clone()), Arc::new(Kept::default()));
    assert!(refused.is_err());
    let most = 4 << 10;
    assert!(lock(&wire.0).len() < most, "another peer takes so much");

    let members = [("d", long), ("e", vec!["e:1".into()])];
    let members = members.map(|(name, addresses)| hello(name, 4, addresses).member);
    let frame = LinkFrame::Members(members.to_vec()).encode();
    link.frame(&frame[LENGTH..]).unwrap();
    assert_eq!(lock(&engine.0)[..], members[1..]);
    state.shut();
}

#[test]
fn a_name_in_another_spelling_is_the_same_name() {
    let (state, _engine) = node();
    let up = |name, life| {
        let hello = hello(name, life, Vec::new());
        state.up(hello, Arc::new(Kept::default())).err()
    };
    assert_eq!(up("b", 2), None);
    let why = "the node is connected as \"b\"";
    assert_eq!(up("B.", 3).as_deref(), Some(why));
    let why = "another node has the name \"a\" as well";
    assert_eq!(up("A", 4).as_deref(), Some(why));
    assert_eq!(up("b", 5), None, "a new life of the same one");
    state.shut();
}

#[test]
fn a_peer_that_takes_the_number_of_another_life_keeps_that_node_out_of_nothing() {
    let (state, _engine) = node();
    let up = |name, life| {
        let hello = hello(name, life, Vec::new());
        state.up(hello, Arc::new(Kept::default()))
    };
    let [mallory, shop] = [up("mallory", 7).unwrap(), up("shop", 7).unwrap()];
    for link in [&mallory, &shop] {
        publish(link, publication(1));
    }
    let addresses = state
        .holders("tally")
        .into_iter()
        .map(|holder| state.stream_to(holder));
    let addresses: Vec<_> = addresses.collect();
    assert!(addresses.iter().all(|stream| stream.is_bound()));
    let [first, second] = addresses.try_into().ok().unwrap();
    let [first, second] = [
        RemoteAddress::<Note>::new(first),
        RemoteAddress::new(second),
    ];
    assert_eq!([first.node(), second.node()], ["mallory", "shop"]);
    assert_ne!(first, second);

    state.down(&mallory);
    assert_eq!(first.end_now(), Some(RemoteEnd::Lost));
    assert_eq!(second.end_now(), None);
    let holders = state.holders("tally");
    assert_eq!(holders.len(), 1);
    assert_eq!(&*holders[0].node, "shop");
    state.shut();
}

#[test]
fn a_third_node_does_not_decide_how_much_an_actor_grants() {
    let (state, _engine) = node();
    let shop = state
        .up(hello("shop", 7, Vec::new()), Arc::new(Kept::default()))
        .unwrap();
    publish(&shop, publication(2));
    // As it comes within a message.
    let named = target(&shop.peer.member, &publication(1000));
    let window = state.stream_to(named).target.window;
    assert_eq!(window, publication(2).window);
    state.shut();
}

#[test]
fn an_address_of_a_node_out_of_reach_leaves_nothing_when_it_is_dropped() {
    let (state, engine) = node();
    let member = hello("shop", 7, Vec::new()).member;
    let stream = state.stream_to(target(&member, &publication(1)));
    let mut task = lock(&engine.1).pop().unwrap();
    let mut context = Context::from_waker(Waker::noop());
    assert!(task.as_mut().poll(&mut context).is_pending());
    drop(stream);
    assert!(task.as_mut().poll(&mut context).is_ready());
    state.shut();
}

#[cfg(not(feature = "sockets"))]
#[test]
fn a_node_without_an_engine_does_not_open_and_names_the_features_that_have_one() {
    let opened = futures_lite::future::block_on(crate::Node::builder("shop").open());
    let error = opened.unwrap_err();
    assert!(matches!(error, crate::OpenError::NoEngine), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("`sockets`") && text.contains("`nats`"),
        "{text}"
    );
}

//! What a node takes from peers that are not honest, without an engine.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::State;
use crate::Limits;
use crate::engine::{Engine, Job};
use crate::fuzzing::Kept;
use crate::link::frame::{Frame, Hello, LENGTH, Member};
use crate::link::lock;

/// An engine that runs nothing, and remembers what it hears of other nodes.
#[derive(Default)]
struct Still(Mutex<Vec<Member>>);

impl Engine for Still {
    fn spawn(&self, _: Job) {}

    fn sleep(&self, _: Duration) -> Job {
        Box::pin(std::future::pending())
    }

    fn learnt(&self, members: &[Member]) {
        lock(&self.0).extend_from_slice(members);
    }

    fn left(&self, _: &str) {}

    fn lost(&self) {}

    fn problems(&self) -> Vec<String> {
        Vec::new()
    }

    fn stop(&self) {}

    fn stopped(&self) -> Job {
        Box::pin(std::future::ready(()))
    }
}

fn hello(name: &str, incarnation: u128, addresses: Vec<String>) -> Hello {
    let (lease, frame) = (5000, 4 << 10);
    let member = Member {
        name: name.into(),
        incarnation,
        addresses,
    };
    Hello {
        member,
        lease,
        frame,
    }
}

fn node() -> (Arc<State>, Arc<Still>) {
    let engine = Arc::new(Still::default());
    let state = State::new(hello("a", 1, Vec::new()), Limits::default(), engine.clone());
    (state, engine)
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
    let frame = Frame::Members(members.to_vec()).encode();
    link.frame(&frame[LENGTH..]).unwrap();
    assert_eq!(lock(&engine.0)[..], members[1..]);
    state.shut();
}

//! Two engines, between which a test carries the packets by hand.

use std::sync::Arc;

use super::packet::Packet;
use super::subject::{PacketSubject, Token};
use super::{BrokerEngine, BrokerEvent};
use crate::engine::{LinkEngine, NodeEvent, OpenNode, no_certificate};
use crate::fuzzing::Still;
use crate::limits::Limits;
use crate::link::LinkOwner;
use crate::link::frame::{ClusterMember, Hello, VERSION};
use crate::link::lock;
use crate::node::NodeState;

struct End {
    engine: Arc<BrokerEngine>,
    state: Arc<NodeState>,
    broker: Arc<Still>,
}

impl End {
    fn new(name: &str, incarnation: u128) -> End {
        let broker = Arc::<Still>::default();
        let engine = BrokerEngine::new(name, 4, broker.clone());
        let member = ClusterMember {
            name: name.into(),
            incarnation,
            addresses: Vec::new(),
        };
        let (lease, frame) = (5000, 1 << 20);
        let hello = Hello {
            member,
            lease,
            frame,
            features: 0,
        };
        let carrier: Arc<dyn LinkEngine> = Arc::new(engine.clone());
        let state = NodeState::new(hello, Limits::default(), carrier);
        engine.start(&state);
        // What is for another node of its name.
        assert_eq!(engine.take_posts().len(), 1);
        End {
            engine,
            state,
            broker,
        }
    }

    fn pair() -> [End; 2] {
        [End::new("a", 1), End::new("b", 2)]
    }

    /// Takes what this end publishes now.
    fn posts(&self) -> Vec<(String, Vec<u8>)> {
        self.engine.take_posts()
    }

    fn take(&self, posts: Vec<(String, Vec<u8>)>) {
        for (subject, packet) in posts {
            self.engine.arrived(&subject, &packet);
        }
    }

    fn is_up(&self, peer: &str) -> bool {
        self.state.link_to(peer).is_some()
    }

    /// Takes a packet as if another node had published it.
    fn take_from(&self, name: &str, packet: &Packet) {
        let (to, from) = (
            &Token::new(&self.state.hello.member.name),
            &Token::new(name),
        );
        let subject = PacketSubject::To { to, from }.text();
        self.engine.arrived(&subject, &packet.encode(0));
    }
}

/// Carries all packets both ways until there are no more.
fn carry([a, b]: &[End; 2]) {
    loop {
        let (of_a, of_b) = (a.posts(), b.posts());
        if of_a.is_empty() && of_b.is_empty() {
            return;
        }
        b.take(of_a);
        a.take(of_b);
    }
}

#[test]
#[cfg(feature = "nats")]
fn a_subscription_has_room_for_81_920_batches_of_64_peers() {
    // The bare clients of `cluster/bench` have as much.
    assert_eq!(super::most_batches(Limits::default().peers), 81_920);
}

#[test]
fn nodes_that_greet_each_other_at_the_same_time_have_one_link() {
    let ends = End::pair();
    ends[0].engine.note(NodeEvent::Wanted("b"));
    ends[1].engine.note(NodeEvent::Wanted("a"));
    carry(&ends);
    assert!(ends[0].is_up("b") && ends[1].is_up("a"));
    let links = ends.each_ref().map(|end| end.state.counts().links.get());
    assert_eq!(links, [1, 1]);
    // It carries something.
    carry(&ends);
    assert!(ends[0].is_up("b") && ends[1].is_up("a"));
}

#[test]
fn a_welcome_that_is_lost_comes_again() {
    let ends = End::pair();
    ends[0].engine.note(NodeEvent::Wanted("b"));
    ends[1].take(ends[0].posts());
    let lost = ends[1].posts();
    assert!(ends[1].is_up("a") && !ends[0].is_up("b") && !lost.is_empty());
    ends[0].engine.tick_links();
    carry(&ends);
    assert!(ends[0].is_up("b") && ends[1].is_up("a"));
}

#[test]
fn a_node_that_does_not_answer_is_given_up_with_a_reason() {
    let [a, _] = &End::pair();
    a.engine.note(NodeEvent::Wanted("b"));
    for _ in 0..100 {
        a.engine.tick_links();
    }
    assert!(!lock(&a.engine.links).has_work());
    assert_eq!(a.engine.problems(), ["b: no answer within 3s"]);
    // A hello for each power of two of the ticks.
    assert_eq!(a.posts().len(), 1 + 5);
}

/// Makes packets those of a node with the next version.
fn of_next_version(mut posts: Vec<(String, Vec<u8>)>) -> Vec<(String, Vec<u8>)> {
    for (_, packet) in &mut posts {
        packet[..2].copy_from_slice(&(VERSION + 1).to_le_bytes());
    }
    posts
}

/// Returns what a node says of the next version.
fn next_version_text() -> String {
    let next = VERSION + 1;
    format!("the versions differ: ours is {VERSION}, theirs is {next}")
}

#[test]
fn a_node_of_another_version_is_refused_at_both_ends() {
    let [a, b] = &End::pair();
    a.engine.note(NodeEvent::Wanted("b"));
    b.take(of_next_version(a.posts()));
    let why = next_version_text();
    assert_eq!(b.state.refusal(), Some(why.clone()));
    assert_eq!(b.engine.problems(), [format!("a: {why}")]);
    a.take(of_next_version(b.posts()));
    assert_eq!(a.engine.problems(), [format!("b: {why}")]);
    assert!(!lock(&a.engine.links).has_work());
    // Neither goes on about it.
    assert!(a.posts().is_empty() && b.posts().is_empty());
}

#[test]
fn a_question_of_another_version_is_answered_with_that_of_the_node() {
    let [a, b] = &End::pair();
    let (name, kind) = ("tally", "tally/1");
    a.engine.note(NodeEvent::Sought { name, kind });
    b.take(of_next_version(a.posts()));
    a.take(of_next_version(b.posts()));
    let why = next_version_text();
    assert_eq!(a.engine.problems(), [format!("b: {why}")]);
    assert!(a.posts().is_empty() && b.posts().is_empty());
}

#[test]
fn what_a_server_says_under_the_subject_of_a_node_is_no_word_of_that_node() {
    let ends = End::pair();
    ends[0].engine.note(NodeEvent::Wanted("b"));
    let [a, _] = &ends;
    for subject in ["gr.to.a.b", "gr.find.tally.b"] {
        let text = br#"{"server":{"name":"nats"},"data":{"user":"stranger"}}"#;
        a.engine.arrived(subject, text);
    }
    assert_eq!(a.engine.problems(), [""; 0]);
    assert_eq!(a.state.counts().malformed.get(), 0);
    // The greeting goes on.
    carry(&ends);
    assert!(ends[0].is_up("b") && ends[1].is_up("a"));
}

#[test]
fn a_node_that_takes_another_name_in_its_hello_is_refused() {
    let [a, b] = &End::pair();
    a.engine.note(NodeEvent::Wanted("b"));
    let hello = Packet::decode(&a.posts()[0].1).unwrap().0;
    b.take_from("liar", &hello);
    assert!(
        b.state
            .refusal()
            .unwrap()
            .contains("\"liar\" says that its name is \"a\"")
    );
    assert!(!b.is_up("a") && !b.is_up("liar"));
}

#[test]
fn an_end_that_has_lost_the_link_has_the_other_one_lose_it() {
    let ends = End::pair();
    ends[0].engine.note(NodeEvent::Wanted("b"));
    carry(&ends);
    ends[0].engine.event(BrokerEvent::Dropped);
    assert!(!ends[0].is_up("b") && ends[1].is_up("a"));
    carry(&ends);
    assert!(!ends[1].is_up("a"));
    assert_eq!(ends[1].state.counts().lost_links.get(), 1);
}

#[test]
fn a_connection_that_has_ended_ends_the_link_of_its_node_and_no_other() {
    let ends = End::pair();
    ends[0].engine.note(NodeEvent::Wanted("b"));
    carry(&ends);
    ends[0].engine.event(BrokerEvent::Gone("server/2".into()));
    ends[0].engine.event(BrokerEvent::Gone(String::new()));
    assert!(ends[0].is_up("b"));
    ends[0].engine.event(BrokerEvent::Gone("server/1".into()));
    assert!(!ends[0].is_up("b"));
}

#[test]
fn packets_of_nobody_are_dropped() {
    let [a, _] = &End::pair();
    a.engine
        .arrived("gr.to.a.=4", &Packet::Cut { epoch: 1 }.encode(0));
    assert!(a.posts().is_empty() && a.engine.problems().is_empty());
    assert_eq!(a.state.counts().malformed.get(), 0);
}

#[test]
fn a_node_that_receives_what_it_has_not_published_says_that_another_has_its_name() {
    let [a, _] = &End::pair();
    let twin = End::new("a", 3);
    let start = Packet::Cut { epoch: 0 };
    a.take_from("a", &start);
    let why = "another node of this name is at the broker";
    assert_eq!(a.engine.problems(), [format!("a: {why}")]);
    assert_eq!(a.state.refusal().as_deref(), Some(why));
    assert!(a.posts().is_empty() && twin.posts().is_empty());
}

#[test]
fn numbers_that_were_lost_are_said_again_when_the_other_end_asks() {
    let ends = End::pair();
    ends[0].engine.note(NodeEvent::Wanted("b"));
    carry(&ends);
    let frame = crate::link::frame::LinkFrame::Ping.encode();
    let link = ends[0].state.link_to("b").unwrap();
    link.push(&frame);
    ends[1].take(ends[0].posts());
    ends[1].engine.tick_links();
    assert!(
        !ends[1].posts().is_empty(),
        "the acknowledgement, which is lost"
    );
    assert!(link.status().backlog > 0);
    ends[0].engine.tick_links();
    carry(&ends);
    assert_eq!(link.status().backlog, 0);
}

#[test]
fn a_link_that_is_cut_for_its_backlog_is_down() {
    let ends = End::pair();
    ends[0].engine.note(NodeEvent::Wanted("b"));
    carry(&ends);
    let link = ends[0].state.link_to("b").unwrap();
    let frame = vec![0; 24 << 20];
    (0..4).for_each(|_| link.push(&frame));
    let ended = async {
        while ends[0].is_up("b") {
            futures_lite::future::yield_now().await;
        }
    };
    futures_lite::future::block_on(futures_lite::future::or(ended, ends[0].engine.run()));
    assert_eq!(ends[0].state.counts().lost_links.get(), 1);
}

#[test]
fn a_name_that_was_given_and_taken_in_any_order_is_answered_as_it_is_now() {
    let [a, _] = &End::pair();
    let (desk, _, _) = crate::fuzzing::Desk::link();
    let (number, _) = a.state.publish("tally", desk.clone()).unwrap();
    assert!(!a.posts().is_empty());
    a.state.withdraw(number);
    a.state.publish("tally", desk).unwrap();
    // The word of the first end comes late.
    a.engine.note(NodeEvent::Named("tally"));
    a.posts();
    let name = "tally".into();
    a.take_from("b", &Packet::Find { name });
    assert_eq!(a.posts().len(), 1);
    assert!(a.broker.has("gr.find.tally.*"));
}

#[test]
fn a_node_whose_open_was_dropped_is_closed() {
    let [a, _] = &End::pair();
    drop(OpenNode {
        state: a.state.clone(),
        addresses: Vec::new(),
        renew: no_certificate(),
    });
    assert!(a.state.peers().is_closed && a.engine.tasks.stop.is_stopped());
}

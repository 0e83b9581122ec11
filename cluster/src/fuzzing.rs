//! What is done with frames and packets of any peer, without sockets or a broker: for the fuzzers,
//! and for their corpora.
//!
//! Each function panics if something is wrong.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures_lite::future::{Boxed, block_on, pending, ready};
use greenroom::Reply;
use serde::{Deserialize, Serialize};

use crate::counts::NodeCounts;
use crate::engine::LinkEngine;
use crate::engine::broker::{Broker, BrokerEngine, is_packet};
use crate::limits::Limits;
use crate::link::frame::{ClusterMember, Hello, LENGTH, LinkFrame, Publication, Window, first};
use crate::link::{
    ActorInbox, Delivered, Link, LinkOwner, LinkWire, Outgoing, OutgoingHandle, Target, decode,
    lock,
};
use crate::node::NodeState;

/// The largest frame here.
pub(crate) const FRAME: usize = 4096;

/// The number of the first actor.
pub(crate) const ACTOR: u64 = 7;

/// A message with all that is special.
#[derive(Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) text: String,
    #[serde(with = "crate::reply")]
    pub(crate) reply: Reply<String>,
}

/// A node with five actors, which are full for some messages and close at others.
pub(crate) struct Desk {
    limits: Limits,
    pub(crate) counts: NodeCounts,
    pub(crate) taken: Mutex<Vec<Note>>,
    pub(crate) tasks: Mutex<Vec<Boxed<()>>>,
    this: Weak<Desk>,
}

/// A wire that keeps what is pushed, with a backlog that a test can set.
#[derive(Default)]
pub(crate) struct Kept(pub(crate) Mutex<Vec<u8>>, pub(crate) AtomicUsize);

impl LinkWire for Kept {
    fn push(&self, frame: &[u8], _: bool) {
        lock(&self.0).extend_from_slice(frame);
    }

    fn backlog(&self) -> usize {
        self.1.load(Ordering::Relaxed)
    }

    fn cut(&self) {}
}

/// A broker that carries nothing.
#[derive(Default)]
pub(crate) struct Still {
    patterns: Mutex<Vec<String>>,
}

#[cfg(test)]
impl Still {
    /// Returns whether something is received under this pattern.
    pub(crate) fn has(&self, pattern: &str) -> bool {
        lock(&self.patterns).iter().any(|other| other == pattern)
    }
}

impl Broker for Still {
    fn publish(&self, _: String, _: Vec<u8>) -> Boxed<()> {
        Box::pin(ready(()))
    }

    fn take_turn(&self) -> Boxed<()> {
        Box::pin(ready(()))
    }

    fn subscribe(&self, pattern: String) {
        lock(&self.patterns).push(pattern);
    }

    fn unsubscribe(&self, pattern: &str) {
        lock(&self.patterns).retain(|other| other != pattern);
    }

    fn max_payload(&self) -> usize {
        8 << 10
    }

    fn connection(&self) -> String {
        "server/1".into()
    }

    fn sleep(&self, _: Duration) -> Boxed<()> {
        Box::pin(pending())
    }

    fn close(&self) -> Boxed<()> {
        Box::pin(ready(()))
    }
}

impl Desk {
    pub(crate) fn link() -> (Arc<Desk>, Arc<Link>, Arc<Kept>) {
        let desk = Arc::new_cyclic(|this| Desk {
            limits: Limits {
                frame: FRAME,
                streams: 4,
                messages: 8,
                ..Limits::default()
            },
            counts: NodeCounts::default(),
            taken: Mutex::default(),
            tasks: Mutex::default(),
            this: this.clone(),
        });
        let wire = Arc::new(Kept::default());
        let link = Link::new(hello("peer"), desk.clone(), wire.clone());
        (desk, link, wire)
    }
}

/// Returns the hello of a node.
fn hello(name: &str) -> Hello {
    let member = ClusterMember {
        name: name.into(),
        incarnation: 1,
        addresses: Vec::new(),
    };
    Hello {
        member,
        lease: 5000,
        frame: FRAME as u32,
        features: 0,
    }
}

impl ActorInbox for Desk {
    fn deliver(&self, link: &Arc<Link>, bytes: &[u8], _: Option<&str>) -> Delivered {
        let note = match decode::<Note>(link, bytes) {
            Ok(note) => note,
            Err(why) => return Delivered::Undecodable(why),
        };
        match &*note.text {
            "full" => Delivered::Full(Box::pin(std::future::pending())),
            "closed" => Delivered::Closed(Box::new(note)),
            "answer" => {
                note.reply.send("answer".into());
                Delivered::Taken
            }
            _ => {
                lock(&self.taken).push(note);
                Delivered::Taken
            }
        }
    }

    fn kind(&self) -> &'static str {
        "note/1"
    }

    fn window(&self) -> Window {
        Window {
            messages: 8,
            bytes: 1 << 16,
        }
    }
}

impl LinkOwner for Desk {
    fn inbox(&self, actor: u64) -> Option<Arc<dyn ActorInbox>> {
        let this: Arc<dyn ActorInbox> = self.this.upgrade()?;
        (ACTOR..ACTOR + 5).contains(&actor).then_some(this)
    }

    fn closed(&self, _: u64) {}

    fn peer_published(&self, _: &Arc<Link>, _: Publication) {}

    fn peer_withdrew(&self, _: &Arc<Link>, _: u64) {}

    fn peer_named(&self, _: &Arc<Link>, _: Vec<ClusterMember>) {}

    fn peer_closed(&self, _: &Arc<Link>) {}

    fn peer_is_done(&self, link: &Arc<Link>) {
        if link.set_ending() {
            link.down();
        }
    }

    fn peer_goes_on(&self, link: &Arc<Link>) {
        link.go_on();
    }

    fn outgoing(&self, target: Target) -> OutgoingHandle {
        let this: Weak<dyn LinkOwner> = self.this.clone();
        Outgoing::open(target, 1 << 16, this)
    }

    fn forget_target(&self, _: &Target) {}

    /// Keeps the task and does not run it.
    fn spawn(&self, task: Boxed<()>) {
        lock(&self.tasks).push(task);
    }

    fn has_traces(&self) -> bool {
        true
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn counts(&self) -> &NodeCounts {
        &self.counts
    }
}

/// Takes frames from a peer until one is malformed, and ends the link. What goes out is frames, and
/// not more of them than came in. Nothing keeps the link then.
pub fn frames(bytes: &[u8]) {
    let (desk, link, wire) = Desk::link();
    let mut came = 0;
    let mut rest = bytes;
    while let Ok(Some(frame)) = first(rest, FRAME) {
        came += 1;
        if link.frame(frame).is_err() {
            break;
        }
        rest = &rest[LENGTH + frame.len()..];
    }
    let out = lock(&wire.0).clone();
    let mut rest = &out[..];
    let mut went = 0;
    while let Some(frame) = first(rest, 2 * FRAME).expect("a frame that goes out is not too large")
    {
        went += 1;
        LinkFrame::decode(frame).expect("a frame that goes out can be decoded");
        rest = &rest[LENGTH + frame.len()..];
    }
    assert!(rest.is_empty());
    // A message may be answered, end its stream and give credit.
    assert!(went <= 3 * came, "{went} frames for {came}");
    link.down();
    assert!(link.frame(&[0]).is_err() || link.status().incoming == 0);
    lock(&desk.tasks).clear();
    let uses = Arc::strong_count(&link);
    assert_eq!(uses, 1, "the replies that are kept have no link any more");
}

/// The subjects of packets: those of a node with a link, and of one without.
const SUBJECTS: [&str; 8] = [
    "gr.to.desk.peer",
    "gr.find.tally.peer",
    "gr.names.peer",
    "gr.watch.peer",
    "gr.to.desk.other",
    "gr.find.tally.other",
    "gr.names.other",
    "gr.watch.other",
];

/// Takes packets of two nodes, each a byte for its subject, one for its length, and that many bytes.
/// What is published is packets, and not many more of them than came in.
pub fn packets(bytes: &[u8]) {
    let engine = BrokerEngine::new("desk", 2, Arc::new(Still::default()));
    let carrier: Arc<dyn LinkEngine> = Arc::new(engine.clone());
    let state = NodeState::new(hello("desk"), Limits::default(), carrier);
    engine.start(&state);
    engine.take_hello(hello("peer"), 1);
    let mut came = 1;
    let mut rest = bytes;
    while let [subject, length, after @ ..] = rest {
        let (packet, after) = after.split_at(after.len().min(usize::from(*length)));
        let subject = SUBJECTS[usize::from(*subject) % SUBJECTS.len()];
        engine.arrived(subject, packet);
        came += 1;
        rest = after;
    }
    let posts = engine.take_posts();
    for (subject, packet) in &posts {
        assert!(subject.ends_with(".desk"), "{subject}");
        assert!(is_packet(packet), "a packet that goes out can be decoded");
    }
    assert!(posts.len() <= 4 * came, "{} for {came}", posts.len());
    assert!(state.counts().links.get() <= came as u64);
    state.shut();
    // The tasks hold the engine until they have ended.
    block_on(engine.run());
    let left = Arc::downgrade(&engine);
    drop((engine, state));
    assert!(
        left.upgrade().is_none(),
        "links that are down hold the engine"
    );
}

#[cfg(test)]
mod tests {
    use std::fs;

    /// Runs all that a fuzzer has kept.
    fn run_corpus(target: &str, run: fn(&[u8])) {
        let folder = format!("{}/fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
        let mut files = 0;
        for file in fs::read_dir(folder).unwrap() {
            run(&fs::read(file.unwrap().path()).unwrap());
            files += 1;
        }
        assert!(files > 0);
    }

    #[test]
    fn frames_that_fuzzing_has_found_are_handled() {
        run_corpus("frames", super::frames);
    }

    #[test]
    fn packets_that_fuzzing_has_found_are_handled() {
        run_corpus("packets", super::packets);
    }
}

//! What is done with frames of any peer, without sockets: for the fuzzer, and for its corpus.
//!
//! Each function panics if something is wrong.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use futures_lite::future::Boxed;
use greenroom::Reply;
use serde::{Deserialize, Serialize};

use crate::counts::NodeCounts;
use crate::limits::Limits;
use crate::link::frame::{ClusterMember, Hello, LENGTH, LinkFrame, Publication, Window, first};
use crate::link::{
    ActorInbox, Delivered, Link, LinkOwner, LinkWire, Outgoing, OutgoingHandle, Target, decode,
    lock,
};

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
        let member = ClusterMember {
            name: "peer".into(),
            incarnation: 1,
            addresses: Vec::new(),
        };
        let hello = Hello {
            member,
            lease: 5000,
            frame: FRAME as u32,
        };
        let wire = Arc::new(Kept::default());
        let link = Link::new(hello, desk.clone(), wire.clone());
        (desk, link, wire)
    }
}

impl ActorInbox for Desk {
    fn deliver(&self, link: &Arc<Link>, bytes: &[u8]) -> Delivered {
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

    fn outgoing(&self, target: Target) -> OutgoingHandle {
        let this: Weak<dyn LinkOwner> = self.this.clone();
        Outgoing::open(target, 1 << 16, this)
    }

    fn forget_target(&self, _: &Target) {}

    /// Keeps the task and does not run it.
    fn spawn(&self, task: Boxed<()>) {
        lock(&self.tasks).push(task);
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

#[cfg(test)]
mod tests {
    use std::fs;

    #[test]
    fn what_fuzzing_has_found_is_handled() {
        let folder = format!("{}/fuzz/corpus/frames", env!("CARGO_MANIFEST_DIR"));
        let mut files = 0;
        for file in fs::read_dir(folder).unwrap() {
            super::frames(&fs::read(file.unwrap().path()).unwrap());
            files += 1;
        }
        assert!(files > 0);
    }
}

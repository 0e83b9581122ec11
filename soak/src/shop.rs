//! The process `shop`: a node with a published actor, which is killed and started again.
//!
//! The actor checks what it is promised of the notes of a session: they come in order, each once, and
//! none is missing between two of them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use greenroom::{Context, Reply, spawn};
use greenroom_cluster::{Nats, Node, NodeBuilder, OpenError, Remote};
use serde::{Deserialize, Serialize};

use crate::report::Tallies;
use crate::{certificates, life};

/// The name of the published actor.
pub const NAME: &str = "notes";

/// The names of the nodes, for their certificate.
pub const NODES: [&str; 2] = ["shop", "desk"];

/// A node that is silent for one and a half of this is lost, as one is that was stopped.
const LEASE: Duration = Duration::from_secs(1);

const LOOK: Duration = Duration::from_millis(50);

/// More sessions than are open. Those that were lost stay behind.
const SESSIONS: usize = 100;

static HANDLED: AtomicU64 = AtomicU64::new(0);
static MISSING: AtomicU64 = AtomicU64::new(0);

/// A note of a session, with its number there, counted from 0.
#[derive(Serialize, Deserialize)]
pub enum SessionNote {
    Told(u64, u64),
    /// The answer is how many notes of the session were handled.
    Asked(
        u64,
        u64,
        #[serde(with = "greenroom_cluster::reply")] Reply<u64>,
    ),
}

impl Remote for SessionNote {
    const KIND: &'static str = "session note/1";
}

async fn notes(mut cx: Context<SessionNote>) {
    let mut sessions: BTreeMap<u64, u64> = BTreeMap::new();
    while let Some(note) = cx.recv().await {
        let (session, number, reply) = match note {
            SessionNote::Told(session, number) => (session, number, None),
            SessionNote::Asked(session, number, reply) => (session, number, Some(reply)),
        };
        let handled = sessions.entry(session).or_default();
        if *handled != number {
            MISSING.fetch_add(1, Ordering::Relaxed);
        }
        *handled = number + 1;
        HANDLED.fetch_add(1, Ordering::Relaxed);
        if let Some(reply) = reply {
            reply.send(*handled);
        }
        // The oldest one is that with the smallest number.
        if sessions.len() > SESSIONS {
            sessions.pop_first();
        }
    }
}

/// Returns a node of this name, at sockets or at the NATS server there.
pub fn builder(name: &str, engine: &str, at: &str, folder: &str) -> NodeBuilder {
    let builder = Node::builder(name).lease(LEASE);
    if engine == "nats" {
        return builder.nats(Nats::servers([at]).insecure());
    }
    let [certificate, key, authority] = certificates::files(folder.as_ref());
    builder.identity(certificate, key, authority)
}

/// Opens a node. A server that is stopped, or a busy machine, lets it be tried again.
pub async fn open(builder: NodeBuilder) -> Node {
    loop {
        match builder.clone().open().await {
            Err(OpenError::Server(_)) => greenroom::time::sleep(LOOK).await,
            opened => return opened.expect("the options are right, and the address is free"),
        }
    }
}

/// Runs to the order to end.
pub fn live(engine: &str, at: &str, folder: &str) {
    let mut builder = builder(NODES[0], engine, at, folder);
    if engine != "nats" {
        builder = builder.listen_address(at);
    }
    greenroom::run(async {
        let node = open(builder).await;
        let actor = spawn!(notes(_));
        let published = node.publish(NAME, &actor).expect("the name is free");
        life::begin(tallies);
        while !life::ends() {
            greenroom::time::sleep(LOOK).await;
        }
        drop(published);
        node.close().await;
    });
    let sentences = match MISSING.load(Ordering::Relaxed) {
        0 => Vec::new(),
        missing => vec![format!("shop: {missing} notes were out of order")],
    };
    life::end(sentences);
}

fn tallies() -> Tallies {
    let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
    Tallies::from([
        ("handled".to_owned(), get(&HANDLED)),
        ("out of order".to_owned(), get(&MISSING)),
    ])
}

//! The actor of the nodes: it handles numbered notes, and reports what it has handled.

use greenroom::{Context, Reply};
use greenroom_cluster::{Remote, RemoteAddress};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub enum Note {
    /// A note with the number of its session and its own.
    Told(u64, u64),
    /// A note that is answered.
    Asked(
        u64,
        u64,
        #[serde(with = "greenroom_cluster::reply")] Reply<u64>,
    ),
    /// Keeps the reply as long as it is wanted.
    Keep(#[serde(with = "greenroom_cluster::reply")] Reply<u64>),
    /// How many replies are kept.
    Kept(#[serde(with = "greenroom_cluster::reply")] Reply<usize>),
    /// The id of the process.
    Life(#[serde(with = "greenroom_cluster::reply")] Reply<u32>),
    /// The same bytes.
    Echo(
        Vec<u8>,
        #[serde(with = "greenroom_cluster::reply")] Reply<Vec<u8>>,
    ),
    /// Passes the question for the life on.
    Pass(
        RemoteAddress<Note>,
        #[serde(with = "greenroom_cluster::reply")] Reply<u32>,
    ),
}

impl Remote for Note {
    const KIND: &'static str = "note/1";
}

/// Handles notes until the last address is dropped. `tell` receives the numbers of each note.
pub async fn notes(mut cx: Context<Note>, tell: impl Fn(u64, u64) + Send + 'static) {
    let mut kept: Vec<Reply<u64>> = Vec::new();
    while let Some(note) = cx.recv().await {
        match note {
            Note::Told(session, number) => tell(session, number),
            Note::Asked(session, number, reply) => {
                tell(session, number);
                reply.send(number);
            }
            Note::Keep(reply) => kept.push(reply),
            Note::Kept(reply) => {
                kept.retain(Reply::is_wanted);
                reply.send(kept.len());
            }
            Note::Life(reply) => reply.send(std::process::id()),
            Note::Echo(bytes, reply) => reply.send(bytes),
            // If it is not sent, its reply is dropped.
            Note::Pass(to, reply) => drop(to.tell(Note::Life(reply))),
        }
    }
}

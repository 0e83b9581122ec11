//! The numbered messages of the model: two kinds.

use greenroom::Reply;
use greenroom_cluster::{Remote, RemoteAddress};
use serde::{Deserialize, Serialize};

/// The way on which a message goes, and its number, which no other message has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Id {
    pub way: u64,
    pub number: u64,
}

/// The messages of a recorder.
#[derive(Serialize, Deserialize)]
pub enum Note {
    Told(Id),
    Asked(Id, #[serde(with = "greenroom_cluster::reply")] Reply<u64>),
    /// Asks a clerk to answer instead.
    Passed(
        Id,
        RemoteAddress<Slip>,
        #[serde(with = "greenroom_cluster::reply")] Reply<u64>,
    ),
    /// Asks for notes to another recorder.
    Lent(Id, RemoteAddress<Note>),
}

/// The messages of a clerk.
#[derive(Serialize, Deserialize)]
pub enum Slip {
    Told(Id),
    Asked(Id, #[serde(with = "greenroom_cluster::reply")] Reply<u64>),
    /// The second number is that of the question that a recorder was asked.
    Passed(
        Id,
        u64,
        #[serde(with = "greenroom_cluster::reply")] Reply<u64>,
    ),
}

impl Remote for Note {
    const KIND: &'static str = "note/1";
}

impl Remote for Slip {
    const KIND: &'static str = "slip/1";
}

/// What both kinds have.
pub trait Numbered: Remote {
    /// The name of their actors.
    const NAME: &'static str;

    fn told(id: Id) -> Self;

    fn asked(id: Id, reply: Reply<u64>) -> Self;
}

impl Numbered for Note {
    const NAME: &'static str = "notes";

    fn told(id: Id) -> Self {
        Note::Told(id)
    }

    fn asked(id: Id, reply: Reply<u64>) -> Self {
        Note::Asked(id, reply)
    }
}

impl Numbered for Slip {
    const NAME: &'static str = "slips";

    fn told(id: Id) -> Self {
        Slip::Told(id)
    }

    fn asked(id: Id, reply: Reply<u64>) -> Self {
        Slip::Asked(id, reply)
    }
}

//! What an engine is asked to do, and what it answers.
//!
//! A command is one transaction, or a part of one. A command that cannot be done yet waits in the
//! engine for its topic.

use super::tx::WakeTopic;
use crate::error::StoreProblem;

/// How long the outcome of a cancelled job is kept: a day, in milliseconds.
pub(crate) const WINDOW: i64 = 86_400_000;

#[derive(Debug, Clone)]
pub(crate) enum Command {
    /// Finds a queue and a kind, or creates them.
    OpenQueue {
        name: String,
        kind: &'static str,
    },
    Put(NewJob),
    Take(TakeJob),
    Finish {
        seq: i64,
        token: i64,
        ending: JobEnding,
    },
    RenewJob {
        seq: i64,
        token: i64,
        lease: i64,
    },
    Progress {
        seq: i64,
        token: i64,
        progress: Vec<u8>,
    },
    WatchCancel {
        seq: i64,
        token: i64,
    },
    Cancel {
        queue: i64,
        id: String,
    },
    Outcome {
        queue: i64,
        id: String,
    },
    Pause {
        queue: i64,
        is_paused: bool,
    },
    Drain {
        queue: i64,
    },
    Statuses {
        name: Option<String>,
    },
    DeadJobs {
        name: String,
        after: i64,
        most: usize,
    },
    Requeue {
        name: String,
        seq: i64,
    },
    Discard {
        name: String,
        seq: i64,
    },
    OpenStream {
        name: String,
        key: String,
    },
    ReadEvents {
        stream: i64,
        after: i64,
        chain: i64,
        most: usize,
    },
    Append(Append),
    Save {
        stream: i64,
        token: i64,
        position: i64,
        kind: &'static str,
        payload: Vec<u8>,
    },
    /// Times of leases are in milliseconds.
    Hold {
        name: String,
        time: i64,
    },
    RenewLease {
        name: String,
        token: i64,
        time: i64,
    },
    EndLease {
        name: String,
        token: i64,
    },
}

impl Command {
    /// Returns whether it may have to wait for something.
    pub(crate) fn waits(&self) -> bool {
        matches!(
            self,
            Command::Take(_)
                | Command::WatchCancel { .. }
                | Command::Outcome { .. }
                | Command::Drain { .. }
                | Command::Hold { .. }
        )
    }

    /// Returns whether it changes nothing.
    pub(crate) fn only_reads(&self) -> bool {
        matches!(
            self,
            Command::WatchCancel { .. }
                | Command::Outcome { .. }
                | Command::Drain { .. }
                | Command::Statuses { .. }
                | Command::DeadJobs { .. }
                | Command::ReadEvents { .. }
        )
    }
}

#[derive(Debug, Clone)]
pub(crate) struct NewJob {
    pub(crate) queue: i64,
    pub(crate) kind: i64,
    pub(crate) id: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) priority: u8,
    /// In milliseconds.
    pub(crate) delay: i64,
    pub(crate) payload: Vec<u8>,
}

#[derive(Debug, Clone)]
pub(crate) struct TakeJob {
    pub(crate) queue: i64,
    /// In milliseconds.
    pub(crate) lease: i64,
    /// How often a job is tried, if there is a limit.
    pub(crate) attempts: Option<i64>,
}

/// What the last append of a writer has left in the row of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamClaim {
    pub(crate) token: i64,
    pub(crate) chain: i64,
}

/// Events for a stream, from one who knows its position.
#[derive(Debug, Clone)]
pub(crate) struct Append {
    pub(crate) stream: i64,
    /// The last position that is known.
    pub(crate) position: i64,
    /// Nothing in the first append, which claims the stream.
    pub(crate) claim: Option<StreamClaim>,
    pub(crate) fence: Option<RawFence>,
    pub(crate) kind: &'static str,
    pub(crate) events: Vec<Vec<u8>>,
}

/// What has to be in the same hands still, so that a change is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RawFence {
    Job { seq: i64, token: i64 },
    Lease { name: String, token: i64 },
}

/// What becomes of a job whose attempt has ended. Times are in milliseconds.
#[derive(Debug, Clone)]
pub(crate) enum JobEnding {
    Done {
        window: i64,
    },
    Retry {
        after: i64,
        reason: String,
        yields: bool,
    },
    Dead {
        reason: String,
    },
    Cancelled,
    /// It goes back, as if it had not been taken, or as an attempt.
    Release {
        is_attempt: bool,
    },
}

/// A job that was taken.
#[derive(Debug, Clone)]
pub(crate) struct RawJob {
    pub(crate) seq: i64,
    pub(crate) token: i64,
    pub(crate) kind: String,
    pub(crate) id: Option<String>,
    pub(crate) key: Option<String>,
    /// Counted from 1.
    pub(crate) attempt: u32,
    pub(crate) progress: Option<Vec<u8>>,
    pub(crate) payload: Vec<u8>,
}

#[derive(Debug)]
pub(crate) enum StoreAnswer {
    Done,
    Queue {
        queue: i64,
        kind: i64,
    },
    Put {
        is_new: bool,
    },
    Taken(RawJob),
    Outcome(RawOutcome),
    Statuses(Vec<RawStatus>),
    DeadJobs(Vec<RawDead>),
    Stream(RawStream),
    /// Events that follow each other, the chain of the last one, and whether it is the last of all.
    Events {
        events: Vec<RawEvent>,
        chain: i64,
        is_end: bool,
    },
    Token(i64),
    Appended(StreamClaim),
    /// What was read is not whole.
    Damaged(String),
    /// The token is not that of the last one who has taken it.
    Stale,
    Missing,
    TooMany(&'static str, u64),
}

impl StoreAnswer {
    /// Makes an error of an answer that refuses.
    pub(crate) fn accepted(self) -> Result<StoreAnswer, StoreProblem> {
        match self {
            StoreAnswer::Stale => Err(StoreProblem::Stale),
            StoreAnswer::Missing => Err(StoreProblem::Missing),
            StoreAnswer::Damaged(what) => Err(StoreProblem::Corrupt(what)),
            StoreAnswer::TooMany(what, limit) => Err(StoreProblem::TooMany { what, limit }),
            answer => Ok(answer),
        }
    }
}

#[derive(Debug)]
pub(crate) struct RawStream {
    pub(crate) stream: i64,
    pub(crate) snapshot: Option<RawSnapshot>,
}

#[derive(Debug)]
pub(crate) struct RawSnapshot {
    pub(crate) position: i64,
    /// The chain of the event at the position.
    pub(crate) chain: i64,
    pub(crate) kind: String,
    pub(crate) payload: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct RawEvent {
    pub(crate) kind: String,
    pub(crate) payload: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RawOutcome {
    Done,
    Cancelled,
    Dead(String),
}

#[derive(Debug)]
pub(crate) struct RawStatus {
    pub(crate) name: String,
    pub(crate) counts: super::tx::JobCounts,
    pub(crate) late: i64,
    /// How many milliseconds ago the oldest waiting job was due.
    pub(crate) oldest: Option<i64>,
    /// Ends in the last minute, about.
    pub(crate) rate: i64,
}

#[derive(Debug)]
pub(crate) struct RawDead {
    pub(crate) seq: i64,
    pub(crate) kind: String,
    pub(crate) id: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) attempts: u32,
    pub(crate) reason: String,
    pub(crate) payload: Vec<u8>,
    /// How many milliseconds ago it died.
    pub(crate) age: i64,
}

/// What has become of a command.
#[derive(Debug)]
pub(crate) enum CommandStep {
    Done(StoreAnswer),
    /// It waits for the topic, or until this time.
    Wait(WakeTopic, Option<i64>),
}

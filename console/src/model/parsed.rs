//! The lines of protocol 1 as they are parsed. Unknown fields and events are ignored.

use std::borrow::Cow;

use serde::Deserialize;

/// What the first line has in each version.
#[derive(Debug, Deserialize)]
pub(super) struct ParsedVersion {
    pub protocol: u64,
}

/// The first line.
#[derive(Debug, Deserialize)]
pub(super) struct ParsedFirst {
    #[serde(default)]
    pub greenroom: String,
    #[serde(default)]
    pub pid: u64,
    #[serde(default)]
    pub features: Vec<String>,
}

/// What each later line has.
#[derive(Debug, Deserialize)]
pub(super) struct ParsedHead<'a> {
    pub seq: u64,
    #[serde(borrow)]
    pub event: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ParsedActor<'a> {
    pub id: u64,
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow)]
    pub state: Cow<'a, str>,
    #[serde(default, borrow)]
    pub function: Cow<'a, str>,
    #[serde(default, borrow)]
    pub spawned_at: Cow<'a, str>,
    #[serde(default, borrow)]
    pub thread: Cow<'a, str>,
    #[serde(default, borrow)]
    pub fault: Cow<'a, str>,
    #[serde(default, borrow)]
    pub machine: Cow<'a, str>,
    #[serde(default, borrow)]
    pub key: Cow<'a, str>,
    pub parent: Option<u64>,
    pub capacity: Option<u64>,
    #[serde(default)]
    pub mailbox: u64,
    #[serde(default)]
    pub highest: u64,
    #[serde(default)]
    pub messages: u64,
    #[serde(default)]
    pub turns: u64,
    #[serde(default)]
    pub sampled: ParsedSampled,
    pub busy_us: Option<u64>,
    pub longest_us: Option<u64>,
    #[serde(default)]
    pub restarts: u64,
    #[serde(default)]
    pub displaced: u64,
    #[serde(default)]
    pub addresses: u64,
    #[serde(default)]
    pub handle: bool,
    #[serde(default, borrow)]
    pub waits: Vec<ParsedWait<'a>>,
    #[serde(default)]
    pub names: Vec<String>,
    #[serde(default)]
    pub groups: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ParsedSampled {
    pub turns: u64,
    pub busy_us: u64,
    pub longest_us: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct ParsedWait<'a> {
    #[serde(rename = "for", borrow)]
    pub on: Cow<'a, str>,
    pub of: Option<u64>,
    #[serde(default, borrow)]
    pub what: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ParsedEnded {
    pub id: u64,
}

/// The figures of the runtime, as the program sends them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// How long the runtime has run.
    pub uptime_ms: u64,
    /// Its workers.
    pub workers: Vec<WorkerFigures>,
    /// The tasks that wait in the injector.
    pub injector: u64,
    /// The tasks that wait in all queues.
    pub queued: u64,
    /// The plain tasks.
    pub tasks: u64,
    /// The actors.
    pub actors: u64,
    /// The threads for blocking calls.
    pub blocking: BlockingFigures,
    /// The timers.
    pub timers: u64,
    /// The pinned threads.
    pub pinned: u64,
    /// The messages that have been handled.
    pub messages: u64,
}

/// The figures of a worker.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct WorkerFigures {
    /// The turns that it has run.
    pub turns: u64,
    /// How often it has stolen.
    pub steals: u64,
    /// How often it has slept.
    pub parks: u64,
    /// The tasks in its queue.
    pub queued: u64,
    /// What it runs now.
    pub runs: Option<RunsNow>,
}

/// What a worker runs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct RunsNow {
    /// The number of the actor or task.
    pub id: u64,
    /// How long its turn has taken by now.
    pub for_us: u64,
}

/// The threads for blocking calls.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct BlockingFigures {
    /// How many threads there are.
    pub threads: u64,
    /// How many of them wait for a call.
    pub idle: u64,
    /// How many calls wait for a thread.
    pub waiting: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct ParsedSection {
    pub name: String,
    #[serde(default)]
    pub columns: Vec<String>,
    #[serde(default)]
    pub rows: Vec<Vec<ParsedCell>>,
}

/// A cell, which is a string or a number.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum ParsedCell {
    Text(String),
    Number(serde_json::Number),
    Flag(bool),
    Other(serde::de::IgnoredAny),
}

#[derive(Debug, Deserialize)]
pub(super) struct ParsedLog {
    pub number: Option<u64>,
    pub at_ms: Option<u64>,
    #[serde(default)]
    pub level: String,
    #[serde(default)]
    pub text: String,
    pub actor: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ParsedTick {
    pub at_ms: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct ParsedEnd {
    #[serde(default)]
    pub why: String,
}

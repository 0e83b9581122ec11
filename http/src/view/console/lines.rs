//! ConsoleLines of the protocol, as bytes.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use greenroom::policy::TaskInfo;
use greenroom::{ActorStatus, ActorWait, Changes, RecentFault, Stats, TaskReport, WorkerTurn};
use serde::Serialize;

use super::section::Section;

/// The version of the protocol. A viewer refuses another one.
const PROTOCOL: u32 = 1;

/// The most names and groups that are sent of an actor: more than anyone reads.
const NAMES_MAX: usize = 16;

/// The most characters of a text that a program makes at run time, so that a line stays small.
const CHARACTERS_MAX: usize = 200;

/// The first line.
#[derive(Serialize)]
pub(super) struct FirstLine<'a> {
    protocol: u32,
    greenroom: &'a str,
    pid: u32,
    features: Vec<&'a str>,
}

impl FirstLine<'_> {
    /// Describes a runtime as it is seen first.
    pub(super) fn of(stats: &Stats, actors: &[TaskReport]) -> Self {
        let names_waits = |it: &TaskReport| {
            let is_named =
                |wait: &ActorWait| !matches!(wait, ActorWait::Message | ActorWait::Other);
            it.waits.iter().any(is_named)
        };
        // A debug build notes waits by default, also if no actor waits for another one now.
        let is_debugged = |it: &TaskReport| {
            let place = it.actor.as_ref().and_then(|it| it.spawned_at);
            cfg!(debug_assertions) && place.is_some()
        };
        let is_measured = |it: &TaskReport| it.actor.as_ref().is_some_and(|it| it.busy.is_some());
        let known = [
            ("counting", stats.is_counting),
            ("sampled", stats.is_counting),
            (
                "waits",
                actors.iter().any(|it| names_waits(it) || is_debugged(it)),
            ),
            ("observer", actors.iter().any(is_measured)),
        ];
        FirstLine {
            protocol: PROTOCOL,
            greenroom: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            features: known.iter().filter(|it| it.1).map(|it| it.0).collect(),
        }
    }
}

/// An event, without its number.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(super) enum ConsoleEvent<'a> {
    Reset,
    Actor(&'a ActorLine<'a>),
    Ended {
        id: u64,
    },
    Runtime(RuntimeLine),
    Section {
        name: &'a str,
        #[serde(flatten)]
        section: &'a Section,
    },
    Log {
        number: u64,
        at_ms: u64,
        level: &'static str,
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        actor: Option<u64>,
    },
    Tick {
        at_ms: u64,
    },
    End {
        why: &'static str,
    },
}

#[derive(Serialize)]
struct NumberedLine<'a> {
    seq: u64,
    #[serde(flatten)]
    event: ConsoleEvent<'a>,
}

/// The whole state of an actor.
#[derive(Serialize)]
pub(super) struct ActorLine<'a> {
    id: u64,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spawned_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<u64>,
    state: &'static str,
    mailbox: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity: Option<usize>,
    #[serde(flatten)]
    counts: Option<ActorCountsLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    busy_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    longest_us: Option<u64>,
    restarts: u64,
    displaced: u64,
    addresses: usize,
    handle: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<&'a str>,
    waits: Vec<WaitLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
}

/// What is counted of an actor, if it is.
#[derive(Serialize)]
struct ActorCountsLine {
    highest: usize,
    messages: u64,
    turns: u64,
    sampled: SampledLine,
}

#[derive(Serialize)]
struct SampledLine {
    turns: u64,
    busy_us: u64,
    longest_us: u64,
}

#[derive(Serialize)]
struct WaitLine<'a> {
    #[serde(rename = "for")]
    what_for: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<&'a str>,
}

impl<'a> ActorLine<'a> {
    pub(super) fn of(report: &'a TaskReport, actor: &'a ActorStatus, stats: &Stats) -> Self {
        let (task, name) = (&report.task, beginning(&report.task.called()).to_owned());
        let sampled = &actor.sampled;
        ActorLine {
            id: task.id(),
            function: task.name().is_none().then(|| name.clone()),
            name,
            spawned_at: actor.spawned_at.map(ToString::to_string),
            parent: actor.parent,
            state: word_of_state(actor, stats),
            mailbox: actor.mailbox,
            capacity: actor.capacity,
            counts: stats.is_counting.then(|| ActorCountsLine {
                highest: actor.highest,
                messages: actor.messages,
                turns: actor.turns,
                sampled: SampledLine {
                    turns: sampled.turns,
                    busy_us: micros(sampled.busy),
                    longest_us: micros(sampled.longest),
                },
            }),
            busy_us: actor.busy.map(micros),
            longest_us: actor.longest.map(micros),
            restarts: actor.incarnation,
            displaced: actor.displaced,
            addresses: actor.addresses,
            handle: actor.has_handle,
            thread: actor.thread.as_deref(),
            fault: actor.fault.as_deref(),
            machine: actor.state,
            names: beginnings(&actor.names),
            groups: beginnings(&actor.groups),
            key: actor.key.as_deref().map(beginning),
            waits: report.waits.iter().map(wait).collect(),
        }
    }
}

/// Returns the word for the state of an actor. What a worker runs is known only if something is said of
/// any worker. Otherwise those that are ready are called running, too.
pub(in crate::view) fn word_of_state(actor: &ActorStatus, stats: &Stats) -> &'static str {
    let is_known = || stats.running.iter().any(Option::is_some);
    match (actor.is_dormant, &actor.thread) {
        (true, _) => "waiting",
        (false, None) if is_known() => "ready",
        (false, _) => "running",
    }
}

/// Returns the Unix time of this long ago, in milliseconds.
pub(super) fn unix_ms(ago: Duration) -> u64 {
    let at = SystemTime::now().duration_since(UNIX_EPOCH);
    let at = at.map_or(Duration::ZERO, |at| at.saturating_sub(ago));
    u64::try_from(at.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the characters of a text that are sent.
fn beginning(text: &str) -> &str {
    let end = text.char_indices().nth(CHARACTERS_MAX);
    end.map_or(text, |(end, _)| &text[..end])
}

fn beginnings(texts: &[Arc<str>]) -> Vec<&str> {
    let texts = texts.iter().take(NAMES_MAX);
    texts.map(|text| beginning(text)).collect()
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn wait(wait: &ActorWait) -> WaitLine<'_> {
    let (what_for, of, what) = match wait {
        ActorWait::Message => ("message", None, None),
        ActorWait::Answer(of) => ("answer", Some(of.id()), None),
        ActorWait::Room(of) => ("room", Some(of.id()), None),
        ActorWait::End(of) => ("end", Some(of.id()), None),
        ActorWait::Noted(what) => ("noted", None, Some(*what)),
        _ => ("other", None, None),
    };
    WaitLine { what_for, of, what }
}

/// The figures of a runtime.
#[derive(Serialize)]
pub(super) struct RuntimeLine {
    uptime_ms: u64,
    workers: Vec<WorkerLine>,
    injector: usize,
    queued: usize,
    tasks: usize,
    actors: usize,
    blocking: BlockingLine,
    timers: usize,
    pinned: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<u64>,
}

#[derive(Serialize)]
struct WorkerLine {
    turns: u64,
    steals: u64,
    parks: u64,
    queued: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<RunsLine>,
}

/// What a worker runs.
#[derive(Serialize)]
struct RunsLine {
    id: u64,
    for_us: u64,
}

#[derive(Serialize)]
struct BlockingLine {
    threads: usize,
    idle: usize,
    waiting: usize,
}

impl RuntimeLine {
    /// Describes a runtime with so many actors, which have handled so many messages.
    pub(super) fn of(changes: &Changes, uptime: Duration, actors: usize, messages: u64) -> Self {
        let (stats, at) = (&changes.stats, changes.at);
        let runs = |turn: &WorkerTurn| RunsLine {
            id: turn.task.id(),
            for_us: micros(at.duration_since(turn.since)),
        };
        let running = stats.running.iter().map(|it| it.as_ref().map(runs));
        let workers = stats.workers.iter().zip(running);
        let workers = workers.map(|(worker, runs)| WorkerLine {
            turns: worker.runs,
            steals: worker.steals,
            parks: worker.parks,
            queued: worker.queued,
            runs,
        });
        RuntimeLine {
            uptime_ms: u64::try_from(uptime.as_millis()).unwrap_or(u64::MAX),
            workers: workers.collect(),
            injector: stats.injector,
            queued: stats.queued,
            tasks: stats.tasks,
            actors,
            blocking: BlockingLine {
                threads: stats.blocking.threads,
                idle: stats.blocking.idle,
                waiting: stats.blocking.queued,
            },
            timers: stats.timers,
            pinned: stats.pinned,
            messages: stats.is_counting.then_some(messages),
        }
    }
}

impl<'a> ConsoleEvent<'a> {
    /// Describes a fault.
    pub(super) fn of_fault(fault: &'a RecentFault) -> Self {
        ConsoleEvent::Log {
            number: fault.number,
            at_ms: unix_ms(fault.at.elapsed()),
            level: if fault.goes_on { "warning" } else { "error" },
            text: &fault.text,
            actor: fault.actor.as_ref().map(TaskInfo::id),
        }
    }
}

/// ConsoleLines, one after the other, with their numbers.
#[derive(Default)]
pub(super) struct ConsoleLines {
    /// The number of the last event.
    seq: u64,
    bytes: Vec<u8>,
}

impl ConsoleLines {
    pub(super) fn first(&mut self, line: &FirstLine<'_>) {
        self.push(line);
    }

    pub(super) fn event(&mut self, event: ConsoleEvent<'_>) {
        self.seq += 1;
        let seq = self.seq;
        self.push(&NumberedLine { seq, event });
    }

    fn push(&mut self, line: &impl Serialize) {
        // Nothing here is refused by JSON, and a vector takes all bytes.
        let written = serde_json::to_writer(&mut self.bytes, line);
        debug_assert!(written.is_ok(), "{written:?}");
        self.bytes.push(b'\n');
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use greenroom::{Context, Runtime, actor};

    use super::ActorLine;

    fn state(runtime: &Runtime, id: u64) -> &'static str {
        let mut watch = runtime.watch(Duration::from_millis(1));
        let all = runtime.block_on(watch.next()).unwrap();
        let report = all.changed.iter().find(|it| it.task.id() == id).unwrap();
        ActorLine::of(report, report.actor.as_ref().unwrap(), &all.stats).state
    }

    #[test]
    fn an_actor_behind_a_held_worker_is_ready_and_not_running() {
        let runtime = Runtime::builder().workers(1);
        let runtime = runtime.long_turns(Duration::from_secs(3600));
        let runtime = runtime.build().unwrap();
        let (begins, begun) = channel();
        let (opens, gate) = channel::<()>();
        let holder = |_cx: Context<()>| async move {
            begins.send(()).unwrap();
            let _ = gate.recv();
        };
        let holder = actor(holder).on(&runtime).spawn();
        begun.recv().unwrap();
        let late = |mut cx: Context<()>| async move { while cx.recv().await.is_some() {} };
        let late = actor(late).on(&runtime).spawn();
        assert_eq!(state(&runtime, holder.id()), "running");
        assert_eq!(state(&runtime, late.id()), "ready");
        drop(opens);
        while state(&runtime, late.id()) != "waiting" {}
    }
}

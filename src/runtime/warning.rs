//! Warnings: mistakes of a program that would otherwise be silent, their texts, and who gets them:
//! the function of `on_warning`, or else the tracer, or else stderr.
//!
//! A warning is reported by the thread that notices it, while it holds no lock.

use std::fmt::{self, Display};
use std::io;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::status::ActorStatus;
use crate::contain::{Panic, contain};
use crate::error::Deadlock;
use crate::stderr::print_line;
use crate::sync::Process;
use crate::task::TaskInfo;
use crate::tracer::{self, EventKind, Level, Subject, Tracer};

/// A mistake of the program that its runtime has noticed, for
/// [`on_warning`](crate::Builder::on_warning).
///
/// It displays as the line that the runtime prints by default.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Warning {
    /// A turn has held its thread for longer than [`long_turns`](crate::Builder::long_turns)
    /// allows.
    ///
    /// This is reported when the turn has ended, once for each actor, and once for all plain tasks
    /// of one location. It is not reported for an actor that
    /// [may have long turns](crate::ActorBuilder::allow_long_turns), or that is alone on its pinned
    /// thread.
    LongTurn(LongTurn),
    /// All workers are held by such turns, which are not over yet. So nothing else can run on them.
    ///
    /// The turns are those of all workers. At least one of them is of an actor or location that no
    /// such warning has named before, and that may not have long turns.
    WorkersHeld(Vec<LongTurn>),
    /// Actors wait for each other: for room in a mailbox, for the end of an actor, or for both.
    /// Nothing else can run, so they wait forever.
    ///
    /// Asks in such a cycle end with [`AskError::Deadlock`](crate::AskError::Deadlock) instead. See
    /// [`detect_deadlocks`](crate::Builder::detect_deadlocks).
    Deadlock(Deadlock),
    /// The runtime is quiescent, and these actors wait although their
    /// [`Handle`](crate::Handle) was dropped. Each actor is named once.
    ///
    /// This is normal for an actor that others have the address of, such as a child of a supervisor
    /// or a worker of a spool. It is a mistake if the actor keeps its own address. See
    /// [`detect_deadlocks`](crate::Builder::detect_deadlocks).
    LeftAlone(Vec<ActorStatus>),
    /// Nothing has run for 2 s, and this wait never ends. The path is of the waits, and the actors
    /// are those of a cycle, or the one whose end is waited for.
    ///
    /// - In a cycle, each actor waits for the next one, and the last one for the first. An actor
    ///   that waits for itself may be reported earlier.
    /// - Otherwise somebody waits for the end of an actor that waits for a message, and all of
    ///   whose addresses its own context has made. It never ends if it keeps one of them.
    ///
    /// See [`endless_waits`](crate::Builder::endless_waits).
    EndlessWait(Deadlock, Vec<ActorStatus>),
    /// A shutdown waits for these actors, which have not ended one second after they were asked to.
    ///
    /// One that is dormant waits for something in a handler, or for the end of a child. The others
    /// are in a turn, or still have messages. They are cancelled when the
    /// [grace](crate::Builder::grace) is over.
    ShutdownWaits(Vec<ActorStatus>),
    /// A worker has panicked outside any turn: its driver, its policy, or the runtime itself.
    ///
    /// What is queued there still runs, as long as a worker is left.
    #[non_exhaustive]
    WorkerPanicked {
        /// The index of the worker, which counts from 0.
        worker: usize,
        /// The text of the panic.
        panic: String,
        /// What became of the worker.
        continues: Continues,
    },
}

/// How the work of a worker continues after a [panic](Warning::WorkerPanicked).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Continues {
    /// Another thread is the worker now.
    OnAnotherThread,
    /// No other thread could be started, for this reason. So the thread remains the worker.
    OnThisThread(Arc<io::Error>),
    /// The [driver](crate::Driver) panicked, and the worker does without it.
    WithoutDriver,
    /// The [policy](crate::policy::Policy) could not create the data of the worker. The other
    /// workers do without this one.
    Nowhere,
}

/// A turn that is longer than [`long_turns`](crate::Builder::long_turns) allows.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LongTurn {
    /// The task or actor.
    pub task: TaskInfo,
    /// Where the program has spawned it.
    pub spawned_at: &'static Location<'static>,
    /// How long the turn has lasted.
    pub took: Duration,
    /// For how much of that the thread ran on a processor. For the rest it was blocked, or the
    /// system ran other threads.
    ///
    /// It is measured in debug builds on Linux and macOS. A turn that is not over has none.
    pub processor: Option<Duration>,
    /// Whether the thread is a worker. Otherwise it is a pinned thread or a stage.
    pub on_worker: bool,
}

/// The kind of a warning.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Topic {
    LongTurn,
    WorkersHeld,
    LeftAlone,
}

impl Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::LongTurn(turn) => {
                let held = if turn.on_worker {
                    "a worker"
                } else {
                    "its thread"
                };
                let took = turn.took.as_millis();
                write!(f, "{turn} held {held} for {took} ms")?;
                if let Some(processor) = turn.processor {
                    let processor = processor.as_millis();
                    write!(f, ", of which {processor} ms of processor time")?;
                }
                write!(f, "; {ADVICE}")
            }
            Warning::WorkersHeld(turns) => {
                match turns.len() {
                    1 => f.write_str("the only worker is held: ")?,
                    workers => write!(f, "all {workers} workers are held: ")?,
                }
                let turns = turns.iter();
                write_list(f, turns, |f, turn| {
                    write!(f, "{turn} for {} ms so far", turn.took.as_millis())
                })?;
                write!(f, "; {ADVICE}")
            }
            Warning::Deadlock(path) => write!(f, "the actors wait for each other: {path}"),
            Warning::LeftAlone(actors) => {
                match actors.len() {
                    1 => f.write_str("1 actor waits without a handle: ")?,
                    count => write!(f, "{count} actors wait without handles: ")?,
                }
                write_list(f, actors.iter(), |f, actor| {
                    write_task(f, &actor.task, actor.spawned_at)?;
                    match actor.addresses {
                        1 => f.write_str(" with 1 address"),
                        count => write!(f, " with {count} addresses"),
                    }
                })
            }
            Warning::EndlessWait(path, actors) => write_endless(f, path, actors),
            Warning::ShutdownWaits(actors) => write_staying(f, actors),
            Warning::WorkerPanicked {
                worker,
                panic,
                continues,
            } => {
                write!(
                    f,
                    "worker {worker} panicked outside any turn: {panic}; {continues}"
                )
            }
        }
    }
}

fn write_staying(f: &mut fmt::Formatter<'_>, actors: &[ActorStatus]) -> fmt::Result {
    match actors.len() {
        1 => f.write_str("the shutdown waits for 1 actor: ")?,
        count => write!(f, "the shutdown waits for {count} actors: ")?,
    }
    let named = actors.iter().take(NAMED_MAX);
    write_list(f, named, |f, actor| {
        write_task(f, &actor.task, actor.spawned_at)?;
        f.write_str(match (actor.is_dormant, actor.mailbox) {
            (true, _) => ", which waits",
            (false, 0) => ", which runs",
            (false, _) => ", which has messages",
        })
    })?;
    match actors.len().saturating_sub(NAMED_MAX) {
        0 => Ok(()),
        more => write!(f, ", and {more} more"),
    }
}

fn write_endless(
    f: &mut fmt::Formatter<'_>,
    path: &Deadlock,
    actors: &[ActorStatus],
) -> fmt::Result {
    match (path.is_cycle(), actors.len()) {
        (true, 0 | 1) => write!(f, "an actor waits for itself: {path}")?,
        (true, _) => write!(f, "the actors wait for each other: {path}")?,
        (false, _) => write!(f, "this wait never ends: {path}")?,
    }
    f.write_str("; ")?;
    write_list(f, actors.iter().take(NAMED_MAX), |f, actor| {
        write_task(f, &actor.task, actor.spawned_at)
    })?;
    match actors {
        [actor] if !path.is_cycle() => f.write_str(match actor.addresses {
            1 => " waits for a message, and its own context has made its only address, which it may keep",
            _ => " waits for a message, and its own context has made all of its addresses, which it may keep",
        }),
        [_] => f.write_str(" receives nothing meanwhile"),
        _ => Ok(()),
    }
}

/// The maximum number of actors that a line names: about as many as a terminal shows at a glance.
const NAMED_MAX: usize = 10;

const ADVICE: &str = "blocking calls belong in `unblock`";

impl Display for Continues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Continues::OnAnotherThread => f.write_str("another thread replaces it"),
            Continues::OnThisThread(error) => {
                write!(f, "no thread could replace it ({error}), so it goes on")
            }
            Continues::WithoutDriver => f.write_str("it goes on without its driver"),
            Continues::Nowhere => f.write_str("the other workers go on without it"),
        }
    }
}

/// Displays the task or actor and its location: `"crawl" #3 (src/main.rs:12)`.
impl Display for LongTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_task(f, &self.task, Some(self.spawned_at))
    }
}

pub(super) fn write_task(
    f: &mut fmt::Formatter<'_>,
    task: &TaskInfo,
    location: Option<&Location<'_>>,
) -> fmt::Result {
    match location {
        // All plain tasks of a location are reported as one, so a number would tell nothing.
        Some(_) if !task.is_actor() => match task.name() {
            Some(name) => write!(f, "{name:?}")?,
            None => f.write_str(&task.called())?,
        },
        _ => task.fmt(f)?,
    }
    location.map_or(Ok(()), |at| write!(f, " ({}:{})", at.file(), at.line()))
}

fn write_list<T>(
    f: &mut fmt::Formatter<'_>,
    items: impl Iterator<Item = T>,
    each: impl Fn(&mut fmt::Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (index, item) in items.enumerate() {
        f.write_str(if index == 0 { "" } else { ", " })?;
        each(f, item)?;
    }
    Ok(())
}

pub(super) type OnWarning = Arc<dyn Fn(&Warning) + Send + Sync>;

#[derive(Clone)]
pub(super) struct WarningReceiver {
    pub(super) on_warning: Option<OnWarning>,
    pub(super) tracer: Option<Arc<dyn Tracer>>,
    /// The name of the runtime, in its trace.
    pub(super) called: String,
    pub(super) is_simulated: bool,
    pub(super) process: Process,
}

impl WarningReceiver {
    /// Warns that a worker has panicked outside any turn.
    pub(super) fn worker_panicked(&self, worker: usize, panic: &Panic, continues: Continues) {
        self.warn(&Warning::WorkerPanicked {
            worker,
            panic: panic.to_string(),
            continues,
        });
    }

    /// Gives the receiver a warning. A panic of the receiver is contained.
    pub(super) fn warn(&self, warning: &Warning) {
        // In a child of `fork`, what the receiver locks may be held by a thread of the parent.
        if !self.process.is_current() {
            return;
        }
        if let Some(on_warning) = &self.on_warning {
            contain(|| on_warning(warning));
        } else if let Some(tracer) = &self.tracer {
            let text = warning.to_string();
            let kind = EventKind::Note {
                level: Level::Warning,
                text: &text,
            };
            let subject = || Subject {
                called: self.called.clone().into(),
                ..Subject::default()
            };
            tracer::trace(&**tracer, subject, kind);
        } else if !self.is_simulated {
            print_line(format_args!("{warning}"));
        }
    }
}

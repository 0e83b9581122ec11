//! What a look at a runtime returns: its figures, and the states of its actors and tasks.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::blocking_pool::BlockingStats;
use crate::directory::Registrations;
use crate::instant::Instant;
use crate::scheduler::WorkerStats;
use crate::task::{SampledTimes, SampledTurns, TaskInfo};

/// Statistics of a runtime: what it has done since it was built, and what it has to do.
///
/// Returned by [`Runtime::stats`](crate::Runtime::stats).
///
/// Each number is exact for some moment, but the numbers are read one after the other while the
/// runtime runs. They agree with each other only if nothing runs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Stats {
    /// The counters of each worker, by index.
    pub workers: Vec<WorkerStats>,
    /// What each worker runs, by index: `None` while it runs nothing. All are `None` unless the runtime
    /// warns of [long turns](crate::Builder::long_turns), as debug builds do.
    pub running: Vec<Option<WorkerTurn>>,
    /// The number of tasks and actors that are ready and wait for a worker, in all queues. Those
    /// that wait for a pinned thread are not included.
    pub queued: usize,
    /// How many of `queued` were pushed from outside the workers and wait for any worker. This is 0
    /// with a policy other than [`Stealing`](crate::policy::Stealing), which may keep its queues as
    /// it likes.
    pub injector: usize,
    /// The number of live plain tasks that have gone pending at least once.
    ///
    /// A task that waits for its first poll, or is in it, is not counted. Tasks on pinned threads
    /// are.
    pub tasks: usize,
    /// The number of timers that wait, those on pinned threads included. A sleep or a timeout is one,
    /// while it is awaited.
    pub timers: usize,
    /// The number of pinned threads, of stages, and of the threads of detached actors.
    pub pinned: usize,
    /// The threads for blocking calls, and the calls that wait for one.
    pub blocking: BlockingStats,
    /// Whether the turns and messages of actors are [counted](crate::Builder::counting).
    pub is_counting: bool,
    /// How long the turns of actors took that were timed: one in 64 of each actor. Turns on pinned threads
    /// are not among them. Those of actors that have ended are.
    pub turn_times: SampledTimes,
    /// How long those asks took from their first poll to their outcome that were timed: one in 61 of those
    /// that begin on a thread of this runtime, or in a `block_on`. All are timed with the option
    /// [`detect_deadlocks`](crate::Builder::detect_deadlocks) or with a tracer, and none in a simulation. An
    /// ask that was dropped, or has timed out, has no time.
    pub ask_times: SampledTimes,
    /// The live actors of this runtime, including those on pinned threads and detached ones, in no
    /// particular order.
    pub actors: Vec<ActorStatus>,
}

/// The turn that a worker runs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WorkerTurn {
    /// The actor or task.
    pub task: TaskInfo,
    /// When the turn has begun.
    pub since: Instant,
}

impl Stats {
    /// Returns the sum over all workers.
    pub fn total(&self) -> WorkerStats {
        let mut total = WorkerStats::default();
        for worker in &self.workers {
            total.runs += worker.runs;
            total.steals += worker.steals;
            total.injector_takes += worker.injector_takes;
            total.parks += worker.parks;
            total.wake_ups += worker.wake_ups;
            total.queued += worker.queued;
        }
        total
    }

    /// Returns the number of actors that are dormant and whose [`Handle`](crate::Handle) was
    /// dropped.
    ///
    /// Many of these are in regular use through their addresses. If the number only grows, look for
    /// actors that keep their own address: such an actor never ends for want of senders.
    pub fn dormant_without_handle(&self) -> usize {
        self.actors.iter().filter(|actor| actor.is_lonely()).count()
    }
}

/// The state of a live actor at some moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ActorStatus {
    /// The number, name and priority of the actor.
    pub task: TaskInfo,
    /// The number of messages that wait in the mailbox.
    ///
    /// An actor takes several messages out at once and handles them in turn; those are not
    /// included. Messages of senders that wait for room are not included either.
    pub mailbox: usize,
    /// Whether the actor is neither in a turn nor ready for one, because it waits for a message or
    /// for something else.
    pub is_dormant: bool,
    /// Whether the actor's [`Handle`](crate::Handle), or the [`Join`](crate::Join) made from it,
    /// still exists.
    pub has_handle: bool,
    /// The number of addresses of the actor. Its [`Handle`](crate::Handle) has one of them.
    pub addresses: usize,
    /// Where the actor was spawned, or the [`Keyed`](crate::registry::Keyed) set that spawns it was
    /// made. `None` unless the runtime warns of
    /// [long turns](crate::Builder::long_turns) or looks for
    /// [endless waits](crate::Builder::endless_waits), as debug builds do.
    pub spawned_at: Option<&'static Location<'static>>,
    /// The [id](crate::Address::id) of the actor that owns this one: the one that has
    /// [adopted](crate::Context::adopt) it or, failing that, its
    /// [supervisor](crate::supervise::Supervisor). Otherwise that of the actor that has spawned it, if
    /// `spawned_at` is known. It may have ended.
    pub parent: Option<u64>,
    /// The [capacity](crate::ActorBuilder::capacity) of the mailbox; `None` if it is unbounded.
    pub capacity: Option<usize>,
    /// The name of the thread on which the actor runs: the pinned thread to which it is bound, its own
    /// if it is detached, or the worker that runs its turn now. That last one is known only if the
    /// runtime warns of [long turns](crate::Builder::long_turns).
    pub thread: Option<Arc<str>>,
    /// The name of its state, if it is a [machine](crate::machine::Machine::state_name) and the runtime
    /// [counts](crate::Builder::counting). With a tracer, also that of an actor that has
    /// [set](crate::Context::trace_state) one.
    pub state: Option<&'static str>,
    /// The number of incarnations of the actor that have ended: 0 before its first restart.
    pub incarnation: u64,
    /// The beginning of the text of the last panic that has ended an incarnation of it: at most 200
    /// characters.
    pub fault: Option<String>,
    /// The [names](crate::registry::Name) that the actor has in this runtime, sorted. A
    /// [warning](crate::Warning) has neither these nor the next two.
    pub names: Vec<Arc<str>>,
    /// The [groups](crate::registry::Group) of this runtime of which it is a member, sorted.
    pub groups: Vec<Arc<str>>,
    /// The text of its key in a set of [keyed](crate::registry::Keyed) actors of this runtime, if the set
    /// has a [label](crate::registry::KeyedBuilder::label).
    pub key: Option<Arc<str>>,
    /// How many messages have given way to newer ones in the mailbox, see
    /// [`overflow`](crate::ActorBuilder::overflow).
    pub displaced: u64,
    /// The number of turns that the actor has had, without the present one. 0 if the runtime [does not
    /// count](crate::Builder::counting), as the next three.
    pub turns: u64,
    /// The number of messages that it has handled in these turns, with those of its sources.
    pub messages: u64,
    /// The largest number of messages that have waited in the mailbox, as
    /// [`mailbox`](ActorStatus::mailbox) counts them.
    pub highest: usize,
    /// The times of some of its turns.
    pub sampled: SampledTurns,
    /// The total duration of the actor's completed turns. `None` if the runtime has no
    /// [`observer`](crate::Builder::observer), such as [`Measure`](crate::Measure): turns are not
    /// measured then.
    pub busy: Option<Duration>,
    /// The duration of the longest of these turns.
    pub longest: Option<Duration>,
}

impl ActorStatus {
    /// Adds what the actor is registered as.
    pub(super) fn name(&mut self, registered: &Registrations) {
        if let Some(registered) = registered.get(self.task.id()) {
            self.names.clone_from(registered.names());
            self.groups.clone_from(registered.groups());
            self.key.clone_from(registered.key());
        }
    }

    /// Returns whether the actor waits and its handle was dropped.
    pub(super) fn is_lonely(&self) -> bool {
        self.is_dormant && !self.has_handle
    }
}

/// What an actor waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActorWait {
    /// A message, or one of its own sources.
    Message,
    /// The answer of this actor.
    Answer(TaskInfo),
    /// Room in the mailbox of this actor.
    Room(TaskInfo),
    /// The end of this actor.
    End(TaskInfo),
    /// What a future has [noted](crate::note_wait()), such as `"a timer"`.
    Noted(&'static str),
    /// Something that nothing has noted: a socket, for example, or a foreign channel. Without the
    /// option [`endless_waits`](crate::Builder::endless_waits), this is all that is known of an
    /// actor that waits for no message.
    Other,
}

/// A live actor or a pending plain task, and what it waits for.
///
/// It displays as one line, for example
/// `"a" #1 (src/main.rs:12) waits for the answer of "b" #2`. A plain task without a name is called
/// after its type.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TaskReport {
    /// The actor or task.
    pub task: TaskInfo,
    /// The state of the actor; `None` for a plain task.
    pub actor: Option<ActorStatus>,
    /// What it waits for; empty for an actor that is in a turn, or is ready for one. One of them is
    /// enough to wake it. Of a plain task it is not known, so this is [`ActorWait::Other`].
    pub waits: Vec<ActorWait>,
}

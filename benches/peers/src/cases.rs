//! The names of the cases, and the rules of some of them.

use std::time::Duration;

use crate::loopers::Jobs;

/// A program that a peer may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Spawns many actors and sends one message to each; each sends one to a collector.
    Spawn,
    /// Memory of dormant actors that have handled one message.
    IdleMemory,
    /// Two actors send a ball to and fro.
    PingPong,
    /// One task asks one actor, again and again.
    Ask,
    /// An actor has many requests in flight and receives the answers as messages.
    Answers,
    /// A task on each worker looks up actors by their names.
    Lookup,
    /// One task sends numbers to one actor, then asks for the sum.
    Counting,
    /// Many actors send numbers to one.
    FanIn,
    /// A token goes round a ring of actors.
    Ring,
    /// Many tokens go round a ring of actors.
    RingTokens,
    /// Actors meet in pairs, through an actor that pairs them.
    Meetings,
    /// An actor for each call of `fib`; results are sent to the parent.
    Fib,
    /// `Counting` with a small mailbox and a waiting send.
    Bounded,
    /// One task asks one actor, which panics each time and is restarted.
    Restarts,
    /// `PingPong` and `Counting` with actors that would be restarted, beside actors that would not.
    Restartable,
    /// Many clients ask a pool of actors, with an empty job and with one of 1 µs.
    Pool,
    /// Requests come to a pool in bursts that are too large for its queue.
    PoolRefusing,
    /// A foreign thread sends requests to a pool, paced by the clock.
    PoolPaced,
    /// Tasks post these jobs to many loopers, and await the results.
    Looper(Jobs),
    /// `Looper` at many priorities, beside one.
    LooperPriorities,
    /// `Looper` with many lanes, beside two.
    LooperLanes,
    /// A foreign thread stops the world beside busy loopers.
    LooperWorld,
    /// A client asks once a millisecond beside busy actors that send to themselves.
    PacedLatency,
    /// A client asks without a pause beside busy actors that send to themselves.
    MixedLatency,
    /// `MixedLatency` beside a thread that only reads the clock.
    MixedControl,
    /// A foreign thread spawns tasks beside busy actors that send to themselves.
    Injected,
    /// A runtime without work.
    Idle,
    /// One plain task yields, again and again.
    TaskYield,
    /// One plain task after the other, then many at once.
    TaskSpawn,
    /// Many short tasks of a set, whose values are taken as they come.
    TaskSet,
    /// A plain task spawns and awaits two, recursively.
    TaskRecursive,
    /// Memory of plain tasks that wait.
    TaskBytes,
    /// A task makes blocking calls, one after another.
    Unblock,
    /// A task makes many empty blocking calls at once.
    UnblockWindows,
    /// `UnblockWindows` with calls that sleep.
    UnblockSleeping,
    /// A foreign thread wakes a task while all workers sleep.
    OutsideWake,
    /// Many plain tasks, spawned on one of two workers.
    Steal,
    /// `Steal` with tasks of unequal length.
    Unequal,
    /// Tasks call a connection on its own thread.
    Sqlite,
    /// Many tasks sleep, and their deadlines are spread over a second.
    TimersDue,
    /// Many timers are armed and dropped before they are due.
    TimersCancelled,
    /// Many tasks ask one actor, with a time-out that none of them reaches.
    AskTimeouts,
    /// An actor has a mailbox, an interval, a stream and requests in flight.
    Sources,
    /// Threads that are no workers send bursts of messages to one actor.
    BurstsOne,
    /// `BurstsOne` to many actors.
    BurstsMany,
    /// `RingTokens` with many workers, beside two.
    ManyWorkers,
    /// One task asks many actors at once, and awaits all answers.
    Scatter,
    /// Many actors send a number each to one.
    Gather,
    /// One task broadcasts to many actors.
    Topic,
    /// Many clients ask many actors, some of these more often than others.
    AsksSkewed,
    /// `Bounded` with messages of 1 KiB.
    Message1K,
    /// `Bounded` with messages of 64 KiB.
    Message64K,
}

/// All cases, in the order of the table.
pub const CASES: &[Case] = &[
    Case::Spawn,
    Case::IdleMemory,
    Case::PingPong,
    Case::Ask,
    Case::Answers,
    Case::Lookup,
    Case::Counting,
    Case::FanIn,
    Case::Ring,
    Case::RingTokens,
    Case::Meetings,
    Case::Fib,
    Case::Bounded,
    Case::Restarts,
    Case::Restartable,
    Case::Pool,
    Case::PoolRefusing,
    Case::PoolPaced,
    Case::Looper(Jobs::Free),
    Case::Looper(Jobs::MostlyShared),
    Case::Looper(Jobs::Exclusive),
    Case::LooperPriorities,
    Case::LooperLanes,
    Case::LooperWorld,
    Case::PacedLatency,
    Case::MixedLatency,
    Case::MixedControl,
    Case::Injected,
    Case::Idle,
    Case::TaskYield,
    Case::TaskSpawn,
    Case::TaskSet,
    Case::TaskRecursive,
    Case::TaskBytes,
    Case::Unblock,
    Case::UnblockWindows,
    Case::UnblockSleeping,
    Case::OutsideWake,
    Case::Steal,
    Case::Unequal,
    Case::Sqlite,
    Case::TimersDue,
    Case::TimersCancelled,
    Case::AskTimeouts,
    Case::Sources,
    Case::BurstsOne,
    Case::BurstsMany,
    Case::ManyWorkers,
    Case::Scatter,
    Case::Gather,
    Case::Topic,
    Case::AsksSkewed,
    Case::Message1K,
    Case::Message64K,
];

impl Case {
    /// Returns the name on the command line and in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spawn => "spawn",
            Self::IdleMemory => "idle_memory",
            Self::PingPong => "ping_pong",
            Self::Ask => "ask",
            Self::Answers => "answers",
            Self::Lookup => "lookup",
            Self::Counting => "counting",
            Self::FanIn => "fan_in",
            Self::Ring => "ring",
            Self::RingTokens => "ring_tokens",
            Self::Meetings => "meetings",
            Self::Fib => "fib",
            Self::Bounded => "bounded",
            Self::Restarts => "restarts",
            Self::Restartable => "restartable",
            Self::Pool => "pool",
            Self::PoolRefusing => "pool_refusing",
            Self::PoolPaced => "pool_paced",
            Self::Looper(Jobs::Free) => "looper",
            Self::Looper(Jobs::MostlyShared) => "looper_shared",
            Self::Looper(Jobs::Exclusive) => "looper_exclusive",
            Self::LooperPriorities => "looper_priorities",
            Self::LooperLanes => "looper_lanes",
            Self::LooperWorld => "looper_world",
            Self::PacedLatency => "paced_latency",
            Self::MixedLatency => "mixed_latency",
            Self::MixedControl => "mixed_latency_control",
            Self::Injected => "injected",
            Self::Idle => "idle",
            Self::TaskYield => "task_yield",
            Self::TaskSpawn => "task_spawn",
            Self::TaskSet => "task_set",
            Self::TaskRecursive => "task_recursive",
            Self::TaskBytes => "task_bytes",
            Self::Unblock => "unblock",
            Self::UnblockWindows => "unblock_windows",
            Self::UnblockSleeping => "unblock_sleeping",
            Self::OutsideWake => "outside_wake",
            Self::Steal => "steal",
            Self::Unequal => "unequal",
            Self::Sqlite => "sqlite",
            Self::TimersDue => "timers_due",
            Self::TimersCancelled => "timers_cancelled",
            Self::AskTimeouts => "ask_timeouts",
            Self::Sources => "sources",
            Self::BurstsOne => "bursts_one",
            Self::BurstsMany => "bursts_many",
            Self::ManyWorkers => "workers_64",
            Self::Scatter => "scatter",
            Self::Gather => "gather",
            Self::Topic => "topic",
            Self::AsksSkewed => "asks_skewed",
            Self::Message1K => "message_1k",
            Self::Message64K => "message_64k",
        }
    }

    /// Returns the case with this name.
    pub fn named(name: &str) -> Option<Self> {
        CASES.iter().copied().find(|case| case.name() == name)
    }

    /// Returns the time limit: a program that takes longer is ended and counted as hung. The two
    /// cases in which peers are known to hang take two seconds at most, the slowest of the others
    /// some ten.
    pub fn limit(self) -> Duration {
        match self {
            Self::Fib | Self::PacedLatency => Duration::from_secs(8),
            _ => Duration::from_secs(60),
        }
    }

    /// Returns how often each peer runs if `rounds` are asked for. A case whose worst run counts has
    /// twice as many.
    pub fn rounds(self, rounds: usize) -> usize {
        if self.worst_counts() {
            2 * rounds
        } else {
            rounds
        }
    }

    /// Returns whether a row compares the worst run with the median.
    pub fn worst_counts(self) -> bool {
        matches!(self, Self::Meetings | Self::AsksSkewed)
    }

    /// Returns whether the peers may run at the same time, because none of them has work.
    pub fn side_by_side(self) -> bool {
        self == Self::Idle
    }
}

//! What the cases are called, and which of them need rules of their own.

use std::time::Duration;

/// A program that a peer may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Spawn many actors, tell each one message; each tells a collector.
    Spawn,
    /// Memory of actors that have answered one message and rest.
    IdleMemory,
    /// Two actors tell a ball to and fro.
    PingPong,
    /// One task asks one actor, again and again.
    Ask,
    /// One task tells numbers to one actor, then asks for the sum.
    Counting,
    /// Many actors tell numbers to one.
    FanIn,
    /// A token goes round a ring of actors.
    Ring,
    /// Many tokens go round a ring of actors.
    RingTokens,
    /// Actors meet in pairs, through one that pairs them.
    Meetings,
    /// An actor for each call of `fib`; answers are told to the parent.
    Fib,
    /// `Counting` with a small mailbox and a waiting send.
    Bounded,
    /// A client asks once a millisecond beside busy actors that tell themselves.
    PacedLatency,
    /// A client asks without a pause beside busy actors that tell themselves.
    MixedLatency,
    /// `MixedLatency` beside a thread that only reads the clock.
    MixedControl,
    /// A thread outside spawns tasks beside busy actors that tell themselves.
    Injected,
    /// Nothing to do.
    Idle,
    /// One plain task yields, again and again.
    TaskYield,
    /// One plain task after the other, then many at once.
    TaskSpawn,
    /// A plain task spawns and awaits two, and so on down.
    TaskRecursive,
    /// Memory of plain tasks that wait.
    TaskBytes,
    /// A thread outside wakes a task while all workers sleep.
    OutsideWake,
    /// Many plain tasks, spawned on one of two workers.
    Steal,
    /// `Steal` with tasks of unequal length.
    Unequal,
    /// A connection on a thread of its own is called from tasks.
    Sqlite,
}

/// All cases, in the order of the table.
pub const CASES: &[Case] = &[
    Case::Spawn,
    Case::IdleMemory,
    Case::PingPong,
    Case::Ask,
    Case::Counting,
    Case::FanIn,
    Case::Ring,
    Case::RingTokens,
    Case::Meetings,
    Case::Fib,
    Case::Bounded,
    Case::PacedLatency,
    Case::MixedLatency,
    Case::MixedControl,
    Case::Injected,
    Case::Idle,
    Case::TaskYield,
    Case::TaskSpawn,
    Case::TaskRecursive,
    Case::TaskBytes,
    Case::OutsideWake,
    Case::Steal,
    Case::Unequal,
    Case::Sqlite,
];

impl Case {
    /// What the command line and the table call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spawn => "spawn",
            Self::IdleMemory => "idle_memory",
            Self::PingPong => "ping_pong",
            Self::Ask => "ask",
            Self::Counting => "counting",
            Self::FanIn => "fan_in",
            Self::Ring => "ring",
            Self::RingTokens => "ring_tokens",
            Self::Meetings => "meetings",
            Self::Fib => "fib",
            Self::Bounded => "bounded",
            Self::PacedLatency => "paced_latency",
            Self::MixedLatency => "mixed_latency",
            Self::MixedControl => "mixed_latency_control",
            Self::Injected => "injected",
            Self::Idle => "idle",
            Self::TaskYield => "task_yield",
            Self::TaskSpawn => "task_spawn",
            Self::TaskRecursive => "task_recursive",
            Self::TaskBytes => "task_bytes",
            Self::OutsideWake => "outside_wake",
            Self::Steal => "steal",
            Self::Unequal => "unequal",
            Self::Sqlite => "sqlite",
        }
    }

    /// The case of this name.
    pub fn named(name: &str) -> Option<Self> {
        CASES.iter().copied().find(|case| case.name() == name)
    }

    /// A program that takes longer is ended and counted as hung. The two cases in which peers are
    /// known to hang take two seconds at most, the slowest of the others some ten.
    pub fn limit(self) -> Duration {
        match self {
            Self::Fib | Self::PacedLatency => Duration::from_secs(8),
            _ => Duration::from_secs(60),
        }
    }

    /// How often each peer runs if `rounds` are asked for: the worst run of `meetings` counts, so it
    /// has twice as many.
    pub fn rounds(self, rounds: usize) -> usize {
        if self.worst_counts() {
            2 * rounds
        } else {
            rounds
        }
    }

    /// Whether a row says how much worse than the median the worst run is.
    pub fn worst_counts(self) -> bool {
        self == Self::Meetings
    }

    /// Whether the peers may run at the same time, since none of them has anything to do.
    pub fn side_by_side(self) -> bool {
        self == Self::Idle
    }
}

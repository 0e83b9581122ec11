//! What the cases are: their work, their figures and the bars that greenroom has to meet.

use std::time::{Duration, Instant};

/// Worker threads of every runtime.
pub const WORKERS: usize = 2;

/// Actors of `spawn`.
pub const SPAWNED: u64 = 1_000_000;
/// Actors of `idle_memory`.
pub const RESTING: u64 = 200_000;
/// Round trips of `ping_pong`.
pub const ROUND_TRIPS: u64 = 1_000_000;
/// Questions of `ask`.
pub const QUESTIONS: u64 = 500_000;
/// Messages of `counting`, `fan_in` and `bounded`.
pub const NUMBERS: u64 = 5_000_000;
/// Actors that tell them in `fan_in`.
pub const TELLERS: u64 = 100;
/// Room in the mailbox of `bounded`.
pub const ROOM: usize = 100;
/// Actors of `ring`.
pub const RING: usize = 1000;
/// Hops of its token.
pub const HOPS: u64 = 2_000_000;
/// Which Fibonacci number is sought, what it is, and how many calls that takes.
pub const FIB: u64 = 25;
pub const FIB_IS: u64 = 75_025;
pub const FIB_CALLS: u64 = 242_785;
/// Busy actors of `paced_latency`, and the work of each of their messages.
pub const BUSY: usize = 2 * WORKERS;
pub const BUSY_FOR: Duration = Duration::from_micros(1);
/// Questions of its client, and its pause before each.
pub const PACED: u64 = 1000;
pub const PAUSE: Duration = Duration::from_millis(1);
/// Tasks of `injected`, and the pause before each. The busy actors are those of `paced_latency`.
pub const INJECTED: usize = 5000;
pub const INJECT_EVERY: Duration = Duration::from_micros(200);
/// Actors of `idle`, and the messages they have handled before.
pub const IDLERS: u64 = 1000;
pub const IDLE_AFTER: u64 = 100_000;
/// How long `idle` settles, and is watched.
pub const SETTLE: Duration = Duration::from_millis(100);
pub const WATCH: Duration = Duration::from_secs(5);

/// A program that every peer has.
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
    /// An actor for each call of `fib`; answers are told to the parent.
    Fib,
    /// `Counting` with a small mailbox and a waiting send.
    Bounded,
    /// A client asks once a millisecond beside busy actors that tell themselves.
    PacedLatency,
    /// A thread outside spawns tasks beside busy actors that tell themselves.
    Injected,
    /// Nothing to do.
    Idle,
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
    Case::Fib,
    Case::Bounded,
    Case::PacedLatency,
    Case::Injected,
    Case::Idle,
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
            Self::Fib => "fib",
            Self::Bounded => "bounded",
            Self::PacedLatency => "paced_latency",
            Self::Injected => "injected",
            Self::Idle => "idle",
        }
    }

    /// The case of this name.
    pub fn named(name: &str) -> Option<Self> {
        CASES.iter().copied().find(|case| case.name() == name)
    }

    /// What greenroom has to reach in this figure of this case.
    pub fn bar(self, figure: &str) -> Option<Bar> {
        match (self, figure) {
            (Self::Spawn, ACTORS)
            | (Self::PingPong, ROUND_TRIPS_A_SECOND)
            | (Self::Counting, MESSAGES) => Some(Bar::OfFirstPeer(0.95)),
            (Self::IdleMemory, RESIDENT) => Some(Bar::AtMost(400.0)),
            // What is injected under full load starts at p99 within a millisecond.
            (Self::Injected, P99) => Some(Bar::AtMost(1000.0)),
            (Self::Idle, SWITCHES) => Some(Bar::AtMost(0.0)),
            _ => None,
        }
    }
}

/// What a figure has to reach.
#[derive(Clone, Copy, Debug)]
pub enum Bar {
    /// At least this many times what the first peer reaches in the same run.
    OfFirstPeer(f64),
    /// At most this, whatever the peers reach.
    AtMost(f64),
}

/// One measured number.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// What it is, with its unit.
    pub what: &'static str,
    /// The number.
    pub value: f64,
}

pub const ACTORS: &str = "actors/s";
pub const PEAK: &str = "peak bytes an actor";
pub const RESIDENT: &str = "resident bytes an actor";
pub const LIVE: &str = "live bytes an actor";
pub const ROUND_TRIPS_A_SECOND: &str = "round trips/s";
pub const P99: &str = "p99 µs";
pub const ASKS: &str = "asks/s";
pub const MESSAGES: &str = "messages/s";
pub const HOPS_A_SECOND: &str = "hops/s";
pub const SWITCHES: &str = "context switches in 5 s";
pub const IDLE_CPU: &str = "CPU µs in 5 s";

/// Something a second, since `begin`.
pub fn rate(what: &'static str, count: u64, begin: Instant) -> Figure {
    Figure {
        what,
        value: count as f64 / begin.elapsed().as_secs_f64(),
    }
}

/// The sum of `0..count`.
pub fn sum_below(count: u64) -> u64 {
    count * (count - 1) / 2
}

/// Ends the program if a result is not what it has to be.
pub fn check(what: &str, got: u64, expected: u64) {
    assert_eq!(got, expected, "wrong result: {what}");
}

/// Keeps the core busy for about [`BUSY_FOR`].
pub fn work() {
    let begin = Instant::now();
    while begin.elapsed() < BUSY_FOR {
        std::hint::spin_loop();
    }
}

/// The figures of `injected`: `spawn` spawns a task that calls what it is given when it starts.
pub fn inject(spawn: impl Fn(Box<dyn FnOnce() + Send>)) -> Vec<Figure> {
    let (started, starts) = std::sync::mpsc::channel();
    for _ in 0..INJECTED {
        std::thread::sleep(INJECT_EVERY);
        let started = started.clone();
        let begin = Instant::now();
        spawn(Box::new(move || {
            started.send(begin.elapsed()).expect("they are counted");
        }));
    }
    percentiles(starts.iter().take(INJECTED).collect())
}

/// The figures of `paced_latency`: the times of the asks, and the time of all the cycles.
pub fn latency(asks: Vec<Duration>, cycles: Duration) -> Vec<Figure> {
    let cycle = cycles.as_secs_f64() * 1e3 / asks.len() as f64;
    let mut figures = percentiles(asks);
    figures.push(Figure {
        what: "cycle ms",
        value: cycle,
    });
    figures
}

fn percentiles(mut asks: Vec<Duration>) -> Vec<Figure> {
    asks.sort_unstable();
    let micros = |duration: Duration| duration.as_secs_f64() * 1e6;
    let at = |percent: usize| {
        asks.get(asks.len() * percent / 100)
            .copied()
            .map_or(0.0, micros)
    };
    let max = asks.last().copied().map_or(0.0, micros);
    vec![
        Figure {
            what: "p50 µs",
            value: at(50),
        },
        Figure {
            what: P99,
            value: at(99),
        },
        Figure {
            what: "max µs",
            value: max,
        },
    ]
}

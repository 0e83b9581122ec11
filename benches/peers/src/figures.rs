//! The figures: measured numbers with names, and the programs' common code to measure them.

use std::time::{Duration, Instant};

use crate::sizes::{INJECT_EVERY, INJECTED, PACED, PAUSE};

/// One measured number.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// The name, with its unit.
    pub what: &'static str,
    /// The number.
    pub value: f64,
}

pub const ACTORS: &str = "actors/s";
pub const PEAK: &str = "peak bytes per actor";
pub const RESIDENT: &str = "resident bytes per actor";
pub const LIVE: &str = "live bytes per actor";
pub const ROUND_TRIPS: &str = "round trips/s";
pub const ASKS: &str = "asks/s";
pub const REQUEST: &str = "ns per request";
pub const REQUEST_ALONE: &str = "ns per request, one worker";
pub const LOOKUP: &str = "ns per lookup, 1000 names";
pub const LOOKUP_OF_ONE: &str = "ns per lookup, one name";
pub const MESSAGES: &str = "messages/s";
pub const HOPS: &str = "hops/s";
pub const P50: &str = "p50 µs";
pub const P99: &str = "p99 µs";
pub const P999: &str = "p99.9 µs";
pub const MAX: &str = "max µs";
pub const CYCLE: &str = "cycle ms";
pub const BUSY_TURNS: &str = "busy messages/s";
pub const KEPT: &str = "busy messages kept";
pub const LONG_ASKS: &str = "asks above 500 µs";
pub const UNSEEN: &str = "asks above 500 µs in no gap";
pub const LONGEST_UNSEEN: &str = "longest ask in no gap µs";
pub const UNSEEN_BY_BOTH: &str = "asks above 500 µs in no gap of a worker either";
pub const CORES: &str = "cores busy";
pub const RESTARTS: &str = "restarts/s";
pub const JOB: &str = "ns per empty job";
pub const JOB_OF_1: &str = "ns per job of 1 µs";
pub const BESIDE_ASKS: &str = "empty jobs beside bare asks";
pub const REFUSAL: &str = "ns per request, most refused";
pub const LOOPED: &str = "ns per job";
pub const BESIDE_ONE: &str = "jobs beside one priority";
pub const SHARED_BESIDE_ONE: &str = "jobs beside one priority, 90 % shared";
pub const EXCLUSIVE_BESIDE_ONE: &str = "jobs beside one priority, all exclusive";
pub const BESIDE_FEW: &str = "time beside two lanes";
pub const WAKE: &str = "one wake µs";
pub const OF_BOUND: &str = "p99 of its bound";
pub const TRIPS_KEPT: &str = "round trips beside plain actors";
pub const MESSAGES_KEPT: &str = "messages beside plain actors";
pub const MEETINGS: &str = "meetings/s";
pub const WORST: &str = "worst run beside the median";
pub const SWITCHES: &str = "context switches in 5 s";
pub const IDLE_CPU: &str = "CPU µs in 5 s";
pub const YIELD: &str = "ns per yield";
pub const AWAITED: &str = "ns per task, one by one";
pub const MILLION: &str = "ns per task, a million";
pub const CALL: &str = "ns per blocking call, one by one";
pub const CALL_OF_WINDOW: &str = "ns per blocking call, 1000 at once";
pub const THREADS_AFTER: &str = "threads more after the windows";
pub const ALL_SLEPT: &str = "ms for 10 000 calls";
pub const TREE: &str = "ns per task";
pub const TASK: &str = "live bytes per task";
pub const ROUSED: &str = "threads roused";
pub const CALL_OF_MANY: &str = "ns per call beyond the statement, 64 callers";
pub const CALL_OF_ONE: &str = "ns per call beyond the statement, 1 caller";
pub const SPEED_UP: &str = "speed-up";
pub const CPU_OF_SLEEPER: &str = "CPU ns per sleeper";
pub const CANCELLED: &str = "ns per timer, a million armed";
pub const CANCELLED_OF_FEW: &str = "ns per timer, 1000 armed";
pub const TICKS_KEPT: &str = "ticks kept";
pub const HOPS_BESIDE_TWO: &str = "hops beside two workers";
pub const MEMBER: &str = "ns per member";
pub const PEAK_MIB: &str = "peak MiB";

/// Returns whether a larger value of this figure is better.
pub fn more_is_better(what: &str) -> bool {
    what.ends_with("/s")
        || [
            SPEED_UP,
            CORES,
            KEPT,
            TRIPS_KEPT,
            MESSAGES_KEPT,
            BESIDE_ASKS,
            BESIDE_ONE,
            SHARED_BESIDE_ONE,
            EXCLUSIVE_BESIDE_ONE,
            WORST,
            TICKS_KEPT,
            HOPS_BESIDE_TWO,
        ]
        .contains(&what)
}

/// Returns whether peers are compared in this figure. The number of long asks varies by chance, and
/// zero, which is best, has no ratio.
pub fn is_compared(what: &str) -> bool {
    ![LONG_ASKS, UNSEEN, UNSEEN_BY_BOTH].contains(&what)
}

/// Returns `count` divided by the seconds since `begin`.
pub fn rate(what: &'static str, count: u64, begin: Instant) -> Figure {
    Figure {
        what,
        value: count as f64 / begin.elapsed().as_secs_f64(),
    }
}

/// Returns the nanoseconds since `begin`, divided by `count`.
pub fn nanoseconds(what: &'static str, count: u64, begin: Instant) -> Figure {
    Figure {
        what,
        value: begin.elapsed().as_secs_f64() * 1e9 / count as f64,
    }
}

/// Returns the sum of `0..count`.
pub fn sum_below(count: u64) -> u64 {
    count * (count - 1) / 2
}

/// Panics if a result is wrong.
pub fn check(what: &str, got: u64, expected: u64) {
    assert_eq!(got, expected, "wrong result: {what}");
}

/// Keeps the core busy for about `time`.
pub fn work(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Measures the figures of `injected`: `spawn` spawns a task that calls its argument when it
/// starts.
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

/// Runs the client of `paced_latency`, and returns its figures: `sleep` pauses it, `ask` asks the
/// echo actor.
pub async fn paced<S, A>(sleep: impl Fn(Duration) -> S, ask: impl Fn(u64) -> A) -> Vec<Figure>
where
    S: Future,
    A: Future<Output = u64>,
{
    let mut asks = Vec::with_capacity(PACED as usize);
    let begin = Instant::now();
    for n in 0..PACED {
        sleep(PAUSE).await;
        let asked = Instant::now();
        check("echo", ask(n).await, n);
        asks.push(asked.elapsed());
    }
    let cycle = Figure {
        what: CYCLE,
        value: begin.elapsed().as_secs_f64() * 1e3 / PACED as f64,
    };
    let mut figures = percentiles(asks);
    figures.push(cycle);
    figures
}

/// Returns the median, the 99th percentile and the maximum of these times.
pub fn percentiles(times: Vec<Duration>) -> Vec<Figure> {
    ranked(times, [(P50, 500), (P99, 990), (MAX, 1000)])
}

/// Returns what [`percentiles`] does, and the 99.9th percentile.
pub fn detailed(times: Vec<Duration>) -> Vec<Figure> {
    ranked(times, [(P50, 500), (P99, 990), (P999, 999), (MAX, 1000)])
}

/// Returns the times at these ranks, in thousandths.
fn ranked<const N: usize>(
    mut times: Vec<Duration>,
    ranks: [(&'static str, usize); N],
) -> Vec<Figure> {
    times.sort_unstable();
    let last = times.len() - 1;
    let figure = |(what, rank): (_, usize)| {
        let place = (times.len() * rank / 1000).min(last);
        let value = times[place].as_secs_f64() * 1e6;
        Figure { what, value }
    };
    ranks.map(figure).into()
}

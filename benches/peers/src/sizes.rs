//! The sizes of the cases.

use std::time::Duration;

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
/// Requests of `answers` that are in flight at once, and how often that many are sent.
pub const IN_FLIGHT: u64 = 10_000;
pub const WAVES: u64 = 100;
/// Actors with names of `lookup`, and how often each task looks one up.
pub const NAMED: usize = 1000;
pub const LOOKUPS: u64 = 5_000_000;
/// Messages of `counting`, `fan_in` and `bounded`.
pub const NUMBERS: u64 = 5_000_000;
/// Actors that send them in `fan_in`.
pub const TELLERS: u64 = 100;
/// Room in the mailbox of `bounded`.
pub const ROOM: usize = 100;
/// Panics of `restarts`.
pub const RESTARTS: u64 = 100_000;
/// How often cases such as `restartable` measure each of two kinds, and the round trips and
/// messages of `restartable` each time.
pub const LAPS: usize = 15;
pub const LAP_ROUND_TRIPS: u64 = ROUND_TRIPS / 10;
pub const LAP_NUMBERS: u64 = NUMBERS / 10;
/// Actors of the pools, and their clients.
pub const POOLED: usize = 8;
pub const CLIENTS: u64 = 64;
/// Requests of each client of `pool`, and the work of one of its jobs.
pub const POOL_REQUESTS: u64 = 10_000;
pub const POOL_WORK: Duration = Duration::from_micros(1);
/// Requests of a burst of `pool_refusing`, the number of bursts, and the room in its queue.
pub const BURST: u64 = 100;
pub const BURSTS: u64 = 2000;
pub const POOL_ROOM: usize = 2;
/// Loopers, their locks, and the tasks that post jobs to them.
pub const LOOPERS: usize = 1000;
pub const LOOPER_LOCKS: usize = 100;
pub const LOOPER_TASKS: usize = 4;
/// Jobs of each looper in a round, and the number of rounds.
pub const LOOPER_QUEUE: u64 = 4;
pub const LOOPER_ROUNDS: u64 = 250;
/// Rounds each time of the cases that compare two kinds of loopers, which do so [`LAPS`] times.
pub const LOOPER_LAP_ROUNDS: u64 = LOOPER_ROUNDS / 10;
/// Priorities of `looper_priorities`, and lanes of `looper_lanes`.
pub const PRIORITIES: u8 = 64;
pub const LANES: usize = 16;
/// Busy loopers of `looper_world`, the work of each of their tasks, and how often the world stops.
pub const BUSY_LOOPERS: usize = 100;
pub const BUSY_LOOPERS_FOR: Duration = Duration::from_micros(10);
pub const WORLDS: usize = 5000;
/// Actors of `ring`.
pub const RING: usize = 1000;
/// Hops of its token, and of all tokens of `ring_tokens`.
pub const HOPS: u64 = 2_000_000;
/// Tokens of `ring_tokens`.
pub const TOKENS: usize = 100;
/// Creatures of `meetings`, and how often two of them meet.
pub const CREATURES: u64 = 100;
pub const MEETINGS: u64 = 500_000;
/// The Fibonacci number to compute, its value, and the number of calls.
pub const FIB: u64 = 25;
pub const FIB_IS: u64 = 75_025;
pub const FIB_CALLS: u64 = 242_785;
/// Busy actors of `paced_latency` and `mixed_latency`, and the work of each of their messages.
pub const BUSY: usize = 2 * WORKERS;
pub const BUSY_FOR: Duration = Duration::from_micros(1);
/// Questions of its client, and its pause before each.
pub const PACED: u64 = 1000;
pub const PAUSE: Duration = Duration::from_millis(1);
/// Questions of the client of `mixed_latency`.
pub const MIXED: u64 = 20_000;
/// How long its busy actors are measured alone, before and after.
pub const ALONE: Duration = Duration::from_millis(300);
/// An ask that takes longer than this needs an explanation.
pub const LONG_ASK: Duration = Duration::from_micros(500);
/// If a thread that only reads the clock pauses for longer than this, it had no core.
pub const GAP: Duration = Duration::from_micros(100);
/// Tasks of `injected`, and the pause before each. The busy actors are those of `paced_latency`.
pub const INJECTED: usize = 5000;
pub const INJECT_EVERY: Duration = Duration::from_micros(200);
/// Actors of `idle`, and the messages they have handled before.
pub const IDLERS: u64 = 1000;
pub const IDLE_AFTER: u64 = 100_000;
/// How long `idle` and `mixed_latency` settle, and how long `idle` is watched.
pub const SETTLE: Duration = Duration::from_millis(100);
pub const WATCH: Duration = Duration::from_secs(5);

/// Turns of `task_yield`.
pub const YIELDS: u64 = 1_000_000;
/// Tasks of each of the two halves of `task_spawn`.
pub const TASKS: u64 = 1_000_000;
/// Tasks of a set of `task_set`, and the number of sets, one after another.
pub const SET_TASKS: u64 = 10_000;
pub const SETS: u64 = 100;
/// Calls of `unblock`; windows of `unblock_windows`, and the calls of each; calls of
/// `unblock_sleeping`, and how long each sleeps.
pub const BLOCKING_CALLS: u64 = 100_000;
pub const WINDOWS: u64 = 100;
pub const WINDOW: u64 = 1000;
pub const SLEEPING: u64 = 10_000;
pub const SLEEPING_FOR: Duration = Duration::from_micros(100);
/// Depth of the tree of `task_recursive`, and how many tasks that makes.
pub const DEPTH: u32 = 18;
pub const TREE: u64 = (1 << (DEPTH + 1)) - 1;
/// Tasks of `task_bytes`.
pub const PENDING: u64 = 200_000;
/// Wakes of `outside_wake`, and the pause before each: the workers fall asleep in it.
pub const WAKES: u64 = 1000;
pub const WAKE_EVERY: Duration = Duration::from_millis(1);
/// Tasks of `steal` and `unequal`, and the work of each of `steal`.
pub const STOLEN: u64 = 10_000;
pub const STOLEN_WORK: Duration = Duration::from_micros(20);
/// Returns the work of the `n`th task of `unequal`: 5 to 50 µs, in the same irregular order for all
/// peers.
pub fn unequal_work(n: u64) -> Duration {
    // Multiples of the golden ratio, modulo 1, are spread evenly and follow no short period.
    let spread = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    Duration::from_micros(5 + spread % 46)
}
/// Calls of each part of `sqlite`, and the number of concurrent callers in one of them.
pub const CALLS: u64 = 128_000;
pub const CALLERS: u64 = 64;
/// Tasks of `timers_due`. The first deadline leaves time to arm all of them, and the last one is a
/// second later.
pub const SLEEPERS: u64 = 100_000;
pub const ARMED_IN: Duration = Duration::from_millis(500);
pub const DUE_WITHIN: Duration = Duration::from_secs(1);
/// Timers of `timers_cancelled`, and how many of them are armed at once in its second half.
pub const CANCELLED: u64 = 1_000_000;
pub const CANCELLED_AT_ONCE: u64 = 1000;
/// Returns a time within `range` for the `n`th timer: in the same irregular order for all peers.
pub fn irregular_time(n: u64, range: Duration) -> Duration {
    let spread = (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as f64;
    range.mul_f64(spread / f64::from(u32::MAX))
}
/// Asks of a wave of `ask_timeouts`, all of them in flight at once, the number of waves, and the
/// time-out, which is never reached.
pub const LIMITED: u64 = 100_000;
pub const LIMITED_WAVES: u64 = 10;
pub const ASK_LIMIT: Duration = Duration::from_secs(60);
/// Messages of each source of `sources` except the interval, and the period of that.
pub const SOURCED: u64 = 500_000;
pub const TICK_EVERY: Duration = Duration::from_millis(1);
/// Requests of `sources` that are in flight at once.
pub const SOURCED_IN_FLIGHT: u64 = 100;
/// Threads of the cases with bursts, the messages of each in a burst, and the bursts.
pub const THREADS: usize = 16;
pub const OF_BURST: u64 = 1000;
pub const THREAD_BURSTS: u64 = 100;
/// Actors of `bursts_many`.
pub const BURST_ACTORS: usize = 1000;
/// Workers of `workers_64`.
pub const WORKERS_MANY: usize = 64;
/// Actors of `scatter`, `gather` and `topic`, and the rounds.
pub const MEMBERS: u64 = 1000;
pub const MEMBER_ROUNDS: u64 = 1000;
/// Actors of `asks_skewed`, as many clients, and the questions of each.
pub const SKEWED: usize = 64;
pub const SKEWED_ASKS: u64 = 20_000;
/// Messages of `message_1k` and `message_64k`.
pub const KIBIBYTES: u64 = 1_000_000;
pub const LARGE: u64 = 50_000;

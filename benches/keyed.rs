//! The cost of a message by a key, beside one by a name.
//!
//! `cargo bench --bench keyed` prints the medians of alternating rounds, and the ratios that have a
//! goal:
//! - two threads that look for 1000 keys take at most 1.11 times as long as two that look for 1000
//!   names;
//! - a message by a key takes at most 1.3 times as long as one by a name;
//! - a key that comes and goes among a million takes at most twice as long as among a thousand.
//!
//! The arguments `by_name COUNT` or `by_key COUNT` only tell so many messages. Under callgrind, the
//! difference of two counts is what a message takes, with its part of the turns of the actor. The
//! goal of 1.3 holds for these instructions, too. So do `get_name COUNT` and `get_key COUNT`
//! for look-ups in turn, and `refused COUNT KEYS` for calls that the limit of so many keys refuses.

use std::future::Future;
use std::pin::pin;
use std::task::{Context as TaskContext, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use greenroom::registry::{Keyed, Name};
use greenroom::{Context, Handle, Runtime, actor};

const ROUNDS: usize = 9;
const KEYS: u64 = 1000;
const THREADS: u64 = 2;
/// How many messages are told before their actor has a turn.
const BURST: u64 = 64;

type Numbers = Keyed<u64, u64>;

async fn tally(mut cx: Context<u64>) -> u64 {
    let mut sum = 0;
    while let Some(number) = cx.recv().await {
        sum += number;
    }
    sum
}

fn nanos_each(begun: Instant, count: u64) -> f64 {
    begun.elapsed().as_nanos() as f64 / count as f64
}

fn keyed(runtime: &Runtime) -> Numbers {
    let set = Keyed::builder(|_| actor(tally)).on(runtime);
    let set = set.idle(Duration::from_secs(3600));
    set.build().expect("the runtime runs")
}

fn named(runtime: &Runtime) -> Vec<(Name<u64>, Handle<u64, u64>)> {
    let name = |key| {
        let name = Name::owned(format!("actor {key}")).on(runtime);
        let holder = actor(tally).on(runtime).spawn();
        name.register(&holder).expect("the name is free");
        (name, holder)
    };
    (0..KEYS).map(name).collect()
}

/// Polls a future that is ready at once.
fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut TaskContext::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the actor of the key is open"),
    }
}

/// Returns the nanoseconds of a look-up on two threads.
fn look_up(count: u64, find: impl Fn(u64) + Sync) -> f64 {
    let begun = Instant::now();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let find = &find;
            scope.spawn(move || {
                // By a number without a factor in common with that of the keys.
                (0..count).for_each(|n| find((n * 7 + thread * KEYS / 2) % KEYS));
            });
        }
    });
    nanos_each(begun, THREADS * count)
}

/// Returns the nanoseconds of a message on a worker, with its part of the turns of the actor.
async fn tell(count: u64, tell: impl Fn(u64)) -> f64 {
    let begun = Instant::now();
    for number in 0..count {
        tell(number);
        if number % BURST == BURST - 1 {
            greenroom::yield_now().await;
        }
    }
    nanos_each(begun, count)
}

/// Returns the nanoseconds of a key that comes and goes again, of so many.
fn come_and_go(runtime: &Runtime, keys: u64) -> f64 {
    let set = Keyed::builder(|_| actor(tally)).on(runtime);
    let set = set.build().expect("the runtime runs");
    let begun = Instant::now();
    for key in 0..keys {
        set.tell(&key, 1).expect("it is started");
    }
    set.stop();
    runtime.block_on(set.ended());
    nanos_each(begun, keys)
}

/// Asks so often for one more key than a set may have, of whose actors there are other addresses.
fn refused(count: u64, keys: u64) {
    let runtime = Runtime::builder().workers(1).build();
    let runtime = runtime.expect("a runtime with one worker");
    let set = Keyed::builder(|_| actor(tally)).on(&runtime);
    let set = set.limit(keys as usize).build().expect("the runtime runs");
    let found = |key| now(set.get_or_spawn(&key)).expect("it is started");
    let _held: Vec<_> = (0..keys).map(found).collect();
    assert!((0..count).all(|_| set.tell(&keys, 1).is_err()));
}

/// Tells so many messages, or looks so often, to be counted.
fn count(case: &str, count: u64) {
    let runtime = Runtime::builder().workers(1).build();
    let runtime = runtime.expect("a runtime with one worker");
    let (set, names) = (keyed(&runtime), named(&runtime));
    let name = names[7].0.clone();
    match case {
        "get_name" => (0..count).for_each(|n| drop(names[(n % KEYS) as usize].0.get().unwrap())),
        "get_key" => (0..count).for_each(|n| drop(now(set.get_or_spawn(&(n % KEYS))).unwrap())),
        "by_name" => {
            let told = tell(count, move |n| name.get().unwrap().tell(n).unwrap());
            runtime.block_on(runtime.spawn(told));
        }
        _ => {
            let told = tell(count, move |n| set.tell(&7, n).unwrap());
            runtime.block_on(runtime.spawn(told));
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |text: &str| text.parse().expect("COUNT and KEYS are numbers");
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [
            case @ ("by_name" | "by_key" | "get_name" | "get_key"),
            times,
            ..,
        ] => {
            return count(case, number(times));
        }
        ["refused", times, keys, ..] => return refused(number(times), number(keys)),
        _ => {}
    }
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let (rounds, count, million) = match is_bench {
        true => (ROUNDS, 1_000_000, 1_000_000),
        false => (1, 1000, 2000),
    };
    let runtime = Runtime::builder().workers(1).build();
    let runtime = runtime.expect("a runtime with one worker");
    let (set, names) = (keyed(&runtime), named(&runtime));
    for key in 0..KEYS {
        set.tell(&key, 1).expect("it is started");
    }
    let mut taken = [const { Vec::new() }; 6];
    for _ in 0..rounds {
        let by_name = look_up(count, |key| drop(names[key as usize].0.get().unwrap()));
        let by_key = look_up(count, |key| drop(now(set.get_or_spawn(&key)).unwrap()));
        let name = names[7].0.clone();
        let told = tell(count, move |n| name.get().unwrap().tell(n).unwrap());
        let name_told = runtime.block_on(runtime.spawn(told));
        let own = set.clone();
        let told = tell(count, move |n| own.tell(&7, n).unwrap());
        let key_told = runtime.block_on(runtime.spawn(told));
        let few = come_and_go(&runtime, KEYS);
        let many = come_and_go(&runtime, million);
        let times = [by_name, by_key, name_told, key_told, few, many];
        for (taken, time) in taken.iter_mut().zip(times) {
            taken.push(time);
        }
    }
    let medians = taken.map(|mut taken: Vec<f64>| {
        taken.sort_by(f64::total_cmp);
        taken[rounds / 2]
    });
    let rows = [
        ("a look-up of 1000 names", "of 1000 keys", 1.0 / 0.9),
        ("a message by a name", "by a key", 1.3),
        ("a key of a thousand", "of a million", 2.0),
    ];
    for ((first, second, goal), times) in rows.into_iter().zip(medians.chunks(2)) {
        let ratio = times[1] / times[0];
        let met = if ratio <= goal { "met" } else { "missed" };
        println!(
            "{first}: {:.0} ns, {second}: {:.0} ns, ratio {ratio:.2}, goal {goal:.2}: {met}",
            times[0], times[1]
        );
    }
}

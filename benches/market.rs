//! The cost of a market, beside a call on the blocking pool and beside a pool written by hand.
//!
//! `cargo bench --bench market` prints the medians of alternating rounds, on a runtime with two
//! workers, and the ratios that have a goal:
//! - a job that a task offers and awaits takes at most 1.5 times as long as a call of `unblock`;
//! - to offer a job and take one takes at most 3 times as long with a million waiting jobs as with
//!   a hundred, without other options and in a market with all rules of order: jobs age, keys have a
//!   rate, and half of the jobs are delayed;
//! - 8 threads that offer jobs of 64 keys are ahead of a pool of a `Mutex`, a `BTreeMap` and
//!   `Condvar`s.

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use greenroom::market::{Job, Market};
use greenroom::{Runtime, unblock};

const ROUNDS: usize = 9;
const PRODUCERS: u64 = 8;
const KEYS: u64 = 64;
/// Workers of both pools, and how many jobs may wait in each.
const WORKERS: usize = 4;
const ROOM: usize = 1000;
const HUNDRED: usize = 100;
const MILLION: usize = 1_000_000;
/// Longer than a round takes.
const HOUR: Duration = Duration::from_secs(3600);

/// How often things are done: for a moment only in `cargo test --benches`.
#[derive(Clone, Copy)]
struct Sizes {
    calls: u64,
    many: usize,
}

fn nanos_each(begun: Instant, count: u64) -> f64 {
    begun.elapsed().as_nanos() as f64 / count as f64
}

/// Returns the nanoseconds of a call, and of a job.
async fn round_trips(calls: u64) -> [f64; 2] {
    let begun = Instant::now();
    for call in 0..calls {
        assert_eq!(unblock(move || call).await, call);
    }
    let alone = nanos_each(begun, calls);
    let market = Market::<u64>::builder().build().expect("a market");
    let begun = Instant::now();
    for call in 0..calls {
        let job = market.offer(Job::new(move || call).key(call)).await;
        assert_eq!(job.expect("there is room").await.expect("it ran"), call);
    }
    let offered = nanos_each(begun, calls);
    market.drain().await;
    [alone, offered]
}

/// Returns the nanoseconds to offer a job and take one while so many wait.
///
/// The only worker is busy until so many wait. Then each job that it takes offers another one.
async fn beside(waiting: usize, jobs: u64, has_rules: bool) -> f64 {
    let mut market = Market::<u64>::builder().max_workers(1);
    if has_rules {
        market = market.aging(HOUR).rate(1, HOUR);
    }
    let market = market.capacity(usize::MAX).build().expect("a market");
    let (go, gate) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    let first = Job::new(move || gate.recv().expect("the market is filled"));
    drop(market.offer(first.priority(2)).await);
    let mut keys = fastrand::Rng::with_seed(waiting as u64);
    for key in 0..waiting {
        let delay = if has_rules && key % 2 == 0 {
            HOUR
        } else {
            Duration::ZERO
        };
        let (key, priority) = (jobs + 1 + key as u64, keys.u32(..) % 2);
        let job = Job::new(|| ()).key(key).priority(priority).after(delay);
        drop(market.offer(job).await);
    }
    offer_another(market.clone(), jobs, tell);
    let begun = Instant::now();
    go.send(()).expect("the first job waits");
    told.recv().expect("the last job ran");
    let each = nanos_each(begun, jobs);
    market.stop();
    each
}

/// Offers a job of the highest priority, which offers another one, as often as `left` says.
fn offer_another(market: Market<u64>, left: u64, tell: mpsc::Sender<()>) {
    let own = market.clone();
    let job = move || match left {
        1 => tell.send(()).expect("the end is awaited"),
        _ => offer_another(own, left - 1, tell),
    };
    let offered = market.try_offer(Job::new(job).key(left).priority(3));
    drop(offered.expect("there is room, and the key is free"));
}

/// Starts threads that each offer jobs, and returns the nanoseconds until all jobs have run.
fn produce(jobs: u64, offer: impl Fn(u64, Arc<AtomicU64>) + Sync, end: impl FnOnce()) -> f64 {
    let sum = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let (offer, sum) = (&offer, &sum);
            scope.spawn(move || {
                for number in 0..jobs {
                    offer(producer * jobs + number, sum.clone());
                }
            });
        }
    });
    end();
    let each = nanos_each(begun, PRODUCERS * jobs);
    assert_eq!(
        sum.load(Ordering::Relaxed),
        PRODUCERS * jobs,
        "jobs were lost"
    );
    each
}

fn work(sum: &AtomicU64) {
    sum.fetch_add(black_box(1), Ordering::Relaxed);
}

fn with_market(jobs: u64) -> f64 {
    let market = Market::<u64>::builder().max_workers(WORKERS).capacity(ROOM);
    let market = market.capacity_per_key(ROOM);
    let market = market.build().expect("a market");
    let drained = market.drain();
    let offer = |number, sum: Arc<AtomicU64>| {
        let job = Job::new(move || work(&sum)).key(number % KEYS);
        drop(market.offer_blocking(job).expect("the market is open"));
    };
    produce(jobs, offer, || smol::block_on(drained))
}

/// The pool that a program would write itself: the first job whose key is free runs next.
#[derive(Default)]
struct ByHand {
    state: Mutex<State>,
    has_work: Condvar,
    has_room: Condvar,
}

type Work = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    /// The jobs by their number, with their keys.
    waiting: BTreeMap<u64, (u64, Work)>,
    served: BTreeSet<u64>,
    added: u64,
    is_closed: bool,
}

impl ByHand {
    fn offer(&self, key: u64, job: Work) {
        let mut state = self.state.lock().unwrap();
        while state.waiting.len() >= ROOM {
            state = self.has_room.wait(state).unwrap();
        }
        state.added += 1;
        let number = state.added;
        state.waiting.insert(number, (key, job));
        drop(state);
        self.has_work.notify_one();
    }

    fn serve(&self) {
        let mut state = self.state.lock().unwrap();
        loop {
            let is_free = |(_, (key, _)): &(&u64, &(u64, _))| !state.served.contains(key);
            let Some(number) = state
                .waiting
                .iter()
                .find(is_free)
                .map(|(number, _)| *number)
            else {
                if state.is_closed && state.waiting.is_empty() {
                    return;
                }
                state = self.has_work.wait(state).unwrap();
                continue;
            };
            let (key, job) = state.waiting.remove(&number).unwrap();
            state.served.insert(key);
            drop(state);
            self.has_room.notify_one();
            job();
            state = self.state.lock().unwrap();
            state.served.remove(&key);
            // A job of this key may be the only one that a worker waits for.
            self.has_work.notify_one();
        }
    }
}

fn by_hand(jobs: u64) -> f64 {
    let pool = Arc::new(ByHand::default());
    let worker = |_| {
        let pool = pool.clone();
        thread::spawn(move || pool.serve())
    };
    let workers: Vec<_> = (0..WORKERS).map(worker).collect();
    let offer = |number, sum: Arc<AtomicU64>| {
        pool.offer(number % KEYS, Box::new(move || work(&sum)));
    };
    produce(jobs, offer, || {
        pool.state.lock().unwrap().is_closed = true;
        pool.has_work.notify_all();
        workers.into_iter().for_each(|it| it.join().unwrap());
    })
}

fn main() {
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let (sizes, rounds) = match is_bench {
        true => (
            Sizes {
                calls: 100_000,
                many: MILLION,
            },
            ROUNDS,
        ),
        false => (
            Sizes {
                calls: 100,
                many: 10 * HUNDRED,
            },
            1,
        ),
    };
    let runtime = Runtime::builder().workers(2).build();
    let runtime = runtime.expect("a runtime with two workers");
    let mut taken = [const { Vec::new() }; 8];
    for _ in 0..rounds {
        let trips = runtime.block_on(runtime.spawn(round_trips(sizes.calls)));
        let beside = |waiting, has_rules| {
            runtime.block_on(runtime.spawn(beside(waiting, sizes.calls, has_rules)))
        };
        let plain = [beside(HUNDRED, false), beside(sizes.many, false)];
        let ruled = [beside(HUNDRED, true), beside(sizes.many, true)];
        let pools = [by_hand(sizes.calls / 4), with_market(sizes.calls / 4)];
        let times = [trips, plain, ruled, pools].concat();
        taken
            .iter_mut()
            .zip(times)
            .for_each(|(taken, time)| taken.push(time));
    }
    let medians = taken.map(|mut taken: Vec<f64>| {
        taken.sort_by(f64::total_cmp);
        taken[rounds / 2]
    });
    let rows = [
        ("a call of unblock", "a job of a market", 1.5),
        ("a job beside a hundred", "beside a million", 3.0),
        ("a job with rules beside a hundred", "beside a million", 3.0),
        ("a job of the pool by hand", "of a market", 1.0),
    ];
    for ((first, second, goal), times) in rows.into_iter().zip(medians.chunks(2)) {
        let ratio = times[1] / times[0];
        let met = if ratio <= goal { "met" } else { "missed" };
        println!(
            "{first} {:.0} ns, {second} {:.0} ns: {ratio:.2} x, goal at most {goal:.1} {met}",
            times[0], times[1],
        );
    }
}

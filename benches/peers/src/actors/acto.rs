//! acto: actors are async functions over an `ActoCell`. A mailbox is always bounded, but unused
//! capacity costs nothing: "unbounded" is the largest possible capacity.

mod crowds;
mod large;
mod meetings;
mod timeouts;

use std::ops::Range;
use std::time::Instant;

use acto::{
    AcTokio, AcTokioRuntime, ActoCell, ActoHandle, ActoInput, ActoRef, ActoRuntime, MailboxSize,
};
use tokio::sync::{Semaphore, oneshot};

use super::{adders_sum, places, shares};
use crate::cases::Case;
use crate::executors::tokio::block_once;
use crate::figures::{self, Figure, check, paced, rate, sum_below};
use crate::load::{Load, Turns};
use crate::mixed::mixed;
use crate::process::{Lap, Memory, Peak, Stopwatch, watch_idle};
use crate::sizes;

/// Runs one case.
pub fn run(case: Case) -> Option<Vec<Figure>> {
    Some(match case {
        Case::Spawn => inside(spawning),
        Case::IdleMemory => inside(idle_memory),
        Case::PingPong => inside(ping_pong),
        Case::Ask => inside(ask),
        Case::Counting => inside(counting),
        Case::FanIn => inside(fan_in),
        Case::Ring => inside(ring),
        Case::RingTokens => inside(ring_tokens),
        Case::Meetings => inside(meetings::meetings),
        Case::Fib => inside(fib),
        Case::Bounded => inside(bounded),
        Case::PacedLatency => inside(paced_latency),
        Case::MixedLatency | Case::MixedControl => {
            inside(move |runtime| mixed_latency(runtime, case))
        }
        Case::Idle => {
            let (_runtime, _held) = start(idle);
            watch_idle()
        }
        Case::AskTimeouts => inside(timeouts::timeouts),
        Case::BurstsOne => crowds::bursts(1),
        Case::BurstsMany => crowds::bursts(sizes::BURST_ACTORS),
        Case::ManyWorkers => crowds::workers(),
        Case::Scatter => inside(crowds::scatter),
        Case::Gather => inside(crowds::gather),
        Case::AsksSkewed => inside(crowds::asks),
        Case::Message1K => inside(|runtime| large::messages::<1024>(runtime, sizes::KIBIBYTES)),
        Case::Message64K => inside(|runtime| large::messages::<65_536>(runtime, sizes::LARGE)),
        _ => return None,
    })
}

type Cell<M> = ActoCell<M, AcTokioRuntime>;

fn inside<F>(driver: impl FnOnce(AcTokioRuntime) -> F) -> Vec<Figure>
where
    F: Future<Output = Vec<Figure>> + Send + 'static,
{
    start(driver).1
}

/// Starts a runtime, and runs `driver` as a task on a worker; returns both the runtime and the
/// output.
fn start<F>(driver: impl FnOnce(AcTokioRuntime) -> F) -> (AcTokio, F::Output)
where
    F: Future<Output: Send> + Send + 'static,
{
    start_of(sizes::WORKERS, driver)
}

/// Does what [`start`] does, with this number of workers.
fn start_of<F>(workers: usize, driver: impl FnOnce(AcTokioRuntime) -> F) -> (AcTokio, F::Output)
where
    F: Future<Output: Send> + Send + 'static,
{
    let runtime = AcTokio::new("peer", workers).expect("the threads can be started");
    let driver = driver(runtime.with_mailbox_size(Semaphore::MAX_PERMITS));
    let tokio = runtime.with_rt(tokio::runtime::Handle::clone);
    let tokio = tokio.expect("it is running");
    let given = tokio.block_on(async { tokio::spawn(driver).await });
    (runtime, given.expect("the driver does not panic"))
}

/// Returns the next message, or `None` if no sender is left.
async fn message<M: Send + 'static>(cell: &mut Cell<M>) -> Option<M> {
    match cell.recv().await {
        ActoInput::Message(message) => Some(message),
        ActoInput::NoMoreSenders | ActoInput::Supervision { .. } => None,
    }
}

/// A message of 16 bytes, a typical size.
enum Tally {
    Add(u64),
    Total(oneshot::Sender<u64>),
}

/// Adds each number to its state, and sends the sum to `collector`.
async fn adder(mut cell: Cell<Tally>, state: u64, collector: ActoRef<u64>) {
    let mut total = state;
    while let Some(message) = message(&mut cell).await {
        match message {
            Tally::Add(n) => {
                total += n;
                assert!(collector.send(total), "the collector waits for all");
            }
            Tally::Total(reply) => {
                let _ = reply.send(total);
            }
        }
    }
}

/// Sums up `count` numbers.
async fn collect(mut cell: Cell<u64>, count: u64) -> u64 {
    let mut total = 0;
    for _ in 0..count {
        total += message(&mut cell).await.expect("all are told");
    }
    total
}

/// Spawns `count` adders and sends 1 to each; stores the addresses in `held`.
async fn spawn_adders(
    runtime: &AcTokioRuntime,
    count: u64,
    held: &mut Vec<Option<ActoRef<Tally>>>,
) {
    let collector = runtime.spawn_actor("collector", |cell| collect(cell, count));
    for (n, place) in (0..count).zip(held) {
        let sum = collector.me.clone();
        let actor = runtime.spawn_actor("adder", |cell| adder(cell, n, sum)).me;
        assert!(actor.send(Tally::Add(1)), "the actor lives");
        *place = Some(actor);
    }
    let total = collector.handle.join().await;
    check("sum", total.expect("no panic"), adders_sum(count));
}

async fn spawning(runtime: AcTokioRuntime) -> Vec<Figure> {
    let mut held = places(sizes::SPAWNED);
    let (peak, begin) = (Peak::now(), Instant::now());
    spawn_adders(&runtime, sizes::SPAWNED, &mut held).await;
    vec![
        rate(figures::ACTORS, sizes::SPAWNED, begin),
        peak.growth(sizes::SPAWNED),
    ]
}

async fn idle_memory(runtime: AcTokioRuntime) -> Vec<Figure> {
    let mut held = places(sizes::RESTING);
    let memory = Memory::now();
    spawn_adders(&runtime, sizes::RESTING, &mut held).await;
    memory.growth(sizes::RESTING)
}

enum Token {
    Next(ActoRef<Token>),
    Hop(u64),
    Stop,
}

/// Passes tokens on, with one hop less; sends 1 to `arrived` if a token has none left. At its end
/// it sends to `done` how often it had a token.
async fn station(mut cell: Cell<Token>, arrived: ActoRef<u64>, done: ActoRef<u64>) {
    let (mut seen, mut next) = (0, None);
    while let Some(message) = message(&mut cell).await {
        match message {
            Token::Next(address) => next = Some(address),
            Token::Hop(left) => {
                seen += 1;
                if left == 1 {
                    assert!(arrived.send(1), "the collector waits for all");
                    continue;
                }
                let next: &ActoRef<Token> = next.as_ref().expect("the ring was closed first");
                assert!(next.send(Token::Hop(left - 1)), "the ring is whole");
            }
            Token::Stop => break, // this drops the address of the next one, and so on
        }
    }
    drop(next);
    assert!(done.send(seen), "the collector waits for all");
}

/// Sends `tokens` tokens round `stations` stations, `hops` hops in total.
async fn circle(runtime: &AcTokioRuntime, stations: usize, tokens: usize, hops: u64) -> Lap {
    let arrived = runtime.spawn_actor("arrived", move |cell| collect(cell, tokens as u64));
    let done = runtime.spawn_actor("done", move |cell| collect(cell, stations as u64));
    let ring = (0..stations).map(|_| {
        let (arrived, done) = (arrived.me.clone(), done.me.clone());
        runtime
            .spawn_actor("station", |cell| station(cell, arrived, done))
            .me
    });
    let ring: Vec<_> = ring.collect();
    for (index, station) in ring.iter().enumerate() {
        let next = ring[(index + 1) % stations].clone();
        assert!(station.send(Token::Next(next)), "the actor lives");
    }
    let watch = Stopwatch::start();
    for first in ring.iter().step_by(stations / tokens) {
        let hops = hops / tokens as u64;
        assert!(first.send(Token::Hop(hops)), "the actor lives");
    }
    let count = arrived.handle.join().await;
    let lap = watch.stop();
    check("tokens", count.expect("no panic"), tokens as u64);
    assert!(ring[0].send(Token::Stop), "the actor lives");
    drop(ring);
    let seen = done.handle.join().await;
    check("hops", seen.expect("no panic"), hops);
    lap
}

async fn ping_pong(runtime: AcTokioRuntime) -> Vec<Figure> {
    let lap = circle(&runtime, 2, 1, 2 * sizes::ROUND_TRIPS).await;
    vec![lap.rate(figures::ROUND_TRIPS, sizes::ROUND_TRIPS)]
}

async fn ring(runtime: AcTokioRuntime) -> Vec<Figure> {
    let lap = circle(&runtime, sizes::RING, 1, sizes::HOPS).await;
    vec![lap.rate(figures::HOPS, sizes::HOPS)]
}

async fn ring_tokens(runtime: AcTokioRuntime) -> Vec<Figure> {
    let lap = circle(&runtime, sizes::RING, sizes::TOKENS, sizes::HOPS).await;
    lap.hops_and_cores(sizes::HOPS)
}

/// A number, and the reply that sends it back.
type Question = (u64, oneshot::Sender<u64>);

async fn echo(mut cell: Cell<Question>) {
    while let Some((n, reply)) = message(&mut cell).await {
        let _ = reply.send(n);
    }
}

async fn question(address: &ActoRef<Question>, n: u64) -> u64 {
    let (reply, answer) = oneshot::channel();
    assert!(address.send((n, reply)), "the actor lives");
    answer.await.expect("it answers")
}

async fn ask(runtime: AcTokioRuntime) -> Vec<Figure> {
    let echo = runtime.spawn_actor("echo", echo).me;
    let begin = Instant::now();
    let mut answers = 0;
    for n in 0..sizes::QUESTIONS {
        answers += question(&echo, n).await;
    }
    check("answers", answers, sum_below(sizes::QUESTIONS));
    vec![rate(figures::ASKS, sizes::QUESTIONS, begin)]
}

async fn tally(mut cell: Cell<Tally>) {
    let mut total = 0;
    while let Some(message) = message(&mut cell).await {
        match message {
            Tally::Add(n) => total += n,
            Tally::Total(reply) => {
                let _ = reply.send(total);
            }
        }
    }
}

async fn counting(runtime: AcTokioRuntime) -> Vec<Figure> {
    let actor = runtime.spawn_actor("tally", tally).me;
    let begin = Instant::now();
    for n in 0..sizes::NUMBERS {
        assert!(actor.send(Tally::Add(n)), "the actor lives");
    }
    let (reply, answer) = oneshot::channel();
    assert!(actor.send(Tally::Total(reply)), "the actor lives");
    let sum = answer.await.expect("it answers");
    check("sum", sum, sum_below(sizes::NUMBERS));
    vec![rate(figures::MESSAGES, sizes::NUMBERS, begin)]
}

async fn bounded(runtime: AcTokioRuntime) -> Vec<Figure> {
    let runtime = runtime.with_mailbox_size(sizes::ROOM);
    let actor = runtime.spawn_actor("tally", tally).me;
    let begin = Instant::now();
    for n in 0..sizes::NUMBERS {
        assert!(actor.send_wait(Tally::Add(n)).await, "the actor lives");
    }
    let (reply, answer) = oneshot::channel();
    assert!(
        actor.send_wait(Tally::Total(reply)).await,
        "the actor lives"
    );
    let sum = answer.await.expect("it answers");
    check("sum", sum, sum_below(sizes::NUMBERS));
    vec![rate(figures::MESSAGES, sizes::NUMBERS, begin)]
}

/// Sends the numbers of each range that it receives.
async fn teller(mut cell: Cell<Range<u64>>, collector: ActoRef<u64>) {
    while let Some(numbers) = message(&mut cell).await {
        for n in numbers {
            assert!(collector.send(n), "the collector waits for all");
        }
    }
}

async fn fan_in(runtime: AcTokioRuntime) -> Vec<Figure> {
    let collector = runtime.spawn_actor("collector", |cell| collect(cell, sizes::NUMBERS));
    let tellers = (0..sizes::TELLERS).map(|_| {
        let sum = collector.me.clone();
        runtime.spawn_actor("teller", |cell| teller(cell, sum)).me
    });
    let tellers: Vec<_> = tellers.collect();
    let begin = Instant::now();
    for (teller, share) in tellers.iter().zip(shares()) {
        assert!(teller.send(share), "the actor lives");
    }
    let total = collector.handle.join().await;
    check("sum", total.expect("no panic"), sum_below(sizes::NUMBERS));
    vec![rate(figures::MESSAGES, sizes::NUMBERS, begin)]
}

fn spawn_call(runtime: &AcTokioRuntime, n: u64, parent: ActoRef<u64>) {
    runtime.spawn_actor("call", move |mut cell: Cell<u64>| async move {
        let mut sum = n;
        if n >= 2 {
            let own = cell.me();
            spawn_call(cell.rt(), n - 1, own.clone());
            spawn_call(cell.rt(), n - 2, own);
            sum = 0;
            for _ in 0..2 {
                sum += message(&mut cell).await.expect("both answer");
            }
        }
        assert!(parent.send(sum), "the parent waits");
    });
}

async fn fib(runtime: AcTokioRuntime) -> Vec<Figure> {
    let root = runtime.spawn_actor("root", |cell| collect(cell, 1));
    let begin = Instant::now();
    spawn_call(&runtime, sizes::FIB, root.me);
    let sum = root.handle.join().await;
    check("fib", sum.expect("no panic"), sizes::FIB_IS);
    vec![rate(figures::ACTORS, sizes::FIB_CALLS, begin)]
}

/// Sends messages to itself, each after a little work, until the load ends.
async fn busy(mut cell: Cell<()>, turns: Turns) {
    let own = cell.me();
    while let Some(()) = message(&mut cell).await {
        if !turns.take() {
            break;
        }
        assert!(own.send(()), "we are still here");
    }
}

async fn paced_latency(runtime: AcTokioRuntime) -> Vec<Figure> {
    let echo = runtime.spawn_actor("echo", echo).me;
    let _load = keep_busy(&runtime);
    paced(tokio::time::sleep, |n| question(&echo, n)).await
}

async fn mixed_latency(runtime: AcTokioRuntime, case: Case) -> Vec<Figure> {
    let echo = runtime.spawn_actor("echo", echo).me;
    let load = keep_busy(&runtime);
    mixed(case, load, tokio::time::sleep, |n| question(&echo, n)).await
}

/// Spawns busy actors, which run as long as the returned load is held.
fn keep_busy(runtime: &AcTokioRuntime) -> Load {
    let load = Load::default();
    for turns in load.shares() {
        let actor = runtime.spawn_actor("busy", |cell| busy(cell, turns));
        assert!(actor.me.send(()), "the actor lives");
    }
    load
}

/// Prepares `idle`: dormant actors that have handled messages, and a used blocking thread.
async fn idle(runtime: AcTokioRuntime) -> Vec<ActoRef<Tally>> {
    let spawn = |_| runtime.spawn_actor("tally", tally).me;
    let actors: Vec<_> = (0..sizes::IDLERS).map(spawn).collect();
    for _ in 0..sizes::IDLE_AFTER / sizes::IDLERS {
        for actor in &actors {
            assert!(actor.send(Tally::Add(1)), "the actor lives");
        }
    }
    let mut sum = 0;
    for actor in &actors {
        let (reply, answer) = oneshot::channel();
        assert!(actor.send(Tally::Total(reply)), "the actor lives");
        sum += answer.await.expect("it answers");
    }
    check("sum", sum, sizes::IDLE_AFTER);
    block_once().await;
    actors
}

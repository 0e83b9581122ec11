//! Actors by hand: a tokio task with an unbounded channel, and a oneshot for a reply.

mod answers;
mod crowds;
mod large;
pub mod loopers;
mod meetings;
mod sources;
mod timeouts;

use std::time::Instant;

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use super::{adders_sum, places};
use crate::cases::Case;
use crate::executors::tokio::{Tokio, block_once, inside};
use crate::executors::{Executor, idle_after};
use crate::figures::{self, Figure, check, paced, rate, sum_below};
use crate::load::{Load, Turns};
use crate::mixed::mixed;
use crate::process::{Lap, Memory, Peak, Stopwatch};
use crate::sizes;

/// Runs one case.
pub fn run(case: Case) -> Option<Vec<Figure>> {
    Some(match case {
        Case::Spawn => inside(spawn()),
        Case::IdleMemory => inside(idle_memory()),
        Case::PingPong => inside(ping_pong()),
        Case::Ask => inside(ask()),
        Case::Answers => answers::answers(),
        Case::Counting => inside(counting()),
        Case::FanIn => inside(fan_in()),
        Case::Ring => inside(ring()),
        Case::RingTokens => inside(ring_tokens()),
        Case::Meetings => inside(meetings::meetings()),
        Case::Fib => inside(fib()),
        Case::Bounded => inside(bounded()),
        Case::Looper(jobs) => inside(loopers::spawned(jobs)),
        Case::PacedLatency => inside(paced_latency()),
        Case::MixedLatency | Case::MixedControl => inside(mixed_latency(case)),
        Case::Injected => injected(),
        Case::Idle => idle_after::<Tokio, _>(idle()),
        Case::AskTimeouts => inside(timeouts::timeouts()),
        Case::Sources => inside(sources::sources()),
        Case::BurstsOne => crowds::bursts(1),
        Case::BurstsMany => crowds::bursts(sizes::BURST_ACTORS),
        Case::ManyWorkers => crowds::workers(),
        Case::Scatter => inside(crowds::scatter()),
        Case::Gather => inside(crowds::gather()),
        Case::Topic => inside(crowds::topic()),
        Case::AsksSkewed => inside(crowds::asks()),
        Case::Message1K => inside(large::messages::<1024>(sizes::KIBIBYTES)),
        Case::Message64K => inside(large::messages::<65_536>(sizes::LARGE)),
        _ => return None,
    })
}

/// A message of 16 bytes, a typical size.
enum Tally {
    Add(u64),
    Total(oneshot::Sender<u64>),
}

/// Adds each number to its state, and sends the sum to `collector`.
async fn adder(mut inbox: UnboundedReceiver<Tally>, state: u64, collector: UnboundedSender<u64>) {
    let mut total = state;
    while let Some(message) = inbox.recv().await {
        match message {
            Tally::Add(n) => {
                total += n;
                collector.send(total).expect("the collector waits for all");
            }
            Tally::Total(reply) => {
                let _ = reply.send(total);
            }
        }
    }
}

/// Sums up `count` numbers.
async fn collect(mut inbox: UnboundedReceiver<u64>, count: u64) -> u64 {
    let mut total = 0;
    for _ in 0..count {
        total += inbox.recv().await.expect("all are told");
    }
    total
}

/// Spawns `count` adders and sends 1 to each; stores the addresses in `held`.
async fn spawn_adders(count: u64, held: &mut Vec<Option<UnboundedSender<Tally>>>) {
    let (collector, inbox) = unbounded_channel();
    let total = tokio::spawn(collect(inbox, count));
    for (n, place) in (0..count).zip(held) {
        let (address, inbox) = unbounded_channel();
        tokio::spawn(adder(inbox, n, collector.clone()));
        assert!(address.send(Tally::Add(1)).is_ok(), "the actor lives");
        *place = Some(address);
    }
    check("sum", total.await.expect("no panic"), adders_sum(count));
}

async fn spawn() -> Vec<Figure> {
    let mut held = places(sizes::SPAWNED);
    let (peak, begin) = (Peak::now(), Instant::now());
    spawn_adders(sizes::SPAWNED, &mut held).await;
    vec![
        rate(figures::ACTORS, sizes::SPAWNED, begin),
        peak.growth(sizes::SPAWNED),
    ]
}

async fn idle_memory() -> Vec<Figure> {
    let mut held = places(sizes::RESTING);
    let memory = Memory::now();
    spawn_adders(sizes::RESTING, &mut held).await;
    memory.growth(sizes::RESTING)
}

/// Passes a ball on until it has no hops left; returns how often it had the ball.
async fn player(mut inbox: UnboundedReceiver<u64>, partner: UnboundedSender<u64>) -> u64 {
    let mut balls = 0;
    while let Some(left) = inbox.recv().await {
        balls += 1;
        if left == 1 {
            break; // this drops the last address of the partner
        }
        partner.send(left - 1).expect("the partner waits");
    }
    balls
}

async fn ping_pong() -> Vec<Figure> {
    let (one, one_inbox) = unbounded_channel();
    let (two, two_inbox) = unbounded_channel();
    let begin = Instant::now();
    let players = [
        tokio::spawn(player(one_inbox, two)),
        tokio::spawn(player(two_inbox, one.clone())),
    ];
    one.send(2 * sizes::ROUND_TRIPS).expect("the player lives");
    drop(one);
    for player in players {
        check("balls", player.await.expect("no panic"), sizes::ROUND_TRIPS);
    }
    vec![rate(figures::ROUND_TRIPS, sizes::ROUND_TRIPS, begin)]
}

async fn tally(mut inbox: UnboundedReceiver<Tally>) {
    let mut total = 0;
    while let Some(message) = inbox.recv().await {
        match message {
            Tally::Add(n) => total += n,
            Tally::Total(reply) => {
                let _ = reply.send(total);
            }
        }
    }
}

async fn total(address: &UnboundedSender<Tally>) -> u64 {
    let (reply, answer) = oneshot::channel();
    assert!(address.send(Tally::Total(reply)).is_ok(), "the actor lives");
    answer.await.expect("it answers")
}

async fn ask() -> Vec<Figure> {
    let (address, inbox) = unbounded_channel();
    tokio::spawn(echo(inbox));
    let begin = Instant::now();
    let mut answers = 0;
    for n in 0..sizes::QUESTIONS {
        answers += question(&address, n).await;
    }
    check("answers", answers, sum_below(sizes::QUESTIONS));
    vec![rate(figures::ASKS, sizes::QUESTIONS, begin)]
}

/// A number, and the reply that sends it back.
type Question = (u64, oneshot::Sender<u64>);

async fn echo(mut inbox: UnboundedReceiver<Question>) {
    while let Some((n, reply)) = inbox.recv().await {
        let _ = reply.send(n);
    }
}

async fn question(address: &UnboundedSender<Question>, n: u64) -> u64 {
    let (reply, answer) = oneshot::channel();
    address.send((n, reply)).expect("the actor lives");
    answer.await.expect("it answers")
}

async fn counting() -> Vec<Figure> {
    let (address, inbox) = unbounded_channel();
    tokio::spawn(tally(inbox));
    let begin = Instant::now();
    for n in 0..sizes::NUMBERS {
        assert!(address.send(Tally::Add(n)).is_ok(), "the actor lives");
    }
    check("sum", total(&address).await, sum_below(sizes::NUMBERS));
    vec![rate(figures::MESSAGES, sizes::NUMBERS, begin)]
}

/// Sends `each` numbers for each start that it receives.
async fn teller(mut inbox: UnboundedReceiver<u64>, each: u64, collector: UnboundedSender<u64>) {
    while let Some(first) = inbox.recv().await {
        for n in first..first + each {
            collector.send(n).expect("the collector waits for all");
        }
    }
}

async fn fan_in() -> Vec<Figure> {
    let (collector, inbox) = unbounded_channel();
    let total = tokio::spawn(collect(inbox, sizes::NUMBERS));
    let each = sizes::NUMBERS / sizes::TELLERS;
    let tellers = (0..sizes::TELLERS).map(|_| {
        let (address, inbox) = unbounded_channel();
        tokio::spawn(teller(inbox, each, collector.clone()));
        address
    });
    let tellers: Vec<_> = tellers.collect();
    let begin = Instant::now();
    for (teller, index) in tellers.iter().zip(0..) {
        teller.send(index * each).expect("the actor lives");
    }
    check(
        "sum",
        total.await.expect("no panic"),
        sum_below(sizes::NUMBERS),
    );
    vec![rate(figures::MESSAGES, sizes::NUMBERS, begin)]
}

/// Passes tokens on, with one hop less; sends 0 to `done` if a token has none left. On 0 it ends,
/// and sends to `done` how often it had a token.
async fn station(
    mut inbox: UnboundedReceiver<u64>,
    next: UnboundedSender<u64>,
    done: UnboundedSender<u64>,
) {
    let mut seen = 0;
    while let Some(left) = inbox.recv().await {
        if left == 0 {
            break; // this drops the address of the next one, and so on round the ring
        }
        seen += 1;
        let to = if left == 1 { &done } else { &next };
        to.send(left - 1)
            .expect("the ring is whole, and the driver waits");
    }
    drop(next);
    done.send(seen).expect("the collector waits for all");
}

/// Sends tokens round the ring, from starts all over it. Together they have as many hops as the
/// token of `ring`.
async fn circle(tokens: usize) -> Lap {
    let (done, mut results) = unbounded_channel();
    let (ring, inboxes): (Vec<_>, Vec<_>) = (0..sizes::RING).map(|_| unbounded_channel()).unzip();
    for (index, inbox) in inboxes.into_iter().enumerate() {
        let next = ring[(index + 1) % ring.len()].clone();
        tokio::spawn(station(inbox, next, done.clone()));
    }
    let watch = Stopwatch::start();
    for first in ring.iter().step_by(sizes::RING / tokens) {
        let hops = sizes::HOPS / tokens as u64;
        first.send(hops).expect("the actor lives");
    }
    for _ in 0..tokens {
        check("hops left", results.recv().await.expect("it arrives"), 0);
    }
    let lap = watch.stop();
    ring[0].send(0).expect("the actor lives");
    drop(ring);
    let hops = collect(results, sizes::RING as u64).await;
    check("hops", hops, sizes::HOPS);
    lap
}

async fn ring() -> Vec<Figure> {
    vec![circle(1).await.rate(figures::HOPS, sizes::HOPS)]
}

async fn ring_tokens() -> Vec<Figure> {
    circle(sizes::TOKENS).await.hops_and_cores(sizes::HOPS)
}

fn spawn_fib(n: u64, parent: UnboundedSender<u64>) {
    let (own, mut inbox) = unbounded_channel();
    tokio::spawn(async move {
        let mut sum = n;
        if n >= 2 {
            spawn_fib(n - 1, own.clone());
            spawn_fib(n - 2, own);
            sum = 0;
            for _ in 0..2 {
                sum += inbox.recv().await.expect("both answer");
            }
        }
        parent.send(sum).expect("the parent waits");
    });
}

async fn fib() -> Vec<Figure> {
    let (own, mut inbox) = unbounded_channel();
    let begin = Instant::now();
    spawn_fib(sizes::FIB, own);
    check(
        "fib",
        inbox.recv().await.expect("it answers"),
        sizes::FIB_IS,
    );
    vec![rate(figures::ACTORS, sizes::FIB_CALLS, begin)]
}

async fn bounded() -> Vec<Figure> {
    let (address, mut inbox) = mpsc::channel(sizes::ROOM);
    tokio::spawn(async move {
        let mut total = 0;
        while let Some(message) = inbox.recv().await {
            match message {
                Tally::Add(n) => total += n,
                Tally::Total(reply) => {
                    let _ = reply.send(total);
                }
            }
        }
    });
    let begin = Instant::now();
    for n in 0..sizes::NUMBERS {
        assert!(address.send(Tally::Add(n)).await.is_ok(), "the actor lives");
    }
    let (reply, answer) = oneshot::channel();
    assert!(
        address.send(Tally::Total(reply)).await.is_ok(),
        "the actor lives"
    );
    check(
        "sum",
        answer.await.expect("it answers"),
        sum_below(sizes::NUMBERS),
    );
    vec![rate(figures::MESSAGES, sizes::NUMBERS, begin)]
}

/// Sends messages to itself, each after a little work, until the load ends.
async fn busy(mut inbox: UnboundedReceiver<()>, own: UnboundedSender<()>, turns: Turns) {
    while let Some(()) = inbox.recv().await {
        if !turns.take() {
            break;
        }
        own.send(()).expect("we are still here");
    }
}

async fn paced_latency() -> Vec<Figure> {
    let (address, inbox) = unbounded_channel();
    tokio::spawn(echo(inbox));
    let _load = keep_busy();
    paced(tokio::time::sleep, |n| question(&address, n)).await
}

async fn mixed_latency(case: Case) -> Vec<Figure> {
    let (address, inbox) = unbounded_channel();
    tokio::spawn(echo(inbox));
    mixed(case, keep_busy(), tokio::time::sleep, |n| {
        question(&address, n)
    })
    .await
}

/// Spawns busy actors, which run as long as the returned load is held.
fn keep_busy() -> Load {
    let load = Load::default();
    for turns in load.shares() {
        let (own, inbox) = unbounded_channel();
        own.send(()).expect("its inbox is here");
        tokio::spawn(busy(inbox, own, turns));
    }
    load
}

fn injected() -> Vec<Figure> {
    let runtime = Tokio::start();
    let _load = runtime.inside(async { keep_busy() });
    figures::inject(|started| {
        runtime.0.spawn(async move { started() });
    })
}

/// Prepares `idle`: dormant actors that have handled messages, and a used blocking thread.
async fn idle() -> Vec<UnboundedSender<Tally>> {
    let actors = (0..sizes::IDLERS).map(|_| {
        let (address, inbox) = unbounded_channel();
        tokio::spawn(tally(inbox));
        address
    });
    let actors: Vec<_> = actors.collect();
    for _ in 0..sizes::IDLE_AFTER / sizes::IDLERS {
        for actor in &actors {
            assert!(actor.send(Tally::Add(1)).is_ok(), "the actor lives");
        }
    }
    let mut sum = 0;
    for actor in &actors {
        sum += total(actor).await;
    }
    check("sum", sum, sizes::IDLE_AFTER);
    block_once().await;
    actors
}

//! The actors on greenroom.

mod answers;
mod crowds;
mod large;
mod loopers;
mod meetings;
mod pool;
mod restarts;
mod sources;
mod timeouts;

use std::time::Instant;

use greenroom::registry::Name;
use greenroom::{Address, Context, Handle, Reply, WeakAddress, spawn};

use super::{adders_sum, places};
use crate::cases::Case;
use crate::executors::greenroom::Greenroom;
use crate::executors::{self, Executor, idle_after};
use crate::figures::{self, Figure, check, paced, rate, sum_below};
use crate::load::{Load, Turns};
use crate::lookups::{lookups, names};
use crate::mixed::mixed;
use crate::process::{Lap, Memory, Peak, Stopwatch};
use crate::sizes;

/// Runs one case.
pub fn run(case: Case) -> Option<Vec<Figure>> {
    Some(match case {
        Case::Spawn => inside(spawning()),
        Case::IdleMemory => inside(idle_memory()),
        Case::PingPong => inside(ping_pong()),
        Case::Ask => inside(ask()),
        Case::Answers => answers::answers(),
        Case::Lookup => inside(lookup()),
        Case::Counting => inside(counting()),
        Case::FanIn => inside(fan_in()),
        Case::Ring => inside(ring()),
        Case::RingTokens => inside(ring_tokens()),
        Case::Meetings => inside(meetings::meetings()),
        Case::Fib => inside(fib()),
        Case::Bounded => inside(bounded()),
        Case::Restarts => inside(restarts::restarts()),
        Case::Restartable => inside(restarts::restartable()),
        Case::Pool => inside(pool::pool()),
        Case::PoolRefusing => inside(pool::refusing()),
        Case::PoolPaced => pool::paced(),
        Case::Looper(jobs) => inside(loopers::loopers(jobs)),
        Case::LooperPriorities => inside(loopers::priorities()),
        Case::LooperLanes => inside(loopers::lanes()),
        Case::LooperWorld => loopers::world(),
        Case::PacedLatency => inside(paced_latency()),
        Case::MixedLatency | Case::MixedControl => inside(mixed_latency(case)),
        Case::Injected => injected(),
        Case::Idle => idle_after::<Greenroom, _>(idle()),
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

fn inside(driver: impl Future<Output = Vec<Figure>> + Send + 'static) -> Vec<Figure> {
    executors::inside::<Greenroom, _>(driver)
}

async fn lookup() -> Vec<Figure> {
    let names: Vec<_> = names().into_iter().map(Name::owned).collect();
    let mut held = Vec::new();
    for name in &names {
        let actor = spawn!(|mut cx: Context<u64>| async move { cx.recv().await });
        name.register(&actor).expect("the name is free");
        held.push(actor);
    }
    lookups::<Greenroom, _>(names, |name| name.get().is_ok()).await
}

/// A message of 16 bytes, a typical size.
enum Tally {
    Add(u64),
    Total(Reply<u64>),
}

/// Adds each number to its state, and sends the sum to `collector`.
async fn adder(mut cx: Context<Tally>, state: u64, collector: Address<u64>) {
    let mut total = state;
    while let Some(message) = cx.recv().await {
        match message {
            Tally::Add(n) => {
                total += n;
                collector.tell(total).expect("the collector waits for all");
            }
            Tally::Total(reply) => reply.send(total),
        }
    }
}

/// Sums up `count` numbers.
async fn collect(mut cx: Context<u64>, count: u64) -> u64 {
    let mut total = 0;
    for _ in 0..count {
        total += cx.recv().await.expect("all are told");
    }
    total
}

/// Spawns `count` adders and sends 1 to each; stores the addresses in `held`.
async fn spawn_adders(count: u64, held: &mut Vec<Option<Address<Tally>>>) {
    let collector = spawn!(collect(_, count));
    for (n, place) in (0..count).zip(held) {
        let actor = spawn!(adder(_, n, collector.address()));
        assert!(actor.tell(Tally::Add(1)).is_ok(), "the actor lives");
        *place = Some(actor.address());
    }
    check(
        "sum",
        collector.join().await.expect("no panic"),
        adders_sum(count),
    );
}

async fn spawning() -> Vec<Figure> {
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

enum Play {
    Partner(Address<Play>),
    Ball(u64),
}

/// Passes a ball on until it has no hops left; returns how often it had the ball.
async fn player(mut cx: Context<Play>) -> u64 {
    let (mut balls, mut partner) = (0, None);
    while let Some(message) = cx.recv().await {
        match message {
            Play::Partner(address) => partner = Some(address),
            Play::Ball(left) => {
                balls += 1;
                if left == 1 {
                    break; // this drops the last address of the partner
                }
                let partner = partner.as_ref().expect("a partner was told first");
                assert!(
                    partner.tell(Play::Ball(left - 1)).is_ok(),
                    "the partner waits"
                );
            }
        }
    }
    balls
}

async fn ping_pong() -> Vec<Figure> {
    let players = (spawn!(player(_)), spawn!(player(_)));
    vec![play(players, sizes::ROUND_TRIPS).await]
}

async fn play((one, two): (Handle<Play, u64>, Handle<Play, u64>), round_trips: u64) -> Figure {
    let introduced = one.tell(Play::Partner(two.address())).is_ok()
        && two.tell(Play::Partner(one.address())).is_ok();
    assert!(introduced, "the players live");
    let begin = Instant::now();
    assert!(
        one.tell(Play::Ball(2 * round_trips)).is_ok(),
        "the player lives"
    );
    check("balls", two.join().await.expect("no panic"), round_trips);
    check("balls", one.join().await.expect("no panic"), round_trips);
    rate(figures::ROUND_TRIPS, round_trips, begin)
}

async fn tally(mut cx: Context<Tally>) {
    let mut total = 0;
    while let Some(message) = cx.recv().await {
        match message {
            Tally::Add(n) => total += n,
            Tally::Total(reply) => reply.send(total),
        }
    }
}

/// A number, and the reply that sends it back.
struct Question(u64, Reply<u64>);

async fn echo(mut cx: Context<Question>) {
    while let Some(Question(n, reply)) = cx.recv().await {
        reply.send(n);
    }
}

async fn question(echo: &Address<Question>, n: u64) -> u64 {
    let answer = echo.ask(|reply| Question(n, reply)).await;
    answer.expect("it answers")
}

async fn ask() -> Vec<Figure> {
    let echo = spawn!(echo(_));
    let begin = Instant::now();
    let mut answers = 0;
    for n in 0..sizes::QUESTIONS {
        answers += question(&echo, n).await;
    }
    check("answers", answers, sum_below(sizes::QUESTIONS));
    vec![rate(figures::ASKS, sizes::QUESTIONS, begin)]
}

async fn counting() -> Vec<Figure> {
    vec![count(spawn!(tally(_)), sizes::NUMBERS).await]
}

async fn count(actor: Handle<Tally, ()>, numbers: u64) -> Figure {
    let begin = Instant::now();
    for n in 0..numbers {
        assert!(actor.tell(Tally::Add(n)).is_ok(), "the actor lives");
    }
    let sum = actor.ask(Tally::Total).await.expect("it answers");
    check("sum", sum, sum_below(numbers));
    rate(figures::MESSAGES, numbers, begin)
}

/// Sends `each` numbers for each start that it receives.
async fn teller(mut cx: Context<u64>, each: u64, collector: Address<u64>) {
    while let Some(first) = cx.recv().await {
        for n in first..first + each {
            collector.tell(n).expect("the collector waits for all");
        }
    }
}

async fn fan_in() -> Vec<Figure> {
    let collector = spawn!(collect(_, sizes::NUMBERS));
    let each = sizes::NUMBERS / sizes::TELLERS;
    let tellers = (0..sizes::TELLERS).map(|_| spawn!(teller(_, each, collector.address())));
    let tellers: Vec<_> = tellers.collect();
    let begin = Instant::now();
    for (teller, index) in tellers.iter().zip(0..) {
        teller.tell(index * each).expect("the actor lives");
    }
    check(
        "sum",
        collector.join().await.expect("no panic"),
        sum_below(sizes::NUMBERS),
    );
    vec![rate(figures::MESSAGES, sizes::NUMBERS, begin)]
}

enum Token {
    Next(Address<Token>),
    Hop(u64),
    Stop,
}

/// Passes tokens on, with one hop less; sends 1 to `arrived` if a token has none left. At its end
/// it sends to `done` how often it had a token.
async fn station(mut cx: Context<Token>, arrived: Address<u64>, done: Address<u64>) {
    let (mut seen, mut next) = (0, None);
    while let Some(message) = cx.recv().await {
        match message {
            Token::Next(address) => next = Some(address),
            Token::Hop(left) => {
                seen += 1;
                if left == 1 {
                    arrived.tell(1).expect("the collector waits for all");
                    continue;
                }
                let next: &Address<Token> = next.as_ref().expect("the ring was closed first");
                assert!(next.tell(Token::Hop(left - 1)).is_ok(), "the ring is whole");
            }
            Token::Stop => break, // this drops the address of the next one, and so on
        }
    }
    drop(next);
    done.tell(seen).expect("the collector waits for all");
}

/// Sends tokens round the ring, from starts all over it. Together they have as many hops as the
/// token of `ring`.
async fn circle(tokens: usize) -> Lap {
    let arrived = spawn!(collect(_, tokens as u64));
    let done = spawn!(collect(_, sizes::RING as u64));
    let stations: Vec<_> = (0..sizes::RING)
        .map(|_| spawn!(station(_, arrived.address(), done.address())))
        .collect();
    for (index, station) in stations.iter().enumerate() {
        let next = stations[(index + 1) % stations.len()].address();
        assert!(station.tell(Token::Next(next)).is_ok(), "the actor lives");
    }
    let watch = Stopwatch::start();
    for first in stations.iter().step_by(sizes::RING / tokens) {
        let hops = Token::Hop(sizes::HOPS / tokens as u64);
        assert!(first.tell(hops).is_ok(), "the actor lives");
    }
    let count = arrived.join().await.expect("no panic");
    let lap = watch.stop();
    check("tokens", count, tokens as u64);
    assert!(stations[0].tell(Token::Stop).is_ok(), "the actor lives");
    drop(stations);
    check("hops", done.join().await.expect("no panic"), sizes::HOPS);
    lap
}

async fn ring() -> Vec<Figure> {
    vec![circle(1).await.rate(figures::HOPS, sizes::HOPS)]
}

async fn ring_tokens() -> Vec<Figure> {
    circle(sizes::TOKENS).await.hops_and_cores(sizes::HOPS)
}

/// Computes one call of `fib`. It holds the handles of its children until both have replied;
/// without the handles the children would be closed.
async fn call(mut cx: Context<u64>, n: u64, parent: WeakAddress<u64>) {
    let mut sum = n;
    if n >= 2 {
        let _children = [n - 1, n - 2].map(|n| spawn_call(n, cx.downgrade()));
        sum = 0;
        for _ in 0..2 {
            sum += cx.recv().await.expect("both answer");
        }
    }
    parent.tell(sum).expect("the parent waits");
}

fn spawn_call(n: u64, parent: WeakAddress<u64>) -> Handle<u64, ()> {
    spawn!(call(_, n, parent))
}

async fn fib() -> Vec<Figure> {
    let root = spawn!(collect(_, 1));
    let begin = Instant::now();
    let first = spawn_call(sizes::FIB, root.downgrade());
    // A join would drop the root's only address before the result arrives.
    let keep = root.address();
    check("fib", root.join().await.expect("no panic"), sizes::FIB_IS);
    drop((first, keep));
    vec![rate(figures::ACTORS, sizes::FIB_CALLS, begin)]
}

async fn bounded() -> Vec<Figure> {
    let actor = spawn!(tally(_), capacity = sizes::ROOM);
    let begin = Instant::now();
    for n in 0..sizes::NUMBERS {
        assert!(actor.send(Tally::Add(n)).await.is_ok(), "the actor lives");
    }
    let sum = actor.ask(Tally::Total).await.expect("it answers");
    check("sum", sum, sum_below(sizes::NUMBERS));
    vec![rate(figures::MESSAGES, sizes::NUMBERS, begin)]
}

/// Sends messages to itself, each after a little work, until the load ends.
async fn busy(mut cx: Context<()>, turns: Turns) {
    let own = cx.downgrade();
    while let Some(()) = cx.recv().await {
        if !turns.take() {
            break;
        }
        own.tell(()).expect("we are still here");
    }
}

async fn paced_latency() -> Vec<Figure> {
    let echo = spawn!(echo(_));
    let (_load, _busy) = keep_busy();
    paced(greenroom::time::sleep, |n| question(&echo, n)).await
}

async fn mixed_latency(case: Case) -> Vec<Figure> {
    let echo = spawn!(echo(_));
    let (load, _busy) = keep_busy();
    mixed(case, load, greenroom::time::sleep, |n| question(&echo, n)).await
}

/// Spawns busy actors, which run as long as the returned load is held.
fn keep_busy() -> (Load, Vec<Handle<(), ()>>) {
    let load = Load::default();
    let busy: Vec<_> = load.shares().map(|turns| spawn!(busy(_, turns))).collect();
    for actor in &busy {
        actor.tell(()).expect("the actor lives");
    }
    (load, busy)
}

fn injected() -> Vec<Figure> {
    let runtime = Greenroom::start();
    let (_load, _busy) = runtime.inside(async { keep_busy() });
    figures::inject(|started| runtime.0.spawn(async move { started() }).detach())
}

/// Prepares `idle`: dormant actors that have handled messages, and a used blocking thread.
async fn idle() -> Vec<Handle<Tally, ()>> {
    let actors: Vec<_> = (0..sizes::IDLERS).map(|_| spawn!(tally(_))).collect();
    for _ in 0..sizes::IDLE_AFTER / sizes::IDLERS {
        for actor in &actors {
            assert!(actor.tell(Tally::Add(1)).is_ok(), "the actor lives");
        }
    }
    let mut sum = 0;
    for actor in &actors {
        sum += actor.ask(Tally::Total).await.expect("it answers");
    }
    check("sum", sum, sizes::IDLE_AFTER);
    check("blocking call", greenroom::unblock(|| 1).await, 1);
    actors
}

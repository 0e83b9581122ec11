//! kameo: actors spawned with an unbounded mailbox; `tell(..)` and `ask(..)` are awaited.

use std::convert::Infallible;
use std::ops::Range;
use std::time::Instant;

use kameo::actor::{Actor, ActorRef, Spawn};
use kameo::mailbox;
use kameo::message::{Context, Message};
use tokio::sync::oneshot;

use super::{Caller, Pending, Sum, adders_sum, places, shares};
use crate::cases::Case;
use crate::executors::idle_after;
use crate::executors::tokio::{Tokio, block_once, inside};
use crate::figures::{self, Figure, check, paced, rate, sum_below};
use crate::load::{Load, Turns};
use crate::lookups::{lookups, names};
use crate::mixed::mixed;
use crate::process::{Lap, Memory, Peak, Stopwatch};
use crate::sizes;

/// Fewer than for the other peers: an actor takes 7 KB.
const SPAWNED: u64 = sizes::SPAWNED / 5;

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
        Case::Pool => inside(pool::pool()),
        Case::PoolPaced => pool::paced(),
        Case::PacedLatency => inside(paced_latency()),
        Case::MixedLatency | Case::MixedControl => inside(mixed_latency(case)),
        Case::Idle => idle_after::<Tokio, _>(idle()),
        Case::AskTimeouts => inside(timeouts::timeouts()),
        Case::Sources => inside(sources::sources()),
        Case::BurstsOne => crowds::bursts(1),
        Case::BurstsMany => crowds::bursts(sizes::BURST_ACTORS),
        Case::ManyWorkers => crowds::workers(),
        Case::Scatter => inside(crowds::scatter()),
        Case::Gather => inside(crowds::gather()),
        Case::AsksSkewed => inside(crowds::asks()),
        Case::Message1K => inside(large::messages::<1024>(sizes::KIBIBYTES)),
        Case::Message64K => inside(large::messages::<65_536>(sizes::LARGE)),
        _ => return None,
    })
}

/// Implements `Actor` for types that are their own arguments and have no start-up code.
macro_rules! plain_actors {
    ($($actor:ty),*) => {$(
        impl Actor for $actor {
            type Args = Self;
            type Error = Infallible;

            async fn on_start(actor: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
                Ok(actor)
            }
        }
    )*};
}

mod answers;
mod crowds;
mod large;
mod meetings;
mod pool;
mod restarts;
mod sources;
mod timeouts;

plain_actors!(Collector, Adder, Adding, Station, Echo, Teller, Busy);

fn spawn<A: Actor<Args = A>>(actor: A) -> ActorRef<A> {
    A::spawn_with_mailbox(actor, mailbox::unbounded())
}

struct Add(u64);
struct Total;

/// An actor that sums up all numbers.
struct Collector(Sum);

impl Message<Add> for Collector {
    type Reply = ();

    async fn handle(&mut self, Add(n): Add, _: &mut Context<Self, ()>) {
        self.0.add(n);
    }
}

/// An actor that adds each number to its state, and sends the sum to the collector.
struct Adder {
    total: u64,
    collector: ActorRef<Collector>,
}

impl Message<Add> for Adder {
    type Reply = ();

    async fn handle(&mut self, Add(n): Add, _: &mut Context<Self, ()>) {
        self.total += n;
        let told = self.collector.tell(Add(self.total)).await;
        told.expect("the collector waits for all");
    }
}

/// Spawns `count` adders and sends 1 to each; stores the addresses in `held`.
async fn spawn_adders(count: u64, held: &mut Vec<Option<ActorRef<Adder>>>) {
    let (sum, all) = Sum::of(count);
    let collector = spawn(Collector(sum));
    for (total, place) in (0..count).zip(held) {
        let collector = collector.clone();
        let actor = spawn(Adder { total, collector });
        actor.tell(Add(1)).await.expect("the actor lives");
        *place = Some(actor);
    }
    check("sum", all.await.expect("all are told"), adders_sum(count));
}

async fn spawning() -> Vec<Figure> {
    let mut held = places(SPAWNED);
    let (peak, begin) = (Peak::now(), Instant::now());
    spawn_adders(SPAWNED, &mut held).await;
    vec![rate(figures::ACTORS, SPAWNED, begin), peak.growth(SPAWNED)]
}

async fn idle_memory() -> Vec<Figure> {
    let mut held = places(sizes::RESTING);
    let memory = Memory::now();
    spawn_adders(sizes::RESTING, &mut held).await;
    memory.growth(sizes::RESTING)
}

/// An actor that passes tokens on, with one hop less, and counts them.
#[derive(Default)]
struct Station {
    next: Option<ActorRef<Station>>,
    seen: u64,
}

struct Next(ActorRef<Station>);
struct Hop(u64, oneshot::Sender<()>);
struct Seen;

impl Message<Next> for Station {
    type Reply = ();

    async fn handle(&mut self, Next(next): Next, _: &mut Context<Self, ()>) {
        self.next = Some(next);
    }
}

impl Message<Hop> for Station {
    type Reply = ();

    async fn handle(&mut self, Hop(left, done): Hop, _: &mut Context<Self, ()>) {
        self.seen += 1;
        if left == 1 {
            done.send(()).expect("the driver waits");
        } else {
            let next = self.next.as_ref().expect("the ring was closed first");
            let told = next.tell(Hop(left - 1, done)).await;
            told.expect("the ring is whole");
        }
    }
}

impl Message<Seen> for Station {
    type Reply = u64;

    async fn handle(&mut self, Seen: Seen, _: &mut Context<Self, u64>) -> u64 {
        self.seen
    }
}

/// Sends `tokens` tokens round `stations` stations, `hops` hops in total.
async fn circle(stations: usize, tokens: usize, hops: u64) -> Lap {
    let ring: Vec<_> = (0..stations).map(|_| spawn(Station::default())).collect();
    for (index, station) in ring.iter().enumerate() {
        let next = ring[(index + 1) % stations].clone();
        station.tell(Next(next)).await.expect("the actor lives");
    }
    let (watch, mut arrivals) = (Stopwatch::start(), Vec::new());
    for first in ring.iter().step_by(stations / tokens) {
        let (done, arrival) = oneshot::channel();
        let told = first.tell(Hop(hops / tokens as u64, done)).await;
        told.expect("the actor lives");
        arrivals.push(arrival);
    }
    for arrival in arrivals {
        arrival.await.expect("the token arrives");
    }
    let lap = watch.stop();
    let mut seen = 0;
    for station in &ring {
        seen += station.ask(Seen).await.expect("it answers");
    }
    check("hops", seen, hops);
    lap
}

async fn ping_pong() -> Vec<Figure> {
    let lap = circle(2, 1, 2 * sizes::ROUND_TRIPS).await;
    vec![lap.rate(figures::ROUND_TRIPS, sizes::ROUND_TRIPS)]
}

async fn ring() -> Vec<Figure> {
    let lap = circle(sizes::RING, 1, sizes::HOPS).await;
    vec![lap.rate(figures::HOPS, sizes::HOPS)]
}

async fn ring_tokens() -> Vec<Figure> {
    let lap = circle(sizes::RING, sizes::TOKENS, sizes::HOPS).await;
    lap.hops_and_cores(sizes::HOPS)
}

async fn lookup() -> Vec<Figure> {
    let mut held = Vec::new();
    for name in names() {
        let actor = spawn(Echo);
        actor.register(name).expect("the name is free");
        held.push(actor);
    }
    lookups::<Tokio, _>(names(), |name| {
        matches!(ActorRef::<Echo>::lookup(name.as_str()), Ok(Some(_)))
    })
    .await
}

struct Echo;
struct Question(u64);

impl Message<Question> for Echo {
    type Reply = u64;

    async fn handle(&mut self, Question(n): Question, _: &mut Context<Self, u64>) -> u64 {
        n
    }
}

async fn question(echo: &ActorRef<Echo>, n: u64) -> u64 {
    echo.ask(Question(n)).await.expect("it answers")
}

async fn ask() -> Vec<Figure> {
    let echo = spawn(Echo);
    let begin = Instant::now();
    let mut answers = 0;
    for n in 0..sizes::QUESTIONS {
        answers += question(&echo, n).await;
    }
    check("answers", answers, sum_below(sizes::QUESTIONS));
    vec![rate(figures::ASKS, sizes::QUESTIONS, begin)]
}

/// An actor that adds up all numbers.
#[derive(Default)]
struct Adding(u64);

impl Message<Add> for Adding {
    type Reply = ();

    async fn handle(&mut self, Add(n): Add, _: &mut Context<Self, ()>) {
        self.0 += n;
    }
}

impl Message<Total> for Adding {
    type Reply = u64;

    async fn handle(&mut self, Total: Total, _: &mut Context<Self, u64>) -> u64 {
        self.0
    }
}

async fn count(actor: ActorRef<Adding>) -> Vec<Figure> {
    let begin = Instant::now();
    for n in 0..sizes::NUMBERS {
        actor.tell(Add(n)).await.expect("the actor lives");
    }
    let sum = actor.ask(Total).await.expect("it answers");
    check("sum", sum, sum_below(sizes::NUMBERS));
    vec![rate(figures::MESSAGES, sizes::NUMBERS, begin)]
}

async fn counting() -> Vec<Figure> {
    count(spawn(Adding::default())).await
}

async fn bounded() -> Vec<Figure> {
    let mailbox = mailbox::bounded(sizes::ROOM);
    count(Adding::spawn_with_mailbox(Adding::default(), mailbox)).await
}

/// An actor that sends the numbers of a range.
struct Teller {
    collector: ActorRef<Collector>,
}

impl Message<Range<u64>> for Teller {
    type Reply = ();

    async fn handle(&mut self, numbers: Range<u64>, _: &mut Context<Self, ()>) {
        for n in numbers {
            let told = self.collector.tell(Add(n)).await;
            told.expect("the collector waits for all");
        }
    }
}

async fn fan_in() -> Vec<Figure> {
    let (sum, total) = Sum::of(sizes::NUMBERS);
    let collector = spawn(Collector(sum));
    let tellers = (0..sizes::TELLERS).map(|_| {
        let collector = collector.clone();
        spawn(Teller { collector })
    });
    let tellers: Vec<_> = tellers.collect();
    let begin = Instant::now();
    for (teller, share) in tellers.iter().zip(shares()) {
        teller.tell(share).await.expect("the actor lives");
    }
    check(
        "sum",
        total.await.expect("all are told"),
        sum_below(sizes::NUMBERS),
    );
    vec![rate(figures::MESSAGES, sizes::NUMBERS, begin)]
}

/// A call of `fib`, which receives the results of its children as messages. It ends when its last
/// address is dropped.
struct Call {
    pending: Pending,
    parent: Option<Caller<ActorRef<Call>>>,
}

impl Call {
    fn call(n: u64, parent: Caller<ActorRef<Self>>) {
        Self::spawn_with_mailbox((n, parent), mailbox::unbounded());
    }

    async fn answer(&mut self, sum: u64) {
        match self.parent.take().expect("only once") {
            Caller::Actor(parent) => parent.tell(Add(sum)).await.expect("the parent waits"),
            Caller::Driver(driver) => driver.send(sum).expect("the driver waits"),
        }
    }
}

impl Actor for Call {
    type Args = (u64, Caller<ActorRef<Self>>);
    type Error = Infallible;

    async fn on_start((n, parent): Self::Args, own: ActorRef<Self>) -> Result<Self, Infallible> {
        let mut call = Self {
            pending: Pending::default(),
            parent: Some(parent),
        };
        if n < 2 {
            call.answer(n).await;
        } else {
            Self::call(n - 1, Caller::Actor(own.clone()));
            Self::call(n - 2, Caller::Actor(own));
        }
        Ok(call)
    }
}

impl Message<Add> for Call {
    type Reply = ();

    async fn handle(&mut self, Add(n): Add, _: &mut Context<Self, ()>) {
        if let Some(sum) = self.pending.answer(n) {
            self.answer(sum).await;
        }
    }
}

async fn fib() -> Vec<Figure> {
    let (driver, answer) = oneshot::channel();
    let begin = Instant::now();
    Call::call(sizes::FIB, Caller::Driver(driver));
    check("fib", answer.await.expect("it answers"), sizes::FIB_IS);
    vec![rate(figures::ACTORS, sizes::FIB_CALLS, begin)]
}

/// An actor that sends messages to itself, each after a little work, until the load ends.
struct Busy {
    turns: Turns,
}

struct GoOn;

impl Message<GoOn> for Busy {
    type Reply = ();

    async fn handle(&mut self, GoOn: GoOn, cx: &mut Context<Self, ()>) {
        if self.turns.take() {
            let told = cx.actor_ref().tell(GoOn).await;
            told.expect("we are still here");
        }
    }
}

async fn paced_latency() -> Vec<Figure> {
    let echo = spawn(Echo);
    let (_load, _busy) = keep_busy().await;
    paced(tokio::time::sleep, |n| question(&echo, n)).await
}

async fn mixed_latency(case: Case) -> Vec<Figure> {
    let echo = spawn(Echo);
    let (load, _busy) = keep_busy().await;
    mixed(case, load, tokio::time::sleep, |n| question(&echo, n)).await
}

/// Spawns busy actors, which run as long as both returned values are held.
async fn keep_busy() -> (Load, Vec<ActorRef<Busy>>) {
    let (load, mut held) = (Load::default(), Vec::new());
    for turns in load.shares() {
        let busy = spawn(Busy { turns });
        busy.tell(GoOn).await.expect("the actor lives");
        held.push(busy);
    }
    (load, held)
}

/// Prepares `idle`: dormant actors that have handled messages, and a used blocking thread.
async fn idle() -> Vec<ActorRef<Adding>> {
    let actors: Vec<_> = (0..sizes::IDLERS)
        .map(|_| spawn(Adding::default()))
        .collect();
    for _ in 0..sizes::IDLE_AFTER / sizes::IDLERS {
        for actor in &actors {
            actor.tell(Add(1)).await.expect("the actor lives");
        }
    }
    let mut sum = 0;
    for actor in &actors {
        sum += actor.ask(Total).await.expect("it answers");
    }
    check("sum", sum, sizes::IDLE_AFTER);
    block_once().await;
    actors
}

//! actix: actors on two arbiters; `do_send` sends, `send` asks.
//!
//! An actor stays on the arbiter on which it was started, so the arbiters alternate.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use actix::{Actor, ActorContext, Addr, Arbiter, AsyncContext, Context, Handler, Message, System};
use tokio::sync::oneshot;

use super::{Caller, Pending, Sum, adders_sum, places, shares};
use crate::cases::Case;
use crate::executors::tokio::block_once;
use crate::figures::{self, Figure, check, paced, rate, sum_below};
use crate::load::{Load, Turns};
use crate::process::{Lap, Memory, Peak, Stopwatch, watch_idle};
use crate::sizes;

/// Fewer than for the other peers: every message between the arbiters wakes a thread.
const ROUND_TRIPS: u64 = sizes::ROUND_TRIPS / 50;
const QUESTIONS: u64 = sizes::QUESTIONS / 25;
const HOPS: u64 = sizes::HOPS / 50;

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
        Case::PacedLatency => inside(paced_latency),
        Case::Idle => {
            let (_system, _held) = start(idle);
            watch_idle()
        }
        Case::AskTimeouts => inside(timeouts::timeouts),
        Case::Sources => inside(sources::sources),
        Case::BurstsOne => crowds::bursts(1),
        Case::BurstsMany => crowds::bursts(sizes::BURST_ACTORS),
        Case::Scatter => inside(crowds::scatter),
        Case::Gather => inside(crowds::gather),
        Case::AsksSkewed => inside(crowds::asks),
        _ => return None,
    })
}

/// The two arbiters.
struct Arbiters([Arbiter; sizes::WORKERS]);

fn inside<F>(driver: impl FnOnce(Arc<Arbiters>) -> F + Send + 'static) -> Vec<Figure>
where
    F: Future<Output = Vec<Figure>> + 'static,
{
    start(driver).1
}

/// Starts a system, and runs `driver` on the first arbiter; returns both the system and the output.
fn start<F>(
    driver: impl FnOnce(Arc<Arbiters>) -> F + Send + 'static,
) -> ((actix::SystemRunner, Arc<Arbiters>), F::Output)
where
    F: Future<Output: Send> + 'static,
{
    let system = System::new();
    let arbiters = Arc::new(Arbiters([Arbiter::new(), Arbiter::new()]));
    let (given, result) = oneshot::channel();
    let all = Arc::clone(&arbiters);
    arbiters.0[0].spawn_fn(move || {
        actix::spawn(async move {
            let result = driver(all).await;
            assert!(given.send(result).is_ok(), "the system waits");
        });
    });
    let result = system.block_on(result).expect("the driver does not panic");
    ((system, arbiters), result)
}

impl Arbiters {
    /// Starts an actor; the arbiters alternate.
    fn start<A>(&self, actor: A) -> Addr<A>
    where
        A: Actor<Context = Context<A>> + Send,
    {
        static TURN: AtomicUsize = AtomicUsize::new(1);
        let turn = TURN.fetch_add(1, Ordering::Relaxed) % self.0.len();
        A::start_in_arbiter(&self.0[turn].handle(), |_| actor)
    }
}

/// Implements `Actor` for types without start-up code.
macro_rules! plain_actors {
    ($($actor:ty),*) => {$(
        impl Actor for $actor {
            type Context = Context<Self>;
        }
    )*};
}

/// Implements `Message` with these results.
macro_rules! messages {
    ($($message:ty => $result:ty),* $(,)?) => {$(
        impl Message for $message {
            type Result = $result;
        }
    )*};
}

mod crowds;
mod meetings;
mod sources;
mod timeouts;

plain_actors!(Collector, Adder, Adding, Station, Echo, Teller, Busy);
messages! {
    Add => (),
    Total => u64,
    Next => (),
    Hop => (),
    Seen => u64,
    Question => u64,
    Numbers => (),
    GoOn => (),
}

struct Add(u64);
struct Total;

/// An actor that sums up all numbers.
struct Collector(Sum);

impl Handler<Add> for Collector {
    type Result = ();

    fn handle(&mut self, Add(n): Add, _: &mut Context<Self>) {
        self.0.add(n);
    }
}

/// An actor that adds each number to its state, and sends the sum to the collector.
struct Adder {
    total: u64,
    collector: Addr<Collector>,
}

impl Handler<Add> for Adder {
    type Result = ();

    fn handle(&mut self, Add(n): Add, _: &mut Context<Self>) {
        self.total += n;
        self.collector.do_send(Add(self.total));
    }
}

/// Starts `count` adders and sends 1 to each; stores the addresses in `held`.
async fn start_adders(arbiters: &Arbiters, count: u64, held: &mut Vec<Option<Addr<Adder>>>) {
    let (sum, all) = Sum::of(count);
    let collector = arbiters.start(Collector(sum));
    for (total, place) in (0..count).zip(held) {
        let collector = collector.clone();
        let actor = arbiters.start(Adder { total, collector });
        actor.do_send(Add(1));
        *place = Some(actor);
    }
    check("sum", all.await.expect("all are told"), adders_sum(count));
}

async fn spawning(arbiters: Arc<Arbiters>) -> Vec<Figure> {
    let mut held = places(sizes::SPAWNED);
    let (peak, begin) = (Peak::now(), Instant::now());
    start_adders(&arbiters, sizes::SPAWNED, &mut held).await;
    vec![
        rate(figures::ACTORS, sizes::SPAWNED, begin),
        peak.growth(sizes::SPAWNED),
    ]
}

async fn idle_memory(arbiters: Arc<Arbiters>) -> Vec<Figure> {
    let mut held = places(sizes::RESTING);
    let memory = Memory::now();
    start_adders(&arbiters, sizes::RESTING, &mut held).await;
    memory.growth(sizes::RESTING)
}

/// An actor that passes tokens on, with one hop less, and counts them.
#[derive(Default)]
struct Station {
    next: Option<Addr<Station>>,
    seen: u64,
}

struct Next(Addr<Station>);
struct Hop(u64, oneshot::Sender<()>);
struct Seen;

impl Handler<Next> for Station {
    type Result = ();

    fn handle(&mut self, Next(next): Next, _: &mut Context<Self>) {
        self.next = Some(next);
    }
}

impl Handler<Hop> for Station {
    type Result = ();

    fn handle(&mut self, Hop(left, done): Hop, _: &mut Context<Self>) {
        self.seen += 1;
        if left == 1 {
            done.send(()).expect("the driver waits");
        } else {
            let next = self.next.as_ref().expect("the ring was closed first");
            next.do_send(Hop(left - 1, done));
        }
    }
}

impl Handler<Seen> for Station {
    type Result = u64;

    fn handle(&mut self, Seen: Seen, _: &mut Context<Self>) -> u64 {
        self.seen
    }
}

/// Sends `tokens` tokens round `stations` stations, `hops` hops in total.
async fn circle(arbiters: &Arbiters, stations: usize, tokens: usize, hops: u64) -> Lap {
    let ring: Vec<_> = (0..stations)
        .map(|_| arbiters.start(Station::default()))
        .collect();
    for (index, station) in ring.iter().enumerate() {
        let next = ring[(index + 1) % stations].clone();
        station.send(Next(next)).await.expect("the actor lives");
    }
    let (watch, mut arrivals) = (Stopwatch::start(), Vec::new());
    for first in ring.iter().step_by(stations / tokens) {
        let (done, arrival) = oneshot::channel();
        first.do_send(Hop(hops / tokens as u64, done));
        arrivals.push(arrival);
    }
    for arrival in arrivals {
        arrival.await.expect("the token arrives");
    }
    let lap = watch.stop();
    let mut seen = 0;
    for station in &ring {
        seen += station.send(Seen).await.expect("it answers");
    }
    check("hops", seen, hops);
    lap
}

async fn ping_pong(arbiters: Arc<Arbiters>) -> Vec<Figure> {
    let lap = circle(&arbiters, 2, 1, 2 * ROUND_TRIPS).await;
    vec![lap.rate(figures::ROUND_TRIPS, ROUND_TRIPS)]
}

async fn ring(arbiters: Arc<Arbiters>) -> Vec<Figure> {
    let lap = circle(&arbiters, sizes::RING, 1, HOPS).await;
    vec![lap.rate(figures::HOPS, HOPS)]
}

async fn ring_tokens(arbiters: Arc<Arbiters>) -> Vec<Figure> {
    // Here tokens bunch up and few messages wake a thread, so all hops take only a second.
    let lap = circle(&arbiters, sizes::RING, sizes::TOKENS, sizes::HOPS).await;
    lap.hops_and_cores(sizes::HOPS)
}

struct Echo;
struct Question(u64);

impl Handler<Question> for Echo {
    type Result = u64;

    fn handle(&mut self, Question(n): Question, _: &mut Context<Self>) -> u64 {
        n
    }
}

async fn question(echo: &Addr<Echo>, n: u64) -> u64 {
    echo.send(Question(n)).await.expect("it answers")
}

async fn ask(arbiters: Arc<Arbiters>) -> Vec<Figure> {
    let echo = arbiters.start(Echo);
    let begin = Instant::now();
    let mut answers = 0;
    for n in 0..QUESTIONS {
        answers += question(&echo, n).await;
    }
    check("answers", answers, sum_below(QUESTIONS));
    vec![rate(figures::ASKS, QUESTIONS, begin)]
}

/// An actor that adds up all numbers.
#[derive(Default)]
struct Adding(u64);

impl Handler<Add> for Adding {
    type Result = ();

    fn handle(&mut self, Add(n): Add, _: &mut Context<Self>) {
        self.0 += n;
    }
}

impl Handler<Total> for Adding {
    type Result = u64;

    fn handle(&mut self, Total: Total, _: &mut Context<Self>) -> u64 {
        self.0
    }
}

async fn counting(arbiters: Arc<Arbiters>) -> Vec<Figure> {
    let actor = arbiters.start(Adding::default());
    let begin = Instant::now();
    for n in 0..sizes::NUMBERS {
        actor.do_send(Add(n));
    }
    let sum = actor.send(Total).await.expect("it answers");
    check("sum", sum, sum_below(sizes::NUMBERS));
    vec![rate(figures::MESSAGES, sizes::NUMBERS, begin)]
}

/// An actor that sends its numbers.
struct Teller {
    collector: Addr<Collector>,
}

struct Numbers(Range<u64>);

impl Handler<Numbers> for Teller {
    type Result = ();

    fn handle(&mut self, Numbers(numbers): Numbers, _: &mut Context<Self>) {
        numbers.for_each(|n| self.collector.do_send(Add(n)));
    }
}

async fn fan_in(arbiters: Arc<Arbiters>) -> Vec<Figure> {
    let (sum, total) = Sum::of(sizes::NUMBERS);
    let collector = arbiters.start(Collector(sum));
    let tellers = (0..sizes::TELLERS).map(|_| {
        let collector = collector.clone();
        arbiters.start(Teller { collector })
    });
    let tellers: Vec<_> = tellers.collect();
    let begin = Instant::now();
    for (teller, share) in tellers.iter().zip(shares()) {
        teller.do_send(Numbers(share));
    }
    check(
        "sum",
        total.await.expect("all are told"),
        sum_below(sizes::NUMBERS),
    );
    vec![rate(figures::MESSAGES, sizes::NUMBERS, begin)]
}

/// A call of `fib`, which receives the results of its children as messages.
struct Call {
    n: u64,
    arbiters: Arc<Arbiters>,
    pending: Pending,
    parent: Option<Caller<Addr<Call>>>,
    /// Kept until the end. Otherwise actix may stop an actor whose last child has just sent its
    /// result and dropped the address, before the result is handled.
    itself: Option<Addr<Call>>,
}

impl Call {
    fn begin(n: u64, arbiters: &Arc<Arbiters>, parent: Caller<Addr<Self>>) {
        arbiters.start(Self {
            n,
            arbiters: Arc::clone(arbiters),
            pending: Pending::default(),
            parent: Some(parent),
            itself: None,
        });
    }

    /// Sends the result to the caller, and ends.
    fn end(&mut self, sum: u64, context: &mut Context<Self>) {
        match self.parent.take().expect("only once") {
            Caller::Actor(parent) => parent.do_send(Add(sum)),
            Caller::Driver(driver) => driver.send(sum).expect("the driver waits"),
        }
        context.stop();
    }
}

impl Actor for Call {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        if self.n < 2 {
            return self.end(self.n, context);
        }
        let itself = context.address();
        for n in [self.n - 1, self.n - 2] {
            Self::begin(n, &self.arbiters, Caller::Actor(itself.clone()));
        }
        self.itself = Some(itself);
    }
}

impl Handler<Add> for Call {
    type Result = ();

    fn handle(&mut self, Add(n): Add, context: &mut Context<Self>) {
        if let Some(sum) = self.pending.answer(n) {
            self.end(sum, context);
        }
    }
}

async fn fib(arbiters: Arc<Arbiters>) -> Vec<Figure> {
    let (driver, answer) = oneshot::channel();
    let begin = Instant::now();
    Call::begin(sizes::FIB, &arbiters, Caller::Driver(driver));
    check("fib", answer.await.expect("it answers"), sizes::FIB_IS);
    vec![rate(figures::ACTORS, sizes::FIB_CALLS, begin)]
}

/// An actor that sends messages to itself, each after a little work, until the load ends.
struct Busy {
    turns: Turns,
}

struct GoOn;

impl Handler<GoOn> for Busy {
    type Result = ();

    fn handle(&mut self, GoOn: GoOn, context: &mut Context<Self>) {
        if self.turns.take() {
            context.address().do_send(GoOn);
        }
    }
}

async fn paced_latency(arbiters: Arc<Arbiters>) -> Vec<Figure> {
    let echo = arbiters.start(Echo);
    let load = Load::default();
    for turns in load.shares() {
        arbiters.start(Busy { turns }).do_send(GoOn);
    }
    paced(tokio::time::sleep, |n| question(&echo, n)).await
}

/// Prepares `idle`: dormant actors that have handled messages, and a used blocking thread.
async fn idle(arbiters: Arc<Arbiters>) -> Vec<Addr<Adding>> {
    let start = |_| arbiters.start(Adding::default());
    let actors: Vec<_> = (0..sizes::IDLERS).map(start).collect();
    for _ in 0..sizes::IDLE_AFTER / sizes::IDLERS {
        for actor in &actors {
            actor.do_send(Add(1));
        }
    }
    let mut sum = 0;
    for actor in &actors {
        sum += actor.send(Total).await.expect("it answers");
    }
    check("sum", sum, sizes::IDLE_AFTER);
    block_once().await;
    actors
}

//! xtra: actors spawned with an unbounded mailbox; `send(..)` asks, `send(..).detach()` sends.
//!
//! A mailbox is a heap ordered by priority, which does not keep the order of messages with equal
//! priority. So the driver does not ask for the sum at the end; the actor sends it when it has all
//! numbers.

use std::ops::Range;
use std::time::Instant;

use tokio::sync::oneshot;
use xtra::prelude::*;

use super::{Caller, Pending, Sum, adders_sum, places, shares};
use crate::cases::Case;
use crate::executors::idle_after;
use crate::executors::tokio::{Tokio, block_once, inside};
use crate::figures::{self, Figure, check, paced, rate, sum_below};
use crate::load::{Load, Turns};
use crate::process::{Lap, Memory, Peak, Stopwatch};
use crate::sizes;

/// Runs one case.
pub fn run(case: Case) -> Option<Vec<Figure>> {
    Some(match case {
        Case::Spawn => inside(spawning()),
        Case::IdleMemory => inside(idle_memory()),
        Case::PingPong => inside(ping_pong()),
        Case::Ask => inside(ask()),
        Case::Counting => inside(counting()),
        Case::FanIn => inside(fan_in()),
        Case::Ring => inside(ring()),
        Case::RingTokens => inside(ring_tokens()),
        Case::Meetings => inside(meetings::meetings()),
        Case::Fib => inside(fib()),
        Case::Bounded => inside(bounded()),
        Case::PacedLatency => inside(paced_latency()),
        Case::Idle => idle_after::<Tokio, _>(idle()),
        Case::AskTimeouts => inside(timeouts::timeouts()),
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

/// Implements `Actor` for types without start-up code and result.
macro_rules! plain_actors {
    ($($actor:ty),*) => {$(
        impl Actor for $actor {
            type Stop = ();

            async fn stopped(self) {}
        }
    )*};
}

mod crowds;
mod large;
mod meetings;
mod timeouts;

plain_actors!(Collector, Adder, Adding, Station, Echo, Teller, Busy);

fn spawn<A: Actor<Stop = ()>>(actor: A) -> Address<A> {
    xtra::spawn_tokio(actor, Mailbox::unbounded())
}

/// Waits for a place in the mailbox, but not for the result.
async fn tell<A: Handler<M>, M: Send + 'static>(address: &Address<A>, message: M) {
    let _answer = address
        .send(message)
        .detach()
        .await
        .expect("the actor lives");
}

struct Add(u64);
struct Total;

/// An actor that sums up all numbers.
struct Collector(Sum);

impl Handler<Add> for Collector {
    type Return = ();

    async fn handle(&mut self, Add(n): Add, _: &mut Context<Self>) {
        self.0.add(n);
    }
}

/// An actor that adds each number to its state, and sends the sum to the collector.
struct Adder {
    total: u64,
    collector: Address<Collector>,
}

impl Handler<Add> for Adder {
    type Return = ();

    async fn handle(&mut self, Add(n): Add, _: &mut Context<Self>) {
        self.total += n;
        tell(&self.collector, Add(self.total)).await;
    }
}

/// Spawns `count` adders and sends 1 to each; stores the addresses in `held`.
async fn spawn_adders(count: u64, held: &mut Vec<Option<Address<Adder>>>) {
    let (sum, all) = Sum::of(count);
    let collector = spawn(Collector(sum));
    for (total, place) in (0..count).zip(held) {
        let collector = collector.clone();
        let actor = spawn(Adder { total, collector });
        tell(&actor, Add(1)).await;
        *place = Some(actor);
    }
    check("sum", all.await.expect("all are told"), adders_sum(count));
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

/// An actor that passes tokens on, with one hop less, and counts them.
#[derive(Default)]
struct Station {
    next: Option<Address<Station>>,
    seen: u64,
}

struct Next(Address<Station>);
struct Hop(u64, oneshot::Sender<()>);
struct Seen;

impl Handler<Next> for Station {
    type Return = ();

    async fn handle(&mut self, Next(next): Next, _: &mut Context<Self>) {
        self.next = Some(next);
    }
}

impl Handler<Hop> for Station {
    type Return = ();

    async fn handle(&mut self, Hop(left, done): Hop, _: &mut Context<Self>) {
        self.seen += 1;
        if left == 1 {
            done.send(()).expect("the driver waits");
        } else {
            let next = self.next.as_ref().expect("the ring was closed first");
            tell(next, Hop(left - 1, done)).await;
        }
    }
}

impl Handler<Seen> for Station {
    type Return = u64;

    async fn handle(&mut self, Seen: Seen, _: &mut Context<Self>) -> u64 {
        self.seen
    }
}

/// Sends `tokens` tokens round `stations` stations, `hops` hops in total.
async fn circle(stations: usize, tokens: usize, hops: u64) -> Lap {
    let ring: Vec<_> = (0..stations).map(|_| spawn(Station::default())).collect();
    for (index, station) in ring.iter().enumerate() {
        let next = ring[(index + 1) % stations].clone();
        station.send(Next(next)).await.expect("the actor lives");
    }
    let (watch, mut arrivals) = (Stopwatch::start(), Vec::new());
    for first in ring.iter().step_by(stations / tokens) {
        let (done, arrival) = oneshot::channel();
        tell(first, Hop(hops / tokens as u64, done)).await;
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

struct Echo;
struct Question(u64);

impl Handler<Question> for Echo {
    type Return = u64;

    async fn handle(&mut self, Question(n): Question, _: &mut Context<Self>) -> u64 {
        n
    }
}

async fn question(echo: &Address<Echo>, n: u64) -> u64 {
    echo.send(Question(n)).await.expect("it answers")
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

async fn count(mailbox: (Address<Collector>, Mailbox<Collector>)) -> Vec<Figure> {
    let (sum, total) = Sum::of(sizes::NUMBERS);
    let actor = xtra::spawn_tokio(Collector(sum), mailbox);
    let begin = Instant::now();
    for n in 0..sizes::NUMBERS {
        tell(&actor, Add(n)).await;
    }
    check(
        "sum",
        total.await.expect("all are told"),
        sum_below(sizes::NUMBERS),
    );
    vec![rate(figures::MESSAGES, sizes::NUMBERS, begin)]
}

async fn counting() -> Vec<Figure> {
    count(Mailbox::unbounded()).await
}

async fn bounded() -> Vec<Figure> {
    count(Mailbox::bounded(sizes::ROOM)).await
}

/// An actor that sends the numbers of a range.
struct Teller {
    collector: Address<Collector>,
}

impl Handler<Range<u64>> for Teller {
    type Return = ();

    async fn handle(&mut self, numbers: Range<u64>, _: &mut Context<Self>) {
        for n in numbers {
            tell(&self.collector, Add(n)).await;
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
        tell(teller, share).await;
    }
    check(
        "sum",
        total.await.expect("all are told"),
        sum_below(sizes::NUMBERS),
    );
    vec![rate(figures::MESSAGES, sizes::NUMBERS, begin)]
}

/// A call of `fib`, which receives the results of its children as messages. It ends when its last
/// address is dropped. So it starts with its own address, because its caller keeps none.
struct Call {
    n: u64,
    own: Option<Address<Self>>,
    pending: Pending,
    parent: Option<Caller<Address<Self>>>,
}

impl Call {
    fn spawn(n: u64, parent: Caller<Address<Self>>) {
        let mailbox = Mailbox::unbounded();
        let call = Self {
            n,
            own: Some(mailbox.0.clone()),
            pending: Pending::default(),
            parent: Some(parent),
        };
        xtra::spawn_tokio(call, mailbox);
    }

    async fn answer(&mut self, sum: u64) {
        match self.parent.take().expect("only once") {
            Caller::Actor(parent) => tell(&parent, Add(sum)).await,
            Caller::Driver(driver) => driver.send(sum).expect("the driver waits"),
        }
    }
}

impl Actor for Call {
    type Stop = ();

    async fn started(&mut self, _: &Mailbox<Self>) -> Result<(), ()> {
        let own = self.own.take().expect("it is started once");
        if self.n < 2 {
            self.answer(self.n).await;
        } else {
            Self::spawn(self.n - 1, Caller::Actor(own.clone()));
            Self::spawn(self.n - 2, Caller::Actor(own));
        }
        Ok(())
    }

    async fn stopped(self) {}
}

impl Handler<Add> for Call {
    type Return = ();

    async fn handle(&mut self, Add(n): Add, _: &mut Context<Self>) {
        if let Some(sum) = self.pending.answer(n) {
            self.answer(sum).await;
        }
    }
}

async fn fib() -> Vec<Figure> {
    let (driver, answer) = oneshot::channel();
    let begin = Instant::now();
    Call::spawn(sizes::FIB, Caller::Driver(driver));
    check("fib", answer.await.expect("it answers"), sizes::FIB_IS);
    vec![rate(figures::ACTORS, sizes::FIB_CALLS, begin)]
}

/// An actor that sends messages to itself, each after a little work, until the load ends.
struct Busy {
    turns: Turns,
}

struct GoOn;

impl Handler<GoOn> for Busy {
    type Return = ();

    async fn handle(&mut self, GoOn: GoOn, cx: &mut Context<Self>) {
        if self.turns.take() {
            let own = cx.mailbox().address().try_upgrade();
            tell(&own.expect("the driver keeps an address"), GoOn).await;
        }
    }
}

async fn paced_latency() -> Vec<Figure> {
    let echo = spawn(Echo);
    let (load, mut held) = (Load::default(), Vec::new());
    for turns in load.shares() {
        let busy = spawn(Busy { turns });
        tell(&busy, GoOn).await;
        held.push(busy);
    }
    paced(tokio::time::sleep, |n| question(&echo, n)).await
}

/// An actor that adds up all numbers.
#[derive(Default)]
struct Adding(u64);

impl Handler<Add> for Adding {
    type Return = u64;

    async fn handle(&mut self, Add(n): Add, _: &mut Context<Self>) -> u64 {
        self.0 += n;
        n
    }
}

impl Handler<Total> for Adding {
    type Return = u64;

    async fn handle(&mut self, Total: Total, _: &mut Context<Self>) -> u64 {
        self.0
    }
}

/// Prepares `idle`: dormant actors that have handled messages, and a used blocking thread.
async fn idle() -> Vec<Address<Adding>> {
    let actors: Vec<_> = (0..sizes::IDLERS)
        .map(|_| spawn(Adding::default()))
        .collect();
    for _ in 0..sizes::IDLE_AFTER / sizes::IDLERS {
        for actor in &actors {
            actor.send(Add(1)).await.expect("the actor lives");
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

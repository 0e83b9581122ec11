//! ractor: actors spawned with `Actor::spawn`; `cast` sends, `call!` asks.

mod crowds;
mod meetings;
mod pool;
mod timeouts;

use std::ops::Range;
use std::time::Instant;

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, call, registry};
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

/// Fewer than for the other peers: an actor takes 8 KB.
const SPAWNED: u64 = sizes::SPAWNED / 5;

/// Runs one case.
pub fn run(case: Case) -> Option<Vec<Figure>> {
    Some(match case {
        Case::Spawn => inside(spawning()),
        Case::IdleMemory => inside(idle_memory()),
        Case::PingPong => inside(ping_pong()),
        Case::Ask => inside(ask()),
        Case::Lookup => inside(lookup()),
        Case::Counting => inside(counting()),
        Case::FanIn => inside(fan_in()),
        Case::Ring => inside(ring()),
        Case::RingTokens => inside(ring_tokens()),
        Case::Meetings => inside(meetings::meetings()),
        Case::Fib => inside(fib()),
        Case::Pool => inside(pool::pool()),
        Case::PoolRefusing => inside(pool::refusing()),
        Case::PoolPaced => pool::paced(),
        Case::PacedLatency => inside(paced_latency()),
        Case::MixedLatency | Case::MixedControl => inside(mixed_latency(case)),
        Case::Idle => idle_after::<Tokio, _>(idle()),
        Case::AskTimeouts => inside(timeouts::timeouts()),
        Case::BurstsOne => crowds::bursts(1),
        Case::BurstsMany => crowds::bursts(sizes::BURST_ACTORS),
        Case::ManyWorkers => crowds::workers(),
        Case::Scatter => inside(crowds::scatter()),
        Case::Gather => inside(crowds::gather()),
        Case::AsksSkewed => inside(crowds::asks()),
        _ => return None,
    })
}

type Handled = Result<(), ActorProcessingErr>;

async fn spawn<A: Actor>(actor: A, arguments: A::Arguments) -> ActorRef<A::Msg> {
    let spawned = Actor::spawn(None, actor, arguments).await;
    spawned.expect("the actor starts").0
}

/// An actor that sums up all numbers.
struct Collector;

impl Actor for Collector {
    type Msg = u64;
    type State = Sum;
    type Arguments = Sum;

    async fn pre_start(&self, _: ActorRef<u64>, sum: Sum) -> Result<Sum, ActorProcessingErr> {
        Ok(sum)
    }

    async fn handle(&self, _: ActorRef<u64>, n: u64, sum: &mut Sum) -> Handled {
        sum.add(n);
        Ok(())
    }
}

/// A message of 16 bytes, a typical size.
enum Tally {
    Add(u64),
    Total(RpcReplyPort<u64>),
}

/// An actor that adds each number to its state, and sends the sum to the collector.
struct Adder {
    collector: ActorRef<u64>,
}

impl Actor for Adder {
    type Msg = Tally;
    type State = u64;
    type Arguments = u64;

    async fn pre_start(&self, _: ActorRef<Tally>, state: u64) -> Result<u64, ActorProcessingErr> {
        Ok(state)
    }

    async fn handle(&self, _: ActorRef<Tally>, message: Tally, total: &mut u64) -> Handled {
        match message {
            Tally::Add(n) => {
                *total += n;
                self.collector.cast(*total)?;
            }
            Tally::Total(reply) => reply.send(*total)?,
        }
        Ok(())
    }
}

/// Spawns `count` adders and sends 1 to each; stores the addresses in `held`.
async fn spawn_adders(count: u64, held: &mut Vec<Option<ActorRef<Tally>>>) {
    let (sum, total) = Sum::of(count);
    let collector = spawn(Collector, sum).await;
    for (n, place) in (0..count).zip(held) {
        let collector = collector.clone();
        let actor = spawn(Adder { collector }, n).await;
        actor.cast(Tally::Add(1)).expect("the actor lives");
        *place = Some(actor);
    }
    check("sum", total.await.expect("all are told"), adders_sum(count));
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

enum Token {
    Next(ActorRef<Token>),
    Hop(u64, oneshot::Sender<()>),
    Seen(RpcReplyPort<u64>),
}

/// An actor that passes tokens on, with one hop less, and counts them.
struct Station;

#[derive(Default)]
struct Stop {
    next: Option<ActorRef<Token>>,
    seen: u64,
}

impl Actor for Station {
    type Msg = Token;
    type State = Stop;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Token>, (): ()) -> Result<Stop, ActorProcessingErr> {
        Ok(Stop::default())
    }

    async fn handle(&self, _: ActorRef<Token>, token: Token, stop: &mut Stop) -> Handled {
        match token {
            Token::Next(next) => stop.next = Some(next),
            Token::Hop(left, done) => {
                stop.seen += 1;
                if left == 1 {
                    done.send(()).expect("the driver waits");
                } else {
                    let next = stop.next.as_ref().expect("the ring was closed first");
                    next.cast(Token::Hop(left - 1, done))?;
                }
            }
            Token::Seen(reply) => reply.send(stop.seen)?,
        }
        Ok(())
    }
}

/// Sends `tokens` tokens round `stations` stations, `hops` hops in total.
async fn circle(stations: usize, tokens: usize, hops: u64) -> Lap {
    let mut ring = Vec::new();
    for _ in 0..stations {
        ring.push(spawn(Station, ()).await);
    }
    for (index, station) in ring.iter().enumerate() {
        let next = ring[(index + 1) % stations].clone();
        station.cast(Token::Next(next)).expect("the actor lives");
    }
    let (watch, mut arrivals) = (Stopwatch::start(), Vec::new());
    for first in ring.iter().step_by(stations / tokens) {
        let (done, arrival) = oneshot::channel();
        let hop = Token::Hop(hops / tokens as u64, done);
        first.cast(hop).expect("the actor lives");
        arrivals.push(arrival);
    }
    for arrival in arrivals {
        arrival.await.expect("the token arrives");
    }
    let lap = watch.stop();
    let mut seen = 0;
    for station in &ring {
        seen += call!(station, Token::Seen).expect("it answers");
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

/// A number, and the reply that sends it back.
struct Question(u64, RpcReplyPort<u64>);

struct Echo;

impl Actor for Echo {
    type Msg = Question;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Question>, (): ()) -> Handled {
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<Question>,
        Question(n, reply): Question,
        (): &mut (),
    ) -> Handled {
        Ok(reply.send(n)?)
    }
}

async fn question(echo: &ActorRef<Question>, n: u64) -> u64 {
    call!(echo, Question, n).expect("it answers")
}

async fn ask() -> Vec<Figure> {
    let echo = spawn(Echo, ()).await;
    let begin = Instant::now();
    let mut answers = 0;
    for n in 0..sizes::QUESTIONS {
        answers += question(&echo, n).await;
    }
    check("answers", answers, sum_below(sizes::QUESTIONS));
    vec![rate(figures::ASKS, sizes::QUESTIONS, begin)]
}

async fn lookup() -> Vec<Figure> {
    let mut held = Vec::new();
    for name in names() {
        let spawned = Actor::spawn(Some(name), Echo, ()).await;
        held.push(spawned.expect("the name is free"));
    }
    lookups::<Tokio, _>(names(), |name| registry::where_is(name).is_some()).await
}

/// An actor that adds up all numbers.
struct Adding;

impl Actor for Adding {
    type Msg = Tally;
    type State = u64;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Tally>, (): ()) -> Result<u64, ActorProcessingErr> {
        Ok(0)
    }

    async fn handle(&self, _: ActorRef<Tally>, message: Tally, total: &mut u64) -> Handled {
        match message {
            Tally::Add(n) => *total += n,
            Tally::Total(reply) => reply.send(*total)?,
        }
        Ok(())
    }
}

async fn counting() -> Vec<Figure> {
    let actor = spawn(Adding, ()).await;
    let begin = Instant::now();
    for n in 0..sizes::NUMBERS {
        actor.cast(Tally::Add(n)).expect("the actor lives");
    }
    let sum = call!(actor, Tally::Total).expect("it answers");
    check("sum", sum, sum_below(sizes::NUMBERS));
    vec![rate(figures::MESSAGES, sizes::NUMBERS, begin)]
}

/// An actor that sends the numbers of a range.
struct Teller {
    collector: ActorRef<u64>,
}

impl Actor for Teller {
    type Msg = Range<u64>;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Range<u64>>, (): ()) -> Handled {
        Ok(())
    }

    async fn handle(&self, _: ActorRef<Range<u64>>, numbers: Range<u64>, (): &mut ()) -> Handled {
        for n in numbers {
            self.collector.cast(n)?;
        }
        Ok(())
    }
}

async fn fan_in() -> Vec<Figure> {
    let (sum, total) = Sum::of(sizes::NUMBERS);
    let collector = spawn(Collector, sum).await;
    let mut tellers = Vec::new();
    for _ in 0..sizes::TELLERS {
        let collector = collector.clone();
        tellers.push(spawn(Teller { collector }, ()).await);
    }
    let begin = Instant::now();
    for (teller, share) in tellers.iter().zip(shares()) {
        teller.cast(share).expect("the actor lives");
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
}

type Parent = Caller<ActorRef<u64>>;

impl Actor for Call {
    type Msg = u64;
    type State = (Pending, Option<Parent>);
    type Arguments = Parent;

    async fn pre_start(
        &self,
        _: ActorRef<u64>,
        parent: Parent,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok((Pending::default(), Some(parent)))
    }

    async fn post_start(&self, myself: ActorRef<u64>, state: &mut Self::State) -> Handled {
        if self.n < 2 {
            return end(&myself, state, self.n);
        }
        for n in [self.n - 1, self.n - 2] {
            spawn(Call { n }, Caller::Actor(myself.clone())).await;
        }
        Ok(())
    }

    async fn handle(&self, myself: ActorRef<u64>, n: u64, state: &mut Self::State) -> Handled {
        match state.0.answer(n) {
            Some(sum) => end(&myself, state, sum),
            None => Ok(()),
        }
    }
}

/// Sends the result to the caller, and ends.
fn end(myself: &ActorRef<u64>, state: &mut (Pending, Option<Parent>), sum: u64) -> Handled {
    match state.1.take().expect("only once") {
        Caller::Actor(parent) => parent.cast(sum)?,
        Caller::Driver(driver) => driver.send(sum).expect("the driver waits"),
    }
    myself.stop(None);
    Ok(())
}

async fn fib() -> Vec<Figure> {
    let (driver, answer) = oneshot::channel();
    let begin = Instant::now();
    spawn(Call { n: sizes::FIB }, Caller::Driver(driver)).await;
    check("fib", answer.await.expect("it answers"), sizes::FIB_IS);
    vec![rate(figures::ACTORS, sizes::FIB_CALLS, begin)]
}

/// An actor that sends messages to itself, each after a little work, until the load ends.
struct Busy {
    turns: Turns,
}

impl Actor for Busy {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Handled {
        Ok(())
    }

    async fn handle(&self, myself: ActorRef<()>, (): (), (): &mut ()) -> Handled {
        if self.turns.take() {
            myself.cast(())?;
        }
        Ok(())
    }
}

async fn paced_latency() -> Vec<Figure> {
    let echo = spawn(Echo, ()).await;
    let _load = keep_busy().await;
    paced(tokio::time::sleep, |n| question(&echo, n)).await
}

async fn mixed_latency(case: Case) -> Vec<Figure> {
    let (echo, load) = (spawn(Echo, ()).await, keep_busy().await);
    mixed(case, load, tokio::time::sleep, |n| question(&echo, n)).await
}

/// Spawns busy actors, which run as long as the returned load is held.
async fn keep_busy() -> Load {
    let load = Load::default();
    for turns in load.shares() {
        let busy = spawn(Busy { turns }, ()).await;
        busy.cast(()).expect("the actor lives");
    }
    load
}

/// Prepares `idle`: dormant actors that have handled messages, and a used blocking thread.
async fn idle() -> Vec<ActorRef<Tally>> {
    let mut actors = Vec::new();
    for _ in 0..sizes::IDLERS {
        actors.push(spawn(Adding, ()).await);
    }
    for _ in 0..sizes::IDLE_AFTER / sizes::IDLERS {
        for actor in &actors {
            actor.cast(Tally::Add(1)).expect("the actor lives");
        }
    }
    let mut sum = 0;
    for actor in &actors {
        sum += call!(actor, Tally::Total).expect("it answers");
    }
    check("sum", sum, sizes::IDLE_AFTER);
    block_once().await;
    actors
}

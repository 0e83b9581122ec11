//! The programs that benches/instructions.sh counts: `instructions CASE COUNT` does one operation
//! COUNT times.
//!
//! Everything runs on one worker, so the count does not depend on how threads interleave. The
//! difference between the counts of two runs leaves out the start and the end of the runtime.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use greenroom::{Actor, Address, Context, Reply, Runtime, spawn};

/// The number of messages sent before the actor runs, which takes two turns for them.
const BURST: u64 = 64;
/// The number of messages that an actor handles in a turn.
const TURN_MESSAGES: usize = 32;
/// The number of actors that live at the same time.
const BATCH: u64 = 100;
/// A deadline that is never reached.
const NEVER: Duration = Duration::from_secs(3600);
/// Longer than the interval at which a busy worker with timers reads the clock. So the worker reads
/// it in each turn, however slow the machine is.
const TURN: Duration = Duration::from_micros(100);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [case, count] => run(case, count.parse().expect("COUNT is a number")),
        _ => panic!("usage: instructions CASE COUNT"),
    }
}

fn run(case: &str, count: u64) {
    let builder = Runtime::builder().workers(1);
    let builder = match case {
        // All messages wait for the actor, and the end of a default batch depends on the clock.
        "outside" => builder.batch(TURN_MESSAGES),
        _ => builder,
    };
    let runtime = builder.build();
    let runtime = runtime.expect("a thread can be started");
    match case {
        "tell" => inside(&runtime, tell(count)),
        "ping_pong" => inside(&runtime, ping_pong(count)),
        "ask" => inside(&runtime, ask(count)),
        "spawn" => inside(&runtime, spawn_actors(count)),
        "task" => inside(&runtime, task(count)),
        "yield" => inside(&runtime, yields(count)),
        "outside" => outside(&runtime, count),
        "timer" => inside(&runtime, timer(count)),
        "by_hand" => inside(&runtime, by_hand(count)),
        "handlers" => inside(&runtime, declared(count)),
        _ => panic!("no such case: {case}"),
    }
    runtime.block_on(runtime.shutdown());
}

/// Runs `case` as a task on the worker, while this thread sleeps.
fn inside(runtime: &Runtime, case: impl Future<Output = ()> + Send + 'static) {
    runtime.block_on(runtime.spawn(case));
}

/// Sums up all numbers.
async fn tally(mut cx: Context<u64>) -> u64 {
    let mut total = 0;
    while let Some(n) = cx.recv().await {
        total += n;
    }
    total
}

/// Sends to an actor in bursts; the actor handles each burst before the next one.
async fn tell(count: u64) {
    let actor = spawn!(tally(_));
    for n in 0..count {
        actor.tell(1).expect("the actor lives");
        if n % BURST == BURST - 1 {
            greenroom::yield_now().await;
        }
    }
    assert_eq!(actor.join().await.expect("no panic"), count);
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
                let told = partner.tell(Play::Ball(left - 1));
                assert!(told.is_ok(), "the partner waits");
            }
        }
    }
    balls
}

/// Lets two actors pass a ball to and fro `count` times.
async fn ping_pong(count: u64) {
    let (one, two) = (spawn!(player(_)), spawn!(player(_)));
    let begun = one.tell(Play::Partner(two.address())).is_ok()
        && two.tell(Play::Partner(one.address())).is_ok()
        && one.tell(Play::Ball(2 * count)).is_ok();
    assert!(begun, "the players live");
    assert_eq!(two.join().await.expect("no panic"), count);
    assert_eq!(one.join().await.expect("no panic"), count);
}

/// Replies, after spending `turn` in the turn.
async fn echo(mut cx: Context<Reply<()>>, turn: Duration) {
    while let Some(reply) = cx.recv().await {
        take(turn);
        reply.send(());
    }
}

/// Spends time in a turn, without instructions.
fn take(turn: Duration) {
    if !turn.is_zero() {
        thread::sleep(turn);
    }
}

/// Asks an actor from a task, one question after the other.
async fn ask(count: u64) {
    let echo = spawn!(echo(_, Duration::ZERO));
    for _ in 0..count {
        echo.ask(|reply| reply).await.expect("it answers");
    }
}

/// Spawns actors in batches; each receives one number and is joined.
async fn spawn_actors(count: u64) {
    let mut batch = Vec::new();
    for n in 1..=count {
        let actor = spawn!(tally(_));
        actor.tell(n).expect("the actor lives");
        batch.push(actor);
        if n % BATCH == 0 || n == count {
            for actor in batch.drain(..) {
                actor.join().await.expect("no panic");
            }
        }
    }
}

/// Spawns plain tasks, each of which is awaited before the next one.
async fn task(count: u64) {
    for n in 0..count {
        assert_eq!(greenroom::spawn(async move { n }).await, n);
    }
}

async fn yields(count: u64) {
    for _ in 0..count {
        greenroom::yield_now().await;
    }
}

/// Sends all messages to an actor from this thread while a task holds the worker; then lets the
/// actor handle them.
#[inline(never)] // what its caller has in registers would count in the loop
fn outside(runtime: &Runtime, count: u64) {
    let actor = spawn!(tally(_), on = runtime);
    let held = Arc::new((Barrier::new(2), Barrier::new(2)));
    let holder = runtime.spawn({
        let held = Arc::clone(&held);
        async move {
            held.0.wait();
            held.1.wait();
        }
    });
    held.0.wait();
    for _ in 0..count {
        actor.tell(1).expect("the actor lives");
    }
    held.1.wait();
    runtime.block_on(holder);
    let total = runtime.block_on(actor.join()).expect("no panic");
    assert_eq!(total, count);
}

/// Does what `ask` does, with a timeout that never fires. The count includes two sleeps.
async fn timer(count: u64) {
    let echo = spawn!(echo(_, TURN));
    for _ in 0..count {
        let answer = echo.ask(|reply| reply).timeout(NEVER).await;
        answer.expect("it answers");
        take(TURN);
    }
}

/// Sums up, with an enum and a dispatch that are written by hand.
struct ByHand(u64);

enum ByHandMessage {
    Add(u64),
    Total(Reply<u64>),
    Reset(u64, Reply<u64>),
}

impl Actor for ByHand {
    type Message = ByHandMessage;

    async fn handle(&mut self, message: ByHandMessage, _cx: &mut Context<ByHandMessage>) {
        match message {
            ByHandMessage::Add(n) => self.0 += n,
            ByHandMessage::Total(reply) => reply.send(self.0),
            ByHandMessage::Reset(n, reply) => reply.send(std::mem::replace(&mut self.0, n)),
        }
    }
}

/// Tells an actor in bursts, and asks after each.
async fn by_hand(count: u64) {
    let handle = spawn!(ByHand(0));
    let actor = handle.address();
    for n in 0..count {
        let told = actor.tell(ByHandMessage::Add(1));
        assert!(told.is_ok(), "the actor lives");
        if n % BURST == BURST - 1 {
            let total = actor.ask(ByHandMessage::Total).await;
            assert_eq!(total.expect("it answers"), BURST);
            let total = actor.ask(|reply| ByHandMessage::Reset(0, reply)).await;
            assert_eq!(total.expect("it answers"), BURST);
        }
    }
    drop(actor);
    handle.join().await.expect("no panic");
}

/// Sums up, as `ByHand` does.
struct Declared(u64);

greenroom::handlers! {
    impl Declared as DeclaredAddress, DeclaredMessage {
        fn add(&mut self, n: u64) {
            self.0 += n;
        }

        fn total(&mut self) -> u64 {
            self.0
        }

        fn reset(&mut self, n: u64) -> u64 {
            std::mem::replace(&mut self.0, n)
        }
    }
}

/// Does what `by_hand` does, with `handlers!`.
async fn declared(count: u64) {
    let handle = spawn!(Declared(0));
    let actor = DeclaredAddress::from(handle.address());
    for n in 0..count {
        let told = actor.add(1).tell();
        assert!(told.is_ok(), "the actor lives");
        if n % BURST == BURST - 1 {
            assert_eq!(actor.total().await.expect("it answers"), BURST);
            assert_eq!(actor.reset(0).await.expect("it answers"), BURST);
        }
    }
    drop(actor);
    handle.join().await.expect("no panic");
}

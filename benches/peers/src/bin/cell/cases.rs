//! The actors, and the measurements with them. Every case checks its own result.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use peers::counting::{self, Live};

use crate::way::Way;

/// A message of 16 bytes, a typical size.
enum Message<W: Way> {
    Add(u64),
    Ball(u64),
    Partner(Option<W::Address<Message<W>>>),
    Report(Arc<AtomicU64>),
}

/// Runs an actor with a `u64` of state.
async fn tally<W: Way>(mut cx: W::Context<Message<W>>, start: u64) {
    let mut total = start;
    while let Some(message) = W::recv(&mut cx).await {
        match message {
            Message::Add(n) => total += n,
            Message::Report(to) => to.store(total, Ordering::SeqCst),
            Message::Ball(_) | Message::Partner(_) => unreachable!("a tally receives no balls"),
        }
    }
}

/// Runs an actor that counts the balls it receives, and passes them on.
async fn player<W: Way>(mut cx: W::Context<Message<W>>) {
    let (mut balls, mut partner) = (0, None);
    while let Some(message) = W::recv(&mut cx).await {
        match message {
            Message::Partner(other) => partner = other,
            Message::Ball(left) => {
                balls += 1;
                if let (Some(left), Some(partner)) = (left.checked_sub(1), &partner) {
                    tell::<W>(partner, Message::Ball(left));
                }
            }
            Message::Report(to) => to.store(balls, Ordering::SeqCst),
            Message::Add(_) => unreachable!("players do not count"),
        }
    }
}

fn tell<W: Way>(address: &W::Address<Message<W>>, message: Message<W>) {
    assert!(W::tell(address, message).is_ok(), "the actor is gone");
}

fn report<W: Way>(address: &W::Address<Message<W>>) -> u64 {
    let total = Arc::new(AtomicU64::new(u64::MAX));
    tell::<W>(address, Message::Report(Arc::clone(&total)));
    W::run_all();
    total.load(Ordering::SeqCst)
}

/// Returns the live memory of `count` dormant actors, each of which has handled one message. The
/// vector of addresses is not counted.
pub fn dormant<W: Way>(count: usize) -> Live {
    let mut actors = Vec::with_capacity(count);
    let warm = W::spawn(|cx| tally::<W>(cx, 0));
    tell::<W>(&warm, Message::Add(1));
    W::run_all();
    counting::start();
    for n in 0..count {
        let actor = W::spawn(|cx| tally::<W>(cx, n as u64));
        tell::<W>(&actor, Message::Add(1));
        W::run_all();
        actors.push(actor);
    }
    let live = counting::stop();
    for (n, actor) in actors.iter().enumerate() {
        assert_eq!(report::<W>(actor), n as u64 + 1);
    }
    drop((warm, actors));
    W::run_all();
    live
}

/// Returns the nanoseconds for a round of two actors that send a ball to each other.
pub fn ping_pong<W: Way>(rounds: u64) -> f64 {
    let [one, two] = [(); 2].map(|()| W::spawn(|cx| player::<W>(cx)));
    tell::<W>(&one, Message::Partner(Some(two.clone())));
    tell::<W>(&two, Message::Partner(Some(one.clone())));
    W::run_all();
    let begin = Instant::now();
    tell::<W>(&one, Message::Ball(2 * rounds - 1));
    W::run_all();
    let took = begin.elapsed();
    for player in [&one, &two] {
        assert_eq!(report::<W>(player), rounds);
        tell::<W>(player, Message::Partner(None));
    }
    drop((one, two));
    W::run_all();
    took.as_nanos() as f64 / rounds as f64
}

/// The number of messages sent before the actor runs.
const BURST: u64 = 64;

/// Returns the nanoseconds for a message, sent in bursts.
pub fn burst<W: Way>(messages: u64) -> f64 {
    let actor = W::spawn(|cx| tally::<W>(cx, 0));
    W::run_all();
    let begin = Instant::now();
    for _ in 0..messages / BURST {
        for n in 0..BURST {
            tell::<W>(&actor, Message::Add(n));
        }
        W::run_all();
    }
    let took = begin.elapsed();
    assert_eq!(
        report::<W>(&actor),
        messages / BURST * (BURST * (BURST - 1) / 2)
    );
    drop(actor);
    W::run_all();
    took.as_nanos() as f64 / messages as f64
}

/// Returns the nanoseconds to spawn an actor, send it one message, drop its address, and run it to
/// its end.
pub fn spawn<W: Way>(count: u64) -> f64 {
    let total = Arc::new(AtomicU64::new(0));
    let begin = Instant::now();
    for n in 0..count {
        let total = Arc::clone(&total);
        let actor = W::spawn(|cx| once::<W>(cx, total));
        tell::<W>(&actor, Message::Add(n));
        drop(actor);
        W::run_all();
    }
    let took = begin.elapsed();
    assert_eq!(total.load(Ordering::SeqCst), count * (count - 1) / 2);
    assert_eq!(Arc::strong_count(&total), 1, "an actor was leaked");
    took.as_nanos() as f64 / count as f64
}

/// Adds each number to a shared total. Only this thread runs it, so it needs no read-modify-write.
async fn once<W: Way>(mut cx: W::Context<Message<W>>, total: Arc<AtomicU64>) {
    while let Some(message) = W::recv(&mut cx).await {
        let Message::Add(n) = message else {
            unreachable!("only numbers are told")
        };
        total.store(total.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }
}

/// Returns the nanoseconds for a message from another thread, from the first one to the last one
/// handled.
pub fn across<W: Way>(messages: u64) -> f64 {
    let actor = W::spawn(|cx| tally::<W>(cx, 0));
    W::run_all();
    let begin = Instant::now();
    thread::scope(|scope| {
        let sender = scope.spawn(|| (0..messages).for_each(|n| tell::<W>(&actor, Message::Add(n))));
        while !sender.is_finished() {
            W::run_all();
            std::hint::spin_loop();
        }
        W::run_all();
    });
    let took = begin.elapsed();
    assert_eq!(report::<W>(&actor), messages * (messages - 1) / 2);
    drop(actor);
    W::run_all();
    took.as_nanos() as f64 / messages as f64
}

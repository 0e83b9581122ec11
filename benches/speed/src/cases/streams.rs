//! Many messages in one direction: to one actor, from many, and through stages.

use std::time::Instant;

use super::{collect, rate, sum_below};
use crate::names::{Address, Context, Handle, Reply, spawn};

/// The room of each bounded mailbox.
const ROOM: usize = 100;
/// The stages of `stages`.
const STAGES: u64 = 8;
/// The actors that send in `fan_in`.
const TELLERS: u64 = 100;

/// A message with a number.
pub trait Message: Send + Sized + 'static {
    /// Creates one with this number.
    fn of(n: u64) -> Self;

    /// Adds the number to the total, or replies the total.
    fn read(self, total: &mut u64);

    /// Waits for the total of all that was sent to `first`, which `last` has at its end.
    fn total(first: Address<Self>, last: Handle<Self, u64>) -> impl Future<Output = u64> + Send;
}

impl Message for u64 {
    fn of(n: u64) -> Self {
        n
    }

    fn read(self, total: &mut u64) {
        *total += self;
    }

    async fn total(first: Address<Self>, last: Handle<Self, u64>) -> u64 {
        // Without an address, each actor on the way reads what is left and ends.
        drop(first);
        last.join().await.expect("no panic")
    }
}

/// A message of 16 bytes, whose drop has something to do if it holds a reply.
pub enum Tally {
    Add(u64),
    Total(Reply<u64>),
}

impl Message for Tally {
    fn of(n: u64) -> Self {
        Self::Add(n)
    }

    fn read(self, total: &mut u64) {
        match self {
            Self::Add(n) => *total += n,
            Self::Total(reply) => reply.send(*total),
        }
    }

    async fn total(first: Address<Self>, _last: Handle<Self, u64>) -> u64 {
        first.ask(Self::Total).await.expect("it answers")
    }
}

/// Adds up what it is sent.
async fn tally<M: Message>(mut cx: Context<M>) -> u64 {
    let mut total = 0;
    while let Some(message) = cx.recv().await {
        message.read(&mut total);
    }
    total
}

/// Fills a bounded mailbox.
pub async fn bounded<M: Message>() -> f64 {
    const NUMBERS: u64 = 2_500_000;
    let last = spawn!(tally::<M>(_), capacity = ROOM);
    send_all(last.address(), last, NUMBERS, 1).await
}

/// Sends messages through stages with bounded mailboxes; a message counts once for each stage.
pub async fn stages<M: Message>() -> f64 {
    const NUMBERS: u64 = 400_000;
    let last = spawn!(tally::<M>(_), capacity = ROOM);
    let mut first = last.address();
    for _ in 1..STAGES {
        first = spawn!(stage::<M>(_, first), capacity = ROOM).address();
    }
    send_all(first, last, NUMBERS, STAGES).await
}

/// Passes on what it is sent.
async fn stage<M: Message>(mut cx: Context<M>, next: Address<M>) {
    while let Some(message) = cx.recv().await {
        assert!(next.send(message).await.is_ok(), "the next stage lives");
    }
}

/// Sends numbers to `first`, and returns the rate when `last` has them.
async fn send_all<M: Message>(
    first: Address<M>,
    last: Handle<M, u64>,
    numbers: u64,
    stages: u64,
) -> f64 {
    let begin = Instant::now();
    for n in 0..numbers {
        assert!(first.send(M::of(n)).await.is_ok(), "the actor lives");
    }
    assert_eq!(M::total(first, last).await, sum_below(numbers));
    rate(numbers * stages, begin)
}

/// Floods an unbounded mailbox, some times.
pub async fn counting<M: Message>() -> f64 {
    const FLOODS: u64 = 4;
    const NUMBERS: u64 = 2_000_000;
    let begin = Instant::now();
    for _ in 0..FLOODS {
        let actor = spawn!(tally::<M>(_));
        let first = actor.address();
        for n in 0..NUMBERS {
            assert!(first.tell(M::of(n)).is_ok(), "the actor lives");
        }
        assert_eq!(M::total(first, actor).await, sum_below(NUMBERS));
    }
    rate(FLOODS * NUMBERS, begin)
}

/// Sends `each` numbers for each start that it receives.
async fn teller(mut cx: Context<u64>, each: u64, collector: Address<u64>) {
    while let Some(first) = cx.recv().await {
        for n in first..first + each {
            collector.tell(n).expect("the collector waits for all");
        }
    }
}

/// Sends from many actors to one.
pub async fn fan_in() -> f64 {
    const NUMBERS: u64 = 5_000_000;
    const EACH: u64 = NUMBERS / TELLERS;
    let collector = spawn!(collect(_, NUMBERS));
    let tellers = (0..TELLERS).map(|_| spawn!(teller(_, EACH, collector.address())));
    let tellers: Vec<_> = tellers.collect();
    let begin = Instant::now();
    for (teller, index) in tellers.iter().zip(0..) {
        teller.tell(index * EACH).expect("the actor lives");
    }
    let sum = collector.join().await.expect("no panic");
    assert_eq!(sum, sum_below(NUMBERS));
    rate(NUMBERS, begin)
}

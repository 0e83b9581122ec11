//! Actors that always have messages do not delay other actors, and a fast producer does not fill
//! the memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom::{Address, Context, Reply, Runtime, actor, spawn, yield_now};

use crate::support::{WATCH, drive, within};

/// A message that goes to and fro, with the address to send it back to.
struct Ball(Option<Address<Ball>>);

/// Sends each ball back to its sender, and counts the balls.
async fn flooded(mut cx: Context<Ball>, handled: Arc<AtomicUsize>) {
    let own = cx.downgrade();
    while let Some(Ball(from)) = cx.recv().await {
        handled.fetch_add(1, Ordering::Relaxed);
        let (Some(from), Some(own)) = (from, own.upgrade()) else {
            continue;
        };
        // The other actor may have been stopped.
        let _ = from.tell(Ball(Some(own)));
    }
}

/// Keeps so many balls between pairs of actors that no mailbox is ever empty.
fn flood(runtime: &Runtime, pairs: usize, handled: &Arc<AtomicUsize>) {
    const BALLS: usize = 1000;
    for _ in 0..pairs {
        let pair = [(); 2].map(|()| spawn!(flooded(_, handled.clone()), on = runtime));
        for ball in 0..BALLS {
            let from = pair[1 - ball % 2].address();
            pair[ball % 2].tell(Ball(Some(from))).unwrap();
        }
    }
}

async fn echo(mut cx: Context<(u32, Reply<u32>)>) {
    while let Some((number, reply)) = cx.recv().await {
        reply.send(number);
    }
}

#[test]
fn an_echo_is_answered_beside_two_flooded_actors_per_worker() {
    const ASKS: u32 = 500;
    /// The messages that the flooded actors may handle during one ask. They may have a batch each
    /// on the way to the echo and back, and one batch in progress; twice that, because newer tasks
    /// run first.
    const HANDLED_MAX: usize = 2 * 2 * (2 + 1) * 32;
    within(WATCH, || {
        for workers in [1, 2] {
            let builder = Runtime::builder().workers(workers);
            let runtime = builder.grace(std::time::Duration::ZERO).build().unwrap();
            let handled = Arc::new(AtomicUsize::new(0));
            flood(&runtime, workers, &handled);
            let echo = spawn!(echo(_), on = &runtime);
            let count = handled.clone();
            let between = drive(runtime.spawn(async move {
                let (mut most, mut number) = (0, 0);
                // Also waits until the mailboxes are flooded.
                while number < ASKS || count.load(Ordering::Relaxed) <= 10_000 {
                    number += 1;
                    let before = count.load(Ordering::Relaxed);
                    assert_eq!(echo.ask(|reply| (number, reply)).await, Ok(number));
                    most = most.max(count.load(Ordering::Relaxed) - before);
                }
                most
            }));
            // With several workers, other workers count on while this one has lost its core.
            assert!(
                workers > 1 || between <= HANDLED_MAX,
                "{between} messages were handled during one ask"
            );
            drop(runtime);
        }
    });
}

/// Counts how many parcels exist, and the most that existed at one time.
#[derive(Default, Clone)]
struct Alive(Arc<[AtomicUsize; 2]>);

struct Parcel(Alive);

impl Parcel {
    fn new(alive: &Alive) -> Parcel {
        let now = alive.0[0].fetch_add(1, Ordering::SeqCst) + 1;
        alive.0[1].fetch_max(now, Ordering::SeqCst);
        Parcel(alive.clone())
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        self.0.0[0].fetch_sub(1, Ordering::SeqCst);
    }
}

/// Passes each parcel on when there is room.
async fn stage(mut cx: Context<Parcel>, next: Address<Parcel>) {
    while let Some(parcel) = cx.recv().await {
        next.send(parcel).await.unwrap();
    }
}

/// Yields before each message: slower than the producer.
async fn last(mut cx: Context<Parcel>) -> usize {
    let mut received = 0;
    while let Some(parcel) = cx.recv().await {
        yield_now().await;
        drop(parcel);
        received += 1;
    }
    received
}

#[test]
fn a_bounded_chain_under_a_fast_producer_keeps_its_memory() {
    const CAPACITY: usize = 16;
    const PARCELS: usize = 20_000;
    /// Three full mailboxes, and one parcel held by each actor and by the producer.
    const ALIVE_MAX: usize = 3 * CAPACITY + 3 + 1;
    within(WATCH, || {
        for workers in [1, 2] {
            let runtime = Runtime::builder().workers(workers).build().unwrap();
            let alive = Alive::default();
            let third = actor(last).capacity(CAPACITY).on(&runtime).spawn();
            let (to_third, own) = (third.address(), alive.clone());
            let second = spawn!(stage(_, to_third), capacity = CAPACITY, on = &runtime);
            let to_second = second.address();
            let first = spawn!(stage(_, to_second), capacity = CAPACITY, on = &runtime);
            drop(second);
            let producer = runtime.spawn(async move {
                for _ in 0..PARCELS {
                    first.send(Parcel::new(&own)).await.unwrap();
                }
            });
            drive(producer);
            assert_eq!(drive(third.join()).unwrap(), PARCELS);
            let [now, most] = [0, 1].map(|at| alive.0[at].load(Ordering::SeqCst));
            assert_eq!(now, 0);
            assert!(most <= ALIVE_MAX, "{most} parcels at a time");
            assert!(
                most > CAPACITY,
                "the producer must be faster than the actors: {most}"
            );
        }
    });
}

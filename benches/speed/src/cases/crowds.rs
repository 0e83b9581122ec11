//! Many actors with a message each.

use std::time::Instant;

use super::{collect, rate, sum_below};
use crate::names::{Address, Context, spawn};

/// Adds each number to its state, and sends the sum to `collector`.
async fn adder(mut cx: Context<u64>, state: u64, collector: Address<u64>) {
    let mut total = state;
    while let Some(n) = cx.recv().await {
        total += n;
        collector.tell(total).expect("the collector waits for all");
    }
}

/// Spawns actors, sends each a number, and ends them all.
pub async fn spawning() -> f64 {
    const ACTORS: u64 = 200_000;
    let begin = Instant::now();
    let collector = spawn!(collect(_, ACTORS));
    let mut held = Vec::with_capacity(ACTORS as usize);
    for n in 0..ACTORS {
        let actor = spawn!(adder(_, n, collector.address()));
        actor.tell(1).expect("the actor lives");
        held.push(actor);
    }
    let sum = collector.join().await.expect("no panic");
    assert_eq!(sum, sum_below(ACTORS) + ACTORS);
    rate(ACTORS, begin)
}

enum Token {
    Next(Address<Token>),
    Hop(u64),
    Stop,
}

/// Passes a token on, with one hop less; sends 1 to `arrived` if it has none left. At its end it
/// sends to `done` how often it had the token.
async fn station(mut cx: Context<Token>, arrived: Address<u64>, done: Address<u64>) {
    let (mut seen, mut next) = (0, None);
    while let Some(message) = cx.recv().await {
        match message {
            Token::Next(address) => next = Some(address),
            Token::Hop(left) => {
                seen += 1;
                if left == 1 {
                    arrived.tell(1).expect("the collector waits for it");
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

/// Sends one token round a ring.
pub async fn ring() -> f64 {
    const STATIONS: usize = 1000;
    const HOPS: u64 = 3_000_000;
    let arrived = spawn!(collect(_, 1));
    let done = spawn!(collect(_, STATIONS as u64));
    let stations = (0..STATIONS).map(|_| spawn!(station(_, arrived.address(), done.address())));
    let stations: Vec<_> = stations.collect();
    for (index, station) in stations.iter().enumerate() {
        let next = stations[(index + 1) % STATIONS].address();
        assert!(station.tell(Token::Next(next)).is_ok(), "the actor lives");
    }
    let begin = Instant::now();
    assert!(
        stations[0].tell(Token::Hop(HOPS)).is_ok(),
        "the actor lives"
    );
    assert_eq!(arrived.join().await.expect("no panic"), 1);
    let rate = rate(HOPS, begin);
    assert!(stations[0].tell(Token::Stop).is_ok(), "the actor lives");
    drop(stations);
    assert_eq!(done.join().await.expect("no panic"), HOPS);
    rate
}

/// What a creature hears from the place where they meet.
enum News {
    Met,
    Over,
}

/// Pairs the creatures that come, until they have met `left` times.
async fn place(mut cx: Context<Address<News>>, mut left: u64) {
    let mut waiting: Option<Address<News>> = None;
    while let Some(creature) = cx.recv().await {
        if left == 0 {
            assert!(creature.tell(News::Over).is_ok(), "the creature waits");
        } else if let Some(first) = waiting.take() {
            left -= 1;
            let told = first.tell(News::Met).is_ok() && creature.tell(News::Met).is_ok();
            assert!(told, "the creatures wait");
        } else {
            waiting = Some(creature);
        }
    }
}

/// Comes to `place` until no meetings are left; then sends its number of meetings to `total`.
async fn creature(mut cx: Context<News>, place: Address<Address<News>>, total: Address<u64>) {
    let (own, mut meetings) = (cx.address(), 0);
    loop {
        assert!(place.tell(own.clone()).is_ok(), "the place is open");
        match cx.recv().await {
            Some(News::Met) => meetings += 1,
            Some(News::Over) | None => break,
        }
    }
    total.tell(meetings).expect("the collector waits for all");
}

/// Lets creatures meet in pairs.
pub async fn meetings() -> f64 {
    const CREATURES: u64 = 100;
    const MEETINGS: u64 = 700_000;
    let total = spawn!(collect(_, CREATURES));
    let place = spawn!(place(_, MEETINGS));
    let begin = Instant::now();
    let creatures = (0..CREATURES).map(|_| spawn!(creature(_, place.address(), total.address())));
    let creatures: Vec<_> = creatures.collect();
    let met = total.join().await.expect("no panic");
    assert_eq!(met, 2 * MEETINGS);
    drop(creatures);
    rate(MEETINGS, begin)
}

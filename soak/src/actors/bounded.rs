//! Actors whose mailboxes are full, and those whose words give way to newer or more urgent ones.

use std::time::Duration;

use fastrand::Rng;
use greenroom::{Overflow, actor};

use super::word::{SENDERS, Word, ask, ask_in_time, reader, send, tell};
use crate::book::Book;

pub static BOUNDED: Book = Book::new("bounded mailboxes");
pub static DISPLACING: Book = Book::new("displacing mailboxes");
pub static CONFLATING: Book = Book::new("conflating mailboxes");
pub static URGENT: Book = Book::new("urgent mailboxes");
pub static SLOW: Book = Book::new("slow actors");

const ROOM: usize = 16;

/// How many bursts a task sends to each kind of actor.
const BURSTS: u64 = 150;

/// Twice as many words as there is room for.
const BURST: u64 = 32;

pub async fn load(mut rng: Rng) {
    lines().await;
    displacing(&mut rng, Overflow::Oldest).await;
    displacing(&mut rng, Overflow::Newest).await;
    conflating(&mut rng).await;
    urgent(&mut rng).await;
    slow(&mut rng).await;
}

/// Lets several senders wait in line for room. The words of each stay in order.
async fn lines() {
    let builder = actor(|cx| reader(cx, None)).capacity(ROOM);
    let actor = builder.on_undelivered(Word::undelivered).spawn();
    let senders = (0..SENDERS).map(|sender| {
        let to = actor.address();
        greenroom::spawn(async move {
            for number in 1..=BURSTS * BURST {
                let word = Word::numbered(&BOUNDED, sender, number);
                match number % 8 {
                    0 => tell(&to, word),
                    _ => send(&to, word).await,
                }
                if number % 64 == 0 {
                    ask(&to, &BOUNDED).await;
                }
            }
        })
    });
    let senders: Vec<_> = senders.collect();
    for sender in senders {
        sender.await;
    }
    actor.stop();
    let _ = actor.join().await;
}

/// Lets the oldest words give way, or the newest ones be refused.
async fn displacing(rng: &mut Rng, overflow: Overflow) {
    let builder = actor(|cx| reader(cx, None)).capacity(ROOM);
    let builder = builder.overflow(overflow).on_displaced(Word::displaced);
    let actor = builder.on_undelivered(Word::undelivered).spawn();
    for _ in 0..BURSTS {
        let address = actor.address();
        let asks = greenroom::spawn(async move { ask(&address, &DISPLACING).await });
        for _ in 0..rng.u64(1..=2 * BURST) {
            tell(&actor, Word::new(&DISPLACING));
        }
        asks.await;
    }
    actor.stop();
    let _ = actor.join().await;
}

/// Lets words give way to newer ones of their key.
async fn conflating(rng: &mut Rng) {
    let builder = actor(|cx| reader(cx, None)).capacity(ROOM);
    let builder = builder.conflate(|word: &Word| word.sender);
    let builder = builder.overflow(Overflow::Oldest);
    let builder = builder.on_displaced(Word::displaced);
    let actor = builder.on_undelivered(Word::undelivered).spawn();
    for _ in 0..BURSTS {
        for _ in 0..rng.u64(1..=BURST) {
            let word = Word {
                sender: rng.usize(..2 * ROOM),
                ..Word::new(&CONFLATING)
            };
            tell(&actor, word);
        }
        ask(&actor, &CONFLATING).await;
    }
    actor.stop();
    let _ = actor.join().await;
}

/// Sends urgent words, which overtake plain ones and have room of their own.
async fn urgent(rng: &mut Rng) {
    let builder = actor(|cx| reader(cx, None)).capacity(ROOM).urgent(ROOM);
    let actor = builder.on_undelivered(Word::undelivered).spawn();
    let urgent = actor.urgent().expect("the actor has the option");
    for _ in 0..BURSTS {
        for _ in 0..rng.u64(1..=BURST) {
            tell(&actor, Word::new(&URGENT));
            tell(&urgent, Word::new(&URGENT));
        }
        send(&actor, Word::new(&URGENT)).await;
        ask(&urgent, &URGENT).await;
        ask(&actor, &URGENT).await;
    }
    // What is left has two ends: it is handled, or it is not received any more.
    actor.stop_now();
    let _ = actor.join().await;
}

/// Asks a reader that takes longer than the timeout of some asks.
async fn slow(rng: &mut Rng) {
    let wait = Some(Duration::from_micros(500));
    let builder = actor(move |cx| reader(cx, wait)).capacity(ROOM);
    let actor = builder.on_undelivered(Word::undelivered).spawn();
    for _ in 0..BURSTS {
        tell(&actor, Word::new(&SLOW));
        let time = Duration::from_micros(rng.u64(100..2000));
        ask_in_time(&actor, &SLOW, time).await;
    }
    // One word may be in hand.
    SLOW.fault(1);
    actor.kill();
    let _ = actor.join().await;
}

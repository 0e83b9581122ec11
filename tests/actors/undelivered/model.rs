//! A model of undelivered messages: senders of each kind, and an actor that ends at any time.
//!
//! Each seed draws the actor, its senders and its end. Every accepted message is handled or
//! undelivered exactly once, in the order in which its sender's messages were accepted.

use std::ops::Range;

use greenroom::{Address, AskError, Context, Reply, actor, sim, yield_now};

use crate::support::{Log, WATCH, within};

const SEEDS: Range<u64> = 0..300;
const SENDERS: usize = 3;

/// The sender, the number among the messages of that sender, and the reply to an ask.
struct Letter(usize, u32, Option<Reply<()>>);

/// Draws numbers from a seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    async fn yields(&mut self, limit: usize) {
        for _ in 0..self.below(limit) {
            yield_now().await;
        }
    }
}

/// Handles letters, and returns or stops itself after some of them.
async fn reader(mut cx: Context<Letter>, mut draws: Draws, seen: Log<(usize, u32)>) {
    let mut left = 1 + draws.below(20);
    while let Some(Letter(from, number, reply)) = cx.recv().await {
        seen.add((from, number));
        if let Some(reply) = reply {
            reply.send(());
        }
        draws.yields(3).await;
        left -= 1;
        match left {
            0 if draws.below(2) == 0 => return,
            0 => {
                cx.stop();
                left = usize::MAX;
            }
            _ => {}
        }
    }
}

/// Sends letters one after another, and returns the numbers of those that were accepted.
async fn sender(to: Address<Letter>, from: usize, mut draws: Draws) -> Vec<u32> {
    let mut accepted = Vec::new();
    for number in 0..draws.below(8) as u32 {
        let is_accepted = match draws.below(4) {
            0 => to.tell(Letter(from, number, None)).is_ok(),
            1 => to.send(Letter(from, number, None)).await.is_ok(),
            2 => match to.reserve().await {
                Ok(permit) => {
                    draws.yields(6).await;
                    permit.send(Letter(from, number, None));
                    true
                }
                Err(_) => false,
            },
            _ => {
                let asked = to.ask(|reply| Letter(from, number, Some(reply))).await;
                !matches!(asked, Err(AskError::Closed(_)))
            }
        };
        if is_accepted {
            accepted.push(number);
        }
        draws.yields(3).await;
    }
    accepted
}

async fn run(seed: u64) {
    let mut draws = Draws(seed * 2 + 1);
    // Each is handled, or else undelivered.
    let seen = Log::default();
    let (handled, undelivered) = (seen.clone(), seen.clone());
    let own = Draws(seed * 4 + 3);
    let mut reader = actor(|cx| reader(cx, own, handled))
        .on_undelivered(move |Letter(from, number, _)| undelivered.add((from, number)));
    if draws.below(2) == 0 {
        reader = reader.capacity(1 + draws.below(3));
    }
    let reader = reader.spawn();
    let senders = (0..SENDERS).map(|from| {
        let own = Draws((seed * 8 + from as u64) * 2 + 1);
        greenroom::spawn(sender(reader.address(), from, own))
    });
    let senders: Vec<_> = senders.collect();
    draws.yields(30).await;
    match draws.below(3) {
        0 => reader.kill(),
        1 => reader.stop(),
        _ => {}
    }
    let _ = reader.join().await;
    let accepted = futures::future::join_all(senders).await;
    let seen = seen.take();
    for (from, accepted) in accepted.iter().enumerate() {
        let of_sender = seen.iter().filter(|(sender, _)| *sender == from);
        let seen: Vec<u32> = of_sender.map(|(_, number)| *number).collect();
        assert_eq!(seen, *accepted, "of the sender {from}");
    }
}

#[test]
fn every_accepted_message_is_handled_or_undelivered_once_in_order() {
    within(WATCH, || sim::explore(SEEDS, run));
}

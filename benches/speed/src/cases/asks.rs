//! Two actors that wait for each other at each message.

use std::time::Instant;

use super::{rate, sum_below};
use crate::names::{Address, Context, Reply, spawn};

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
                let partner: &Address<Play> = partner.as_ref().expect("a partner was told first");
                let passed = partner.tell(Play::Ball(left - 1));
                assert!(passed.is_ok(), "the partner waits");
            }
        }
    }
    balls
}

/// Passes a ball to and fro.
pub async fn ping_pong() -> f64 {
    const ROUND_TRIPS: u64 = 1_500_000;
    let (one, two) = (spawn!(player(_)), spawn!(player(_)));
    let introduced = one.tell(Play::Partner(two.address())).is_ok()
        && two.tell(Play::Partner(one.address())).is_ok();
    assert!(introduced, "the players live");
    let begin = Instant::now();
    let served = one.tell(Play::Ball(2 * ROUND_TRIPS));
    assert!(served.is_ok(), "the player lives");
    assert_eq!(two.join().await.expect("no panic"), ROUND_TRIPS);
    assert_eq!(one.join().await.expect("no panic"), ROUND_TRIPS);
    rate(ROUND_TRIPS, begin)
}

/// A number, and the reply that sends it back.
struct Question(u64, Reply<u64>);

async fn echo(mut cx: Context<Question>) {
    while let Some(Question(n, reply)) = cx.recv().await {
        reply.send(n);
    }
}

/// Asks one actor, each time after its last answer.
pub async fn ask() -> f64 {
    const QUESTIONS: u64 = 1_000_000;
    let echo = spawn!(echo(_));
    let (begin, mut answers) = (Instant::now(), 0);
    for n in 0..QUESTIONS {
        let answer = echo.ask(|reply| Question(n, reply)).await;
        answers += answer.expect("it answers");
    }
    assert_eq!(answers, sum_below(QUESTIONS));
    rate(QUESTIONS, begin)
}

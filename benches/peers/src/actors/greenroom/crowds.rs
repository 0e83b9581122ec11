//! Crowds of threads, workers, members and clients, on greenroom.

use std::sync::Arc;
use std::time::Instant;

use greenroom::registry::Group;
use greenroom::{Context, Handle, concurrently, spawn};

use super::{Question, echo, question, ring_tokens, teller};
use crate::crowds::{self, Share, check_round, many_workers, per_member, picks, skewed};
use crate::executors::Executor;
use crate::executors::greenroom::Greenroom;
use crate::figures::{Figure, check};
use crate::sizes::{MEMBER_ROUNDS, MEMBERS, SKEWED};

/// Adds each number to its share.
pub async fn counter(mut cx: Context<u64>, mut share: Share) {
    while let Some(n) = cx.recv().await {
        share.add(n);
    }
}

/// Runs the cases with bursts.
pub fn bursts(actors: usize) -> Vec<Figure> {
    let runtime = Greenroom::start();
    let spawn = |share| spawn!(counter(_, share));
    crowds::bursts(
        actors,
        |shares| runtime.inside(async move { shares.into_iter().map(spawn).collect() }),
        |to: &Handle<u64, ()>, n| to.tell(n).expect("the actor lives"),
    )
}

/// Runs the case `workers_64`.
pub fn workers() -> Vec<Figure> {
    many_workers(|workers| Greenroom::of(workers).inside(ring_tokens()))
}

fn echoes(count: usize) -> Arc<[Handle<Question, ()>]> {
    (0..count).map(|_| spawn!(echo(_))).collect()
}

/// Runs the case `scatter`.
pub async fn scatter() -> Vec<Figure> {
    let actors = echoes(MEMBERS as usize);
    let begin = Instant::now();
    for _ in 0..MEMBER_ROUNDS {
        let asks = actors.iter().zip(0..).map(|(to, n)| question(to, n));
        let answers = concurrently(asks.collect::<Vec<_>>()).await;
        check_round(answers.into_iter().sum());
    }
    per_member(begin)
}

/// Runs the case `gather`.
pub async fn gather() -> Vec<Figure> {
    let (share, mut sums) = Share::of(MEMBERS);
    let collector = spawn!(counter(_, share));
    let tellers = (0..MEMBERS).map(|_| spawn!(teller(_, 1, collector.address())));
    let tellers: Vec<_> = tellers.collect();
    let begin = Instant::now();
    for _ in 0..MEMBER_ROUNDS {
        for (teller, n) in tellers.iter().zip(0..) {
            teller.tell(n).expect("the actor lives");
        }
        check_round(sums.recv().await.expect("all are told"));
    }
    per_member(begin)
}

/// Runs the case `topic`.
pub async fn topic() -> Vec<Figure> {
    const TOPIC: Group<u64> = Group::new("topic");
    let (shares, mut sums) = Share::of_each(MEMBERS as usize, 1);
    let members = shares.into_iter().map(|share| spawn!(counter(_, share)));
    let members: Vec<_> = members.collect();
    for member in &members {
        TOPIC.join(member).expect("it is open");
    }
    let begin = Instant::now();
    for n in 0..MEMBER_ROUNDS {
        let sent = TOPIC.broadcast(n).sent as u64;
        check("members", sent, MEMBERS);
        check("sum", sums.recv().await.expect("all are told"), n * MEMBERS);
    }
    per_member(begin)
}

async fn client(actors: Arc<[Handle<Question, ()>]>, client: u64) -> u64 {
    let mut sum = 0;
    for (pick, n) in picks(client).zip(0..) {
        sum += question(&actors[pick], n).await;
    }
    sum
}

/// Runs the case `asks_skewed`.
pub async fn asks() -> Vec<Figure> {
    let actors = echoes(SKEWED);
    skewed(|index| greenroom::spawn(client(actors.clone(), index))).await
}

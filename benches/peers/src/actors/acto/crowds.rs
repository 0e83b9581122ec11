//! Crowds of threads, workers, members and clients, on acto.

use std::sync::Arc;
use std::time::Instant;

use acto::{AcTokioRuntime, ActoRef, ActoRuntime};
use futures_util::future::join_all;

use super::{Cell, Question, echo, message, question, ring_tokens, start, start_of, teller};
use crate::crowds::{self, Share, check_round, many_workers, per_member, picks, skewed};
use crate::executors::Executor;
use crate::executors::tokio::Tokio;
use crate::figures::Figure;
use crate::sizes::{MEMBER_ROUNDS, MEMBERS, SKEWED};

/// Adds each number to its share.
async fn counter(mut cell: Cell<u64>, mut share: Share) {
    while let Some(n) = message(&mut cell).await {
        share.add(n);
    }
}

fn spawn(runtime: &AcTokioRuntime, share: Share) -> ActoRef<u64> {
    runtime
        .spawn_actor("counter", |cell| counter(cell, share))
        .me
}

/// Runs the cases with bursts.
pub fn bursts(actors: usize) -> Vec<Figure> {
    let (_workers, runtime) = start(async |runtime| runtime);
    crowds::bursts(
        actors,
        |shares| {
            shares
                .into_iter()
                .map(|share| spawn(&runtime, share))
                .collect()
        },
        |to: &ActoRef<u64>, n| assert!(to.send(n), "the actor lives"),
    )
}

/// Runs the case `workers_64`.
pub fn workers() -> Vec<Figure> {
    many_workers(|workers| start_of(workers, ring_tokens).1)
}

fn echoes(runtime: &AcTokioRuntime, count: usize) -> Arc<[ActoRef<Question>]> {
    let spawn = |_| runtime.spawn_actor("echo", echo).me;
    (0..count).map(spawn).collect()
}

/// Runs the case `scatter`.
pub async fn scatter(runtime: AcTokioRuntime) -> Vec<Figure> {
    let actors = echoes(&runtime, MEMBERS as usize);
    let begin = Instant::now();
    for _ in 0..MEMBER_ROUNDS {
        let asks = actors.iter().zip(0..).map(|(to, n)| question(to, n));
        check_round(join_all(asks).await.into_iter().sum());
    }
    per_member(begin)
}

/// Runs the case `gather`.
pub async fn gather(runtime: AcTokioRuntime) -> Vec<Figure> {
    let (share, mut sums) = Share::of(MEMBERS);
    let collector = spawn(&runtime, share);
    let tellers = (0..MEMBERS).map(|_| {
        let collector = collector.clone();
        runtime
            .spawn_actor("teller", |cell| teller(cell, collector))
            .me
    });
    let tellers: Vec<_> = tellers.collect();
    let begin = Instant::now();
    for _ in 0..MEMBER_ROUNDS {
        for (teller, n) in tellers.iter().zip(0..) {
            assert!(teller.send(n..n + 1), "the actor lives");
        }
        check_round(sums.recv().await.expect("all are told"));
    }
    per_member(begin)
}

async fn client(actors: Arc<[ActoRef<Question>]>, client: u64) -> u64 {
    let mut sum = 0;
    for (pick, n) in picks(client).zip(0..) {
        sum += question(&actors[pick], n).await;
    }
    sum
}

/// Runs the case `asks_skewed`.
pub async fn asks(runtime: AcTokioRuntime) -> Vec<Figure> {
    let actors = echoes(&runtime, SKEWED);
    skewed(|index| Tokio::spawn(client(actors.clone(), index))).await
}

//! Crowds of threads, workers, members and clients, by hand on async-executor.

use std::sync::Arc;
use std::time::Instant;

use async_channel::{Receiver, Sender, unbounded};
use futures_util::future::join_all;

use super::{Question, echo, question, ring_tokens, teller};
use crate::crowds::{self, Share, check_round, many_workers, per_member, picks, skewed};
use crate::executors::Executor;
use crate::executors::async_executor::{AsyncExecutor, THREADS};
use crate::figures::Figure;
use crate::sizes::{MEMBER_ROUNDS, MEMBERS, SKEWED};

/// Adds each number to its share.
async fn counter(inbox: Receiver<u64>, mut share: Share) {
    while let Ok(n) = inbox.recv().await {
        share.add(n);
    }
}

fn spawn(share: Share) -> Sender<u64> {
    let (address, inbox) = unbounded();
    THREADS.spawn(counter(inbox, share)).detach();
    address
}

/// Runs the cases with bursts.
pub fn bursts(actors: usize) -> Vec<Figure> {
    let runtime = AsyncExecutor::start();
    crowds::bursts(
        actors,
        |shares| runtime.inside(async { shares.into_iter().map(spawn).collect() }),
        |to: &Sender<u64>, n| to.try_send(n).expect("the actor lives"),
    )
}

/// Runs the case `workers_64`.
pub fn workers() -> Vec<Figure> {
    many_workers(|workers| AsyncExecutor::of(workers).inside(ring_tokens()))
}

fn echoes(count: usize) -> Arc<[Sender<Question>]> {
    let spawn = |_| {
        let (address, inbox) = unbounded();
        THREADS.spawn(echo(inbox)).detach();
        address
    };
    (0..count).map(spawn).collect()
}

/// Runs the case `scatter`.
pub async fn scatter() -> Vec<Figure> {
    let actors = echoes(MEMBERS as usize);
    let begin = Instant::now();
    for _ in 0..MEMBER_ROUNDS {
        let asks = actors.iter().zip(0..).map(|(to, n)| question(to, n));
        check_round(join_all(asks).await.into_iter().sum());
    }
    per_member(begin)
}

/// Runs the case `gather`.
pub async fn gather() -> Vec<Figure> {
    let (share, mut sums) = Share::of(MEMBERS);
    let collector = spawn(share);
    let tellers = (0..MEMBERS).map(|_| {
        let (address, inbox) = unbounded();
        THREADS.spawn(teller(inbox, 1, collector.clone())).detach();
        address
    });
    let tellers: Vec<_> = tellers.collect();
    let begin = Instant::now();
    for _ in 0..MEMBER_ROUNDS {
        for (teller, n) in tellers.iter().zip(0..) {
            teller.try_send(n).expect("the actor lives");
        }
        check_round(sums.recv().await.expect("all are told"));
    }
    per_member(begin)
}

async fn client(actors: Arc<[Sender<Question>]>, client: u64) -> u64 {
    let mut sum = 0;
    for (pick, n) in picks(client).zip(0..) {
        sum += question(&actors[pick], n).await;
    }
    sum
}

/// Runs the case `asks_skewed`.
pub async fn asks() -> Vec<Figure> {
    let actors = echoes(SKEWED);
    skewed(|index| THREADS.spawn(client(actors.clone(), index))).await
}

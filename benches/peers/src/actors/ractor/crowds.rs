//! Crowds of threads, workers, members and clients, on ractor.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::{Echo, Handled, Question, Teller, question, ring_tokens, spawn};
use crate::crowds::{self, Share, check_round, many_workers, per_member, picks, skewed};
use crate::executors::Executor;
use crate::executors::tokio::Tokio;
use crate::figures::Figure;
use crate::sizes::{MEMBER_ROUNDS, MEMBERS, SKEWED};

/// An actor that adds each number to its share.
struct Counter;

impl Actor for Counter {
    type Msg = u64;
    type State = Share;
    type Arguments = Share;

    async fn pre_start(&self, _: ActorRef<u64>, share: Share) -> Result<Share, ActorProcessingErr> {
        Ok(share)
    }

    async fn handle(&self, _: ActorRef<u64>, n: u64, share: &mut Share) -> Handled {
        share.add(n);
        Ok(())
    }
}

/// Runs the cases with bursts.
pub fn bursts(actors: usize) -> Vec<Figure> {
    let runtime = Tokio::start();
    let spawn = |share| spawn(Counter, share);
    crowds::bursts(
        actors,
        |shares| runtime.inside(join_all(shares.into_iter().map(spawn))),
        |to: &ActorRef<u64>, n| to.cast(n).expect("the actor lives"),
    )
}

/// Runs the case `workers_64`.
pub fn workers() -> Vec<Figure> {
    many_workers(|workers| Tokio::of(workers).inside(ring_tokens()))
}

async fn echoes(count: usize) -> Arc<[ActorRef<Question>]> {
    let echoes = (0..count).map(|_| spawn(Echo, ()));
    join_all(echoes).await.into()
}

/// Runs the case `scatter`.
pub async fn scatter() -> Vec<Figure> {
    let actors = echoes(MEMBERS as usize).await;
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
    let collector = spawn(Counter, share).await;
    let tellers = (0..MEMBERS).map(|_| {
        let collector = collector.clone();
        spawn(Teller { collector }, ())
    });
    let tellers = join_all(tellers).await;
    let begin = Instant::now();
    for _ in 0..MEMBER_ROUNDS {
        for (teller, n) in tellers.iter().zip(0..) {
            teller.cast(n..n + 1).expect("the actor lives");
        }
        check_round(sums.recv().await.expect("all are told"));
    }
    per_member(begin)
}

async fn client(actors: Arc<[ActorRef<Question>]>, client: u64) -> u64 {
    let mut sum = 0;
    for (pick, n) in picks(client).zip(0..) {
        sum += question(&actors[pick], n).await;
    }
    sum
}

/// Runs the case `asks_skewed`.
pub async fn asks() -> Vec<Figure> {
    let actors = echoes(SKEWED).await;
    skewed(|index| Tokio::spawn(client(actors.clone(), index))).await
}

//! Crowds of threads, workers, members and clients, on kameo.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use kameo::actor::{Actor, ActorRef};
use kameo::message::{Context, Message};

use super::{Add, Echo, question, ring_tokens, spawn};
use crate::crowds::{self, Share, check_round, many_workers, per_member, picks, skewed};
use crate::executors::Executor;
use crate::executors::tokio::Tokio;
use crate::figures::Figure;
use crate::sizes::{MEMBER_ROUNDS, MEMBERS, SKEWED};

plain_actors!(Counter, Member);

/// An actor that adds each number to its share.
struct Counter(Share);

impl Message<Add> for Counter {
    type Reply = ();

    async fn handle(&mut self, Add(n): Add, _: &mut Context<Self, ()>) {
        self.0.add(n);
    }
}

/// Runs the cases with bursts.
pub fn bursts(actors: usize) -> Vec<Figure> {
    let runtime = Tokio::start();
    let spawn = |share| spawn(Counter(share));
    crowds::bursts(
        actors,
        |shares| runtime.inside(async move { shares.into_iter().map(spawn).collect() }),
        |to: &ActorRef<Counter>, n| to.tell(Add(n)).try_send().expect("the actor lives"),
    )
}

/// Runs the case `workers_64`.
pub fn workers() -> Vec<Figure> {
    many_workers(|workers| Tokio::of(workers).inside(ring_tokens()))
}

fn echoes(count: usize) -> Arc<[ActorRef<Echo>]> {
    (0..count).map(|_| spawn(Echo)).collect()
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

/// An actor that sends its numbers to the collector.
struct Member {
    collector: ActorRef<Counter>,
}

impl Message<Add> for Member {
    type Reply = ();

    async fn handle(&mut self, add: Add, _: &mut Context<Self, ()>) {
        let told = self.collector.tell(add).await;
        told.expect("the collector waits for all");
    }
}

/// Runs the case `gather`.
pub async fn gather() -> Vec<Figure> {
    let (share, mut sums) = Share::of(MEMBERS);
    let collector = spawn(Counter(share));
    let tellers = (0..MEMBERS).map(|_| {
        let collector = collector.clone();
        spawn(Member { collector })
    });
    let tellers: Vec<_> = tellers.collect();
    let begin = Instant::now();
    for _ in 0..MEMBER_ROUNDS {
        for (teller, n) in tellers.iter().zip(0..) {
            teller.tell(Add(n)).await.expect("the actor lives");
        }
        check_round(sums.recv().await.expect("all are told"));
    }
    per_member(begin)
}

async fn client(actors: Arc<[ActorRef<Echo>]>, client: u64) -> u64 {
    let mut sum = 0;
    for (pick, n) in picks(client).zip(0..) {
        sum += question(&actors[pick], n).await;
    }
    sum
}

/// Runs the case `asks_skewed`.
pub async fn asks() -> Vec<Figure> {
    let actors = echoes(SKEWED);
    skewed(|index| Tokio::spawn(client(actors.clone(), index))).await
}

//! Crowds of threads, members and clients, on actix.

use std::sync::Arc;
use std::time::Instant;

use actix::{Actor, Addr, Context, Handler};
use futures_util::future::join_all;
use tokio::sync::oneshot;

use super::{Add, Arbiters, Echo, question, start};
use crate::crowds::{self, Share, check_round, per_member, picks, skewed};
use crate::figures::Figure;
use crate::sizes::{MEMBER_ROUNDS, MEMBERS, SKEWED};

plain_actors!(Counter, Member);

/// An actor that adds each number to its share.
struct Counter(Share);

impl Handler<Add> for Counter {
    type Result = ();

    fn handle(&mut self, Add(n): Add, _: &mut Context<Self>) {
        self.0.add(n);
    }
}

/// Runs the cases with bursts.
pub fn bursts(actors: usize) -> Vec<Figure> {
    let ((_system, arbiters), ()) = start(async |_| ());
    let spawn = |share| arbiters.start(Counter(share));
    crowds::bursts(
        actors,
        |shares| shares.into_iter().map(spawn).collect(),
        |to: &Addr<Counter>, n| to.do_send(Add(n)),
    )
}

fn echoes(arbiters: &Arbiters, count: usize) -> Arc<[Addr<Echo>]> {
    (0..count).map(|_| arbiters.start(Echo)).collect()
}

/// Runs the case `scatter`.
pub async fn scatter(arbiters: Arc<Arbiters>) -> Vec<Figure> {
    let actors = echoes(&arbiters, MEMBERS as usize);
    let begin = Instant::now();
    for _ in 0..MEMBER_ROUNDS {
        let asks = actors.iter().zip(0..).map(|(to, n)| question(to, n));
        check_round(join_all(asks).await.into_iter().sum());
    }
    per_member(begin)
}

/// An actor that sends its numbers to the collector.
struct Member {
    collector: Addr<Counter>,
}

impl Handler<Add> for Member {
    type Result = ();

    fn handle(&mut self, add: Add, _: &mut Context<Self>) {
        self.collector.do_send(add);
    }
}

/// Runs the case `gather`.
pub async fn gather(arbiters: Arc<Arbiters>) -> Vec<Figure> {
    let (share, mut sums) = Share::of(MEMBERS);
    let collector = arbiters.start(Counter(share));
    let tellers = (0..MEMBERS).map(|_| {
        let collector = collector.clone();
        arbiters.start(Member { collector })
    });
    let tellers: Vec<_> = tellers.collect();
    let begin = Instant::now();
    for _ in 0..MEMBER_ROUNDS {
        for (teller, n) in tellers.iter().zip(0..) {
            teller.do_send(Add(n));
        }
        check_round(sums.recv().await.expect("all are told"));
    }
    per_member(begin)
}

async fn client(actors: Arc<[Addr<Echo>]>, client: u64) -> u64 {
    let mut sum = 0;
    for (pick, n) in picks(client).zip(0..) {
        sum += question(&actors[pick], n).await;
    }
    sum
}

/// Runs the case `asks_skewed`: the clients alternate between the arbiters.
pub async fn asks(arbiters: Arc<Arbiters>) -> Vec<Figure> {
    let actors = echoes(&arbiters, SKEWED);
    skewed(|index| {
        let (done, sum) = oneshot::channel();
        let asking = client(actors.clone(), index);
        arbiters.0[index as usize % arbiters.0.len()].spawn(async {
            done.send(asking.await).expect("the driver waits");
        });
        async { sum.await.expect("it does not panic") }
    })
    .await
}

//! Crowds of threads, workers, members and clients, by hand on tokio.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use tokio::sync::broadcast;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{Question, echo, question, ring_tokens, teller};
use crate::crowds::{self, Share, check_round, many_workers, per_member, picks, skewed};
use crate::executors::Executor;
use crate::executors::tokio::Tokio;
use crate::figures::{Figure, check};
use crate::sizes::{MEMBER_ROUNDS, MEMBERS, SKEWED};

/// Adds each number to its share.
async fn counter(mut inbox: UnboundedReceiver<u64>, mut share: Share) {
    while let Some(n) = inbox.recv().await {
        share.add(n);
    }
}

fn spawn(share: Share) -> UnboundedSender<u64> {
    let (address, inbox) = unbounded_channel();
    tokio::spawn(counter(inbox, share));
    address
}

/// Runs the cases with bursts.
pub fn bursts(actors: usize) -> Vec<Figure> {
    let runtime = Tokio::start();
    crowds::bursts(
        actors,
        |shares| runtime.inside(async { shares.into_iter().map(spawn).collect() }),
        |to: &UnboundedSender<u64>, n| to.send(n).expect("the actor lives"),
    )
}

/// Runs the case `workers_64`.
pub fn workers() -> Vec<Figure> {
    many_workers(|workers| Tokio::of(workers).inside(ring_tokens()))
}

fn echoes(count: usize) -> Arc<[UnboundedSender<Question>]> {
    let spawn = |_| {
        let (address, inbox) = unbounded_channel();
        tokio::spawn(echo(inbox));
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

async fn member(mut topic: broadcast::Receiver<u64>, mut share: Share) {
    while let Ok(n) = topic.recv().await {
        share.add(n);
    }
}

/// Runs the case `topic`.
pub async fn topic() -> Vec<Figure> {
    let (topic, _) = broadcast::channel(TOPIC_ROOM);
    let (shares, mut sums) = Share::of_each(MEMBERS as usize, 1);
    for share in shares {
        tokio::spawn(member(topic.subscribe(), share));
    }
    let begin = Instant::now();
    for n in 0..MEMBER_ROUNDS {
        let sent = topic.send(n).expect("there are members") as u64;
        check("members", sent, MEMBERS);
        check("sum", sums.recv().await.expect("all are told"), n * MEMBERS);
    }
    per_member(begin)
}

/// The room in the channel: a message is received before the next one is sent.
const TOPIC_ROOM: usize = 16;

/// Runs the case `gather`.
pub async fn gather() -> Vec<Figure> {
    let (share, mut sums) = Share::of(MEMBERS);
    let collector = spawn(share);
    let tellers = (0..MEMBERS).map(|_| {
        let (address, inbox) = unbounded_channel();
        tokio::spawn(teller(inbox, 1, collector.clone()));
        address
    });
    let tellers: Vec<_> = tellers.collect();
    let begin = Instant::now();
    for _ in 0..MEMBER_ROUNDS {
        for (teller, n) in tellers.iter().zip(0..) {
            teller.send(n).expect("the actor lives");
        }
        check_round(sums.recv().await.expect("all are told"));
    }
    per_member(begin)
}

async fn client(actors: Arc<[UnboundedSender<Question>]>, client: u64) -> u64 {
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

//! A pool of actors: greenroom's spool.

use std::sync::Arc;
use std::time::Duration;

use greenroom::spool::Spool;
use greenroom::{Address, Context, Reply, spawn};
use tokio::sync::Semaphore;

use crate::executors::Executor;
use crate::executors::greenroom::Greenroom;
use crate::figures::{self, Figure};
use crate::pools::{Pool, bursts, clients, job};
use crate::sizes::{POOL_ROOM, POOL_WORK, POOLED};

type Job = (u64, Reply<u64>);

async fn worker(mut cx: Context<Job>, work: Duration) {
    while let Some((n, reply)) = cx.recv().await {
        reply.send(job(n, work));
    }
}

/// Answers when it may.
async fn patient(mut cx: Context<Job>, permits: Arc<Semaphore>) {
    while let Some((n, reply)) = cx.recv().await {
        permits.acquire().await.expect("it is open").forget();
        reply.send(n);
    }
}

fn spool(work: Duration) -> Spool<u64, u64> {
    let spool = Spool::builder(move |_| spawn!(worker(_, work))).workers(POOLED);
    spool.spawn().expect("a runtime is current")
}

async fn work(what: &'static str, work: Duration) -> Figure {
    clients::<Greenroom>(what, spool(work)).await
}

impl Pool for Spool<u64, u64> {
    async fn ask(&self, n: u64) -> Option<u64> {
        Spool::ask(self, n).await.ok()
    }
}

/// Actors without a pool.
#[derive(Clone)]
struct Bare(Vec<Address<Job>>);

impl Pool for Bare {
    async fn ask(&self, n: u64) -> Option<u64> {
        let worker = &self.0[n as usize % POOLED];
        worker.ask(|reply| (n, reply)).await.ok()
    }
}

/// Has the same clients ask the same number of actors, each in turn.
async fn bare() -> Figure {
    let workers = (0..POOLED).map(|_| spawn!(worker(_, Duration::ZERO)).address());
    clients::<Greenroom>(figures::JOB, Bare(workers.collect())).await
}

/// Runs the case `pool`.
pub async fn pool() -> Vec<Figure> {
    let (empty, bare) = (work(figures::JOB, Duration::ZERO).await, bare().await);
    let beside = Figure {
        what: figures::BESIDE_ASKS,
        value: bare.value / empty.value,
    };
    vec![empty, work(figures::JOB_OF_1, POOL_WORK).await, beside]
}

/// Runs the case `pool_refusing`.
pub async fn refusing() -> Vec<Figure> {
    let permits = Arc::new(Semaphore::new(0));
    let workers = permits.clone();
    let spool = Spool::builder(move |_| spawn!(patient(_, workers.clone())))
        .workers(POOLED)
        .capacity(POOL_ROOM)
        .spawn()
        .expect("a runtime is current");
    bursts(&permits, spool).await
}

/// Runs the case `pool_paced`.
pub fn paced() -> Vec<Figure> {
    let runtime = Greenroom::start();
    let spool = runtime.inside(async { spool(POOL_WORK) });
    figures::inject(|answered| {
        let spool = spool.clone();
        let ask = async move {
            spool.ask(0).await.expect("it answers");
            answered();
        };
        runtime.0.spawn(ask).detach();
    })
}

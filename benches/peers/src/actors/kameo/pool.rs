//! A pool of actors, on kameo: `ActorPool` of kameo_actors. It refuses nothing.

use std::convert::Infallible;
use std::time::Duration;

use kameo::actor::{Actor, ActorRef};
use kameo::message::{Context, Message};
use kameo_actors::pool::{ActorPool, Dispatch};

use super::{Question, spawn};
use crate::executors::Executor;
use crate::executors::tokio::Tokio;
use crate::figures::{self, Figure};
use crate::pools::{Pool, clients, job};
use crate::sizes::{POOL_WORK, POOLED};

struct Worker {
    work: Duration,
}

plain_actors!(Worker);

impl Message<Question> for Worker {
    type Reply = u64;

    async fn handle(&mut self, Question(n): Question, _: &mut Context<Self, u64>) -> u64 {
        job(n, self.work)
    }
}

fn start(work: Duration) -> ActorRef<ActorPool<Worker>> {
    spawn(ActorPool::new(POOLED, move || spawn(Worker { work })))
}

impl Pool for ActorRef<ActorPool<Worker>> {
    async fn ask(&self, n: u64) -> Option<u64> {
        ActorRef::ask(self, Dispatch(Question(n))).await.ok()
    }
}

async fn work(what: &'static str, work: Duration) -> Figure {
    clients::<Tokio>(what, start(work)).await
}

/// Runs the case `pool`.
pub async fn pool() -> Vec<Figure> {
    vec![
        work(figures::JOB, Duration::ZERO).await,
        work(figures::JOB_OF_1, POOL_WORK).await,
    ]
}

/// Runs the case `pool_paced`.
pub fn paced() -> Vec<Figure> {
    let runtime = Tokio::start();
    let pool = runtime.inside(async { start(POOL_WORK) });
    figures::inject(|answered| {
        let pool = pool.clone();
        runtime.0.spawn(async move {
            let answer = pool.ask(Dispatch(Question(0))).await;
            answer.expect("it answers");
            answered();
        });
    })
}

//! A pool of actors, on ractor: a factory with `QueuerRouting`.

use std::sync::Arc;
use std::time::Duration;

use ractor::factory::queues::DefaultQueue;
use ractor::factory::routing::QueuerRouting;
use ractor::factory::{
    DiscardMode, DiscardSettings, Factory, FactoryArguments, FactoryRef, Job, Worker, WorkerId,
    worker_builder,
};
use ractor::{Actor, ActorProcessingErr, RpcReplyPort};
use tokio::sync::Semaphore;

use crate::executors::Executor;
use crate::executors::tokio::Tokio;
use crate::figures::{self, Figure};
use crate::pools::{Pool, bursts, clients, job};
use crate::sizes::{POOL_ROOM, POOL_WORK, POOLED};

struct Request(u64, RpcReplyPort<u64>);

#[derive(Clone)]
struct Answering {
    work: Duration,
    /// A permit for each answer, if they are limited.
    permits: Option<Arc<Semaphore>>,
}

impl Answering {
    fn of(work: Duration) -> Self {
        Self {
            work,
            permits: None,
        }
    }
}

type Requests = FactoryRef<(), Request>;

impl Worker for Answering {
    type Key = ();
    type Message = Request;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: WorkerId, _: &Requests, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: WorkerId,
        _: &Requests,
        Job { msg, .. }: Job<(), Request>,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        let Request(n, reply) = msg;
        if let Some(permits) = &self.permits {
            permits.acquire().await?.forget();
        }
        reply.send(job(n, self.work))?;
        Ok(())
    }
}

async fn start(worker: Answering, discard: DiscardSettings) -> Requests {
    let factory = Factory::<
        (),
        Request,
        (),
        Answering,
        QueuerRouting<(), Request>,
        DefaultQueue<(), Request>,
    >::default();
    let arguments = FactoryArguments::builder()
        .worker_builder(Box::new(worker_builder(move |_| (worker.clone(), ()))))
        .queue(Default::default())
        .router(Default::default())
        .num_initial_workers(POOLED)
        .discard_settings(discard)
        .build();
    let started = Actor::spawn(None, factory, arguments).await;
    started.expect("the factory starts").0
}

impl Pool for Requests {
    async fn ask(&self, n: u64) -> Option<u64> {
        let called = self.call_job((), |reply| Request(n, reply), None).await;
        called.expect("the factory runs").success_or(()).ok()
    }
}

async fn work(what: &'static str, work: Duration) -> Figure {
    let pool = start(Answering::of(work), DiscardSettings::None).await;
    clients::<Tokio>(what, pool).await
}

/// Runs the case `pool`.
pub async fn pool() -> Vec<Figure> {
    vec![
        work(figures::JOB, Duration::ZERO).await,
        work(figures::JOB_OF_1, POOL_WORK).await,
    ]
}

/// Runs the case `pool_refusing`.
pub async fn refusing() -> Vec<Figure> {
    let discard = DiscardSettings::Static {
        limit: POOL_ROOM,
        mode: DiscardMode::Newest,
    };
    let permits = Arc::new(Semaphore::new(0));
    let worker = Answering {
        work: Duration::ZERO,
        permits: Some(permits.clone()),
    };
    let pool = start(worker, discard).await;
    bursts(&permits, pool).await
}

/// Runs the case `pool_paced`.
pub fn paced() -> Vec<Figure> {
    let runtime = Tokio::start();
    let pool =
        runtime.inside(async { start(Answering::of(POOL_WORK), DiscardSettings::None).await });
    figures::inject(|answered| {
        let pool = pool.clone();
        runtime.0.spawn(async move {
            pool.ask(0).await.expect("it answers");
            answered();
        });
    })
}

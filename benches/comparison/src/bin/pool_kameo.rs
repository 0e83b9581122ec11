//! A pool with a cache, in kameo.

use std::collections::HashMap;
use std::ops::ControlFlow;

use comparison::gate::Gate;
use comparison::pool::{Failure, QUEUE, WORKERS, compute, use_ended, use_pool};
use kameo::error::Infallible;
use kameo::prelude::*;
use kameo::reply::ReplySender;
use kameo_actors::pool::{ActorPool, Dispatch};

struct Worker(Gate);

impl Actor for Worker {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(worker: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(worker)
    }

    // Goes on after a panic, since the pool does not replace a worker.
    async fn on_panic(
        &mut self,
        _worker: WeakActorRef<Self>,
        _error: PanicError,
    ) -> Result<ControlFlow<ActorStopReason>, Infallible> {
        Ok(ControlFlow::Continue(()))
    }
}

struct Compute(u64);

impl Message<Compute> for Worker {
    type Reply = u64;

    async fn handle(&mut self, Compute(key): Compute, _cx: &mut Context<Self, u64>) -> u64 {
        compute(key, &self.0).await
    }
}

type Value = Result<u64, Failure>;

#[derive(Actor)]
struct Cache {
    pool: ActorRef<ActorPool<Worker>>,
    values: HashMap<u64, u64>,
    computing: HashMap<u64, Vec<ReplySender<Value>>>,
}

struct Get(u64);

impl Message<Get> for Cache {
    type Reply = DelegatedReply<Value>;

    async fn handle(&mut self, Get(key): Get, cx: &mut Context<Self, Self::Reply>) -> Self::Reply {
        if let Some(value) = self.values.get(&key) {
            return cx.reply(Ok(*value));
        }
        if !self.computing.contains_key(&key) {
            // The pool itself refuses nothing.
            if self.computing.len() == WORKERS + QUEUE {
                return cx.reply(Err(Failure::Busy));
            }
            let pool = self.pool.clone();
            cx.pipe(async move {
                let value = pool.ask(Dispatch(Compute(key))).await;
                Computed(key, value.map_err(|_| Failure::Crashed))
            });
        }
        let (delegated, reply) = cx.reply_sender();
        self.computing.entry(key).or_default().extend(reply);
        delegated
    }
}

struct Computed(u64, Value);

impl Message<Computed> for Cache {
    type Reply = ();

    async fn handle(&mut self, Computed(key, value): Computed, _cx: &mut Context<Self, ()>) {
        for reply in self.computing.remove(&key).into_iter().flatten() {
            reply.send(value);
        }
        self.values.extend(value.map(|value| (key, value)));
    }
}

async fn get(cache: &ActorRef<Cache>, key: u64) -> Value {
    cache.ask(Get(key)).await.map_err(|error| match error {
        SendError::HandlerError(failure) => failure,
        _ => Failure::Ended,
    })
}

#[tokio::main]
async fn main() {
    let gate = Gate::default();
    let workers = gate.clone();
    let pool = ActorPool::new(WORKERS, move || Worker::spawn(Worker(workers.clone())));
    let pool = ActorPool::spawn(pool);
    let cache = Cache::spawn(Cache {
        pool,
        values: HashMap::new(),
        computing: HashMap::new(),
    });
    use_pool(&gate, |key| get(&cache, key)).await;
    cache.stop_gracefully().await.unwrap();
    use_ended(get(&cache, 7)).await;
    cache.wait_for_shutdown().await;
}

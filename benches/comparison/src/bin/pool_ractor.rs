//! A pool with a cache, in ractor.

use std::collections::HashMap;

use comparison::gate::Gate;
use comparison::pool::{Failure, QUEUE, WORKERS, compute, use_ended, use_pool};
use ractor::concurrency::oneshot;
use ractor::factory::queues::DefaultQueue;
use ractor::factory::routing::QueuerRouting;
use ractor::factory::{
    DiscardMode, DiscardSettings, Factory, FactoryArguments, FactoryRef, Job, Worker, WorkerId,
    worker_builder,
};
use ractor::rpc::CallResult;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};

type Value = Result<u64, Failure>;
type Port = RpcReplyPort<u64>;
type Pool = FactoryRef<u64, Port>;

struct Computer(Gate);

impl Worker for Computer {
    type Key = u64;
    type Message = Port;
    type Arguments = ();
    type State = ();

    async fn pre_start(&self, _: WorkerId, _: &Pool, _: ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: WorkerId,
        _: &Pool,
        Job { key, msg, .. }: Job<u64, Port>,
        _: &mut (),
    ) -> Result<u64, ActorProcessingErr> {
        msg.send(compute(key, &self.0).await)?;
        Ok(key)
    }
}

enum Message {
    Get(u64, RpcReplyPort<Value>),
    Computed(u64, Value),
}

struct Cache;

#[derive(Default)]
struct Entries {
    values: HashMap<u64, u64>,
    computing: HashMap<u64, Vec<RpcReplyPort<Value>>>,
}

impl Actor for Cache {
    type Msg = Message;
    type State = (Pool, Entries);
    type Arguments = Pool;

    async fn pre_start(
        &self,
        _myself: ActorRef<Message>,
        pool: Pool,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok((pool, Entries::default()))
    }

    async fn handle(
        &self,
        myself: ActorRef<Message>,
        message: Message,
        (pool, entries): &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Get(key, reply) => {
                if let Some(value) = entries.values.get(&key) {
                    reply.send(Ok(*value))?;
                } else if let Some(replies) = entries.computing.get_mut(&key) {
                    replies.push(reply);
                } else {
                    entries.computing.insert(key, vec![reply]);
                    start(pool, key, myself)?;
                }
            }
            Message::Computed(key, value) => {
                for reply in entries.computing.remove(&key).into_iter().flatten() {
                    let _ = reply.send(value); // the client may have given up
                }
                entries.values.extend(value.map(|value| (key, value)));
            }
        }
        Ok(())
    }
}

/// Sends a job to the pool at once, and its value to the cache later.
fn start(pool: &Pool, key: u64, cache: ActorRef<Message>) -> Result<(), ActorProcessingErr> {
    let (accepted, rejection) = oneshot();
    let (reply, value) = oneshot();
    let job = Job::builder()
        .key(key)
        .msg(reply.into())
        .accepted(accepted.into())
        .build();
    pool.dispatch_job(job)?;
    tokio::spawn(async move {
        let value = match rejection.await {
            Ok(None) => value.await.map_err(|_| Failure::Crashed),
            Ok(Some(_job)) => Err(Failure::Busy),
            Err(_) => Err(Failure::Ended),
        };
        cache.cast(Message::Computed(key, value))
    });
    Ok(())
}

async fn get(cache: &ActorRef<Message>, key: u64) -> Value {
    match cache.call(|reply| Message::Get(key, reply), None).await {
        Ok(CallResult::Success(value)) => value,
        _ => Err(Failure::Ended),
    }
}

#[tokio::main]
async fn main() {
    let gate = Gate::default();
    let workers = gate.clone();
    let arguments = FactoryArguments::builder()
        .worker_builder(Box::new(worker_builder(move |_| {
            (Computer(workers.clone()), ())
        })))
        .num_initial_workers(WORKERS)
        .router(QueuerRouting::default())
        .queue(DefaultQueue::default())
        .discard_settings(DiscardSettings::Static {
            limit: QUEUE,
            mode: DiscardMode::Newest,
        })
        .build();
    let factory = Factory::default();
    let (pool, pool_running) = Actor::spawn(None, factory, arguments).await.unwrap();
    let (cache, running) = Actor::spawn(None, Cache, pool.clone()).await.unwrap();
    use_pool(&gate, |key| get(&cache, key)).await;
    cache.drain().unwrap();
    use_ended(get(&cache, 7)).await;
    running.await.unwrap();
    pool.drain_requests().unwrap();
    pool_running.await.unwrap();
}

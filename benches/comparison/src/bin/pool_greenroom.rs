//! A pool with a cache, in greenroom.

use std::collections::HashMap;

use comparison::gate::Gate;
use comparison::pool::{Failure, QUEUE, WORKERS, compute, use_ended, use_pool};
use greenroom::spool::Spool;
use greenroom::{Address, AskError, Context, Refusal, RefusalKind, Reply, spawn};

async fn worker(mut cx: Context<(u64, Reply<u64>)>, gate: Gate) {
    while let Some((key, reply)) = cx.recv().await {
        reply.send(compute(key, &gate).await);
    }
}

enum Message {
    Get(u64, Reply<u64>),
    Computed(u64, Result<u64, AskError>),
}

enum Entry {
    Computing(Vec<Reply<u64>>),
    Value(u64),
}

async fn cache(mut cx: Context<Message>, pool: Spool<u64, u64>) {
    let mut entries = HashMap::new();
    while let Some(message) = cx.recv().await {
        match message {
            Message::Get(key, reply) => match entries.get_mut(&key) {
                Some(Entry::Value(value)) => reply.send(*value),
                Some(Entry::Computing(replies)) => replies.push(reply),
                None => {
                    entries.insert(key, Entry::Computing(vec![reply]));
                    cx.on_answer(pool.request(key), move |value| {
                        Message::Computed(key, value)
                    });
                }
            },
            Message::Computed(key, value) => {
                let Some(Entry::Computing(replies)) = entries.remove(&key) else {
                    continue;
                };
                for reply in replies {
                    match &value {
                        Ok(value) => reply.send(*value),
                        Err(AskError::Refused(why)) => reply.refuse(why.clone()),
                        Err(error) => {
                            let why = Refusal::of(RefusalKind::Unavailable, error.to_string());
                            reply.refuse(why);
                        }
                    }
                }
                entries.extend(value.map(|value| (key, Entry::Value(value))));
            }
        }
    }
}

async fn get(cache: &Address<Message>, key: u64) -> Result<u64, Failure> {
    cache
        .ask(|reply| Message::Get(key, reply))
        .await
        .map_err(|error| match error {
            AskError::Refused(why) if why.kind() == RefusalKind::Overloaded => Failure::Busy,
            AskError::Closed(_) => Failure::Ended,
            _ => Failure::Crashed,
        })
}

fn main() {
    greenroom::run(async {
        let gate = Gate::default();
        let workers = gate.clone();
        let pool = Spool::builder(move |_| spawn!(worker(_, workers.clone())))
            .workers(WORKERS)
            .capacity(QUEUE)
            .spawn()
            .unwrap();
        let cache = spawn!(cache(_, pool));
        use_pool(&gate, |key| get(&cache, key)).await;
        cache.stop();
        use_ended(get(&cache, 7)).await;
        cache.join().await.unwrap();
    });
}

//! A pool with a cache, on tokio by hand.

use std::collections::HashMap;
use std::sync::Arc;

use comparison::gate::Gate;
use comparison::pool::{Failure, QUEUE, WORKERS, compute, use_ended, use_pool};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{Id, JoinError, JoinSet};

type Value = Result<u64, Failure>;
type Get = (u64, oneshot::Sender<Value>);

struct Cache {
    gate: Gate,
    workers: Arc<Semaphore>,
    tasks: JoinSet<u64>,
    keys: HashMap<Id, u64>,
    values: HashMap<u64, u64>,
    computing: HashMap<u64, Vec<oneshot::Sender<Value>>>,
}

impl Cache {
    fn new(gate: Gate) -> Self {
        Cache {
            gate,
            workers: Arc::new(Semaphore::new(WORKERS)),
            tasks: JoinSet::new(),
            keys: HashMap::new(),
            values: HashMap::new(),
            computing: HashMap::new(),
        }
    }

    async fn run(mut self, mut mailbox: mpsc::Receiver<Get>) {
        loop {
            tokio::select! {
                message = mailbox.recv() => match message {
                    Some((key, reply)) => self.get(key, reply),
                    None => break,
                },
                Some(result) = self.tasks.join_next_with_id() => self.computed(result),
            }
        }
        while let Some(result) = self.tasks.join_next_with_id().await {
            self.computed(result);
        }
    }

    fn get(&mut self, key: u64, reply: oneshot::Sender<Value>) {
        if let Some(value) = self.values.get(&key) {
            let _ = reply.send(Ok(*value));
        } else if let Some(replies) = self.computing.get_mut(&key) {
            replies.push(reply);
        } else if self.computing.len() == WORKERS + QUEUE {
            let _ = reply.send(Err(Failure::Busy));
        } else {
            let (workers, gate) = (self.workers.clone(), self.gate.clone());
            let task = self.tasks.spawn(async move {
                let _worker = workers
                    .acquire()
                    .await
                    .expect("the semaphore is never closed");
                compute(key, &gate).await
            });
            self.keys.insert(task.id(), key);
            self.computing.insert(key, vec![reply]);
        }
    }

    fn computed(&mut self, result: Result<(Id, u64), JoinError>) {
        let (id, value) = match result {
            Ok((id, value)) => (id, Ok(value)),
            Err(error) => (error.id(), Err(Failure::Crashed)),
        };
        let key = self.keys.remove(&id).expect("each task has a key");
        for reply in self.computing.remove(&key).into_iter().flatten() {
            let _ = reply.send(value); // the client may have given up
        }
        self.values.extend(value.map(|value| (key, value)));
    }
}

async fn get(cache: mpsc::Sender<Get>, key: u64) -> Value {
    let (reply, value) = oneshot::channel();
    cache.send((key, reply)).await.map_err(|_| Failure::Ended)?;
    value.await.unwrap_or(Err(Failure::Ended))
}

#[tokio::main]
async fn main() {
    let gate = Gate::default();
    let (cache, mailbox) = mpsc::channel(64);
    let running = tokio::spawn(Cache::new(gate.clone()).run(mailbox));
    use_pool(&gate, |key| get(cache.clone(), key)).await;
    let late = cache.downgrade();
    drop(cache);
    running.await.unwrap();
    use_ended(async {
        let cache = late.upgrade().ok_or(Failure::Ended)?;
        get(cache, 7).await
    })
    .await;
}

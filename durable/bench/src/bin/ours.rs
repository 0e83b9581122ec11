//! The side of greenroom-durable.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use durable_bench::{CALLERS, PAYLOAD, arguments, print};
use futures::StreamExt;
use futures::channel::mpsc::unbounded;
use futures::future::{join, join_all};
use futures::lock::Mutex;
use greenroom_durable::{Job, JournalState, Serve, Store, Stored};
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize)]
struct Load(String);

impl Stored for Load {
    const KIND: &'static str = "load/1";
}

#[derive(Default, Serialize, Deserialize)]
struct Total(usize);

impl Stored for Total {
    const KIND: &'static str = "total/1";
}

impl JournalState for Total {
    type Event = Load;

    fn apply(&mut self, event: &Load) {
        self.0 += event.0.len();
    }
}

/// Returns a payload of the right size, with the quotes of JSON.
fn load() -> Load {
    Load("x".repeat(PAYLOAD - 2))
}

/// Puts so many jobs, by all callers.
async fn put(store: &Store, count: usize) {
    let queue = store.queue::<Load>("load").open().await.unwrap();
    let callers = (0..CALLERS).map(|_| {
        let queue = queue.clone();
        greenroom::spawn(async move {
            for _ in 0..count / CALLERS {
                queue.put(Job::new(load())).await.unwrap();
            }
        })
    });
    join_all(callers).await;
}

async fn job(store: &Store, count: usize) {
    let queue = store.queue::<Load>("load").open().await.unwrap();
    let workers = queue.serve(Serve::workers(CALLERS), |_| async { Ok::<(), String>(()) });
    let workers = workers.await.unwrap();
    put(store, count).await;
    queue.drain().await.unwrap();
    workers.stop().await;
}

/// Puts so many jobs that wait, each with an id and a key, of three priorities.
async fn fill(store: &Store, count: usize) {
    // As many as a transaction has commands.
    const CALLERS: usize = 256;
    let queue = store.queue::<Load>("load").open().await.unwrap();
    let callers = (0..CALLERS).map(|caller| {
        let queue = queue.clone();
        greenroom::spawn(async move {
            for number in (caller..count).step_by(CALLERS) {
                queue.put(spread(number)).await.unwrap();
            }
        })
    });
    join_all(callers).await;
}

/// Returns the job of this number. Its id is anywhere among the others.
fn spread(number: usize) -> Job<Load> {
    let id = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Job::new(load())
        .id(format!("{id:016x}"))
        .key(format!("key {number}"))
        .priority((number % 3) as u8)
}

/// Puts so many jobs, one after another, beside those that wait. One of them all is done for each.
async fn beside(store: &Store, count: usize) {
    let queue = store.queue::<Load>("load").open().await.unwrap();
    let first = queue.status().await.unwrap();
    let first = (first.waiting + first.done) as usize;
    let (permit, permits) = unbounded::<()>();
    let (done, mut ended) = unbounded();
    let permits = Arc::new(Mutex::new(permits));
    let workers = queue.serve(Serve::workers(1), move |_| {
        let (permits, done) = (permits.clone(), done.clone());
        async move {
            permits.lock().await.next().await;
            // At the end, nobody waits for it.
            let _ = done.unbounded_send(());
            Ok::<(), String>(())
        }
    });
    let workers = workers.await.unwrap();
    for number in first..first + count {
        assert!(queue.put(spread(number)).await.unwrap());
        permit.unbounded_send(()).unwrap();
        ended.next().await.unwrap();
    }
    // The worker has one more in its hands, which ends without a permit.
    join(workers.stop(), async { drop(permit) }).await;
}

async fn append(store: &Store, count: usize) {
    let actors = (0..CALLERS).map(|number| {
        let store = store.clone();
        greenroom::spawn(async move {
            let journal = store.journal::<Total>("totals", &number.to_string());
            let mut journal = journal.snapshot_every(0).open().await.unwrap();
            for _ in 0..count / CALLERS {
                journal.append([load()]).await.unwrap();
            }
        })
    });
    join_all(actors).await;
}

fn main() {
    let (case, count) = arguments();
    let folder = tempfile::tempdir().unwrap();
    // A file that is given stays, and another run may go on with it.
    let given = std::env::args().nth(3).map(PathBuf::from);
    let path = given.unwrap_or_else(|| folder.path().join("ours.db"));
    greenroom::run(async {
        let store = Store::sqlite(path).open().await.unwrap();
        let mut start = Instant::now();
        match &*case {
            "put" => put(&store, count).await,
            "job" => job(&store, count).await,
            "fill" => fill(&store, count).await,
            "beside" => beside(&store, count).await,
            "append" => append(&store, count).await,
            "replay" => {
                let journal = store.journal::<Total>("totals", "all").snapshot_every(0);
                let mut journal = journal.open().await.unwrap();
                for first in (0..count).step_by(1000) {
                    let events = vec![load(); 1000.min(count - first)];
                    journal.append(events).await.unwrap();
                }
                start = Instant::now();
                let again = store
                    .journal::<Total>("totals", "all")
                    .open()
                    .await
                    .unwrap();
                assert_eq!(again.position() as usize, count);
            }
            other => panic!("there is no case {other:?}"),
        }
        print(&case, count, start);
        store.close().await;
    });
}

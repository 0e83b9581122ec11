//! The side of greenroom-durable.

use std::time::Instant;

use durable_bench::{CALLERS, PAYLOAD, arguments, print};
use futures::future::join_all;
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
    greenroom::run(async {
        let store = Store::sqlite(folder.path().join("ours.db"))
            .open()
            .await
            .unwrap();
        let mut start = Instant::now();
        match &*case {
            "put" => put(&store, count).await,
            "job" => job(&store, count).await,
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

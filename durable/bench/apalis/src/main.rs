//! The side of apalis, with its storage in SQLite.
//!
//! It is set up for throughput, as its authors describe: with what its `setup` sets, an update hook
//! that wakes the workers, and jobs that are put by `push_bulk`. Only `synchronous` is `FULL`, which
//! `setup` turns off. There is one connection: with more, each waits for the others' transactions by
//! sleeping, and some time gives up.

#[path = "../../src/lib.rs"]
mod shared;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use apalis::prelude::*;
use apalis_sqlite::{Config, SqliteConnectOptions, SqlitePool, SqlitePoolOptions, SqliteStorage};
use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use futures::channel::oneshot;
use futures::{FutureExt, StreamExt};
use serde::{Deserialize, Serialize};
use shared::{CALLERS, PAYLOAD, arguments, print};
use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteOperation;

/// The workers, which have the callers' number of jobs in hand. Each has its own name, since what the end
/// of a job costs grows with the jobs that its worker has done.
const WORKERS: usize = 8;

/// The jobs that a worker takes at once: larger batches are slower, for the same reason.
const BATCH: usize = 16;

const QUEUE: &str = "load";

#[derive(Clone, Serialize, Deserialize)]
struct Load(String);

/// Returns a payload of the right size, with the quotes of JSON.
fn load() -> Load {
    Load("x".repeat(PAYLOAD - 2))
}

/// Opens a new file, with its tables. Whenever a job is put, something comes out of all
/// receivers.
async fn open(path: &Path) -> (SqlitePool, Vec<UnboundedReceiver<()>>) {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .disable_statement_logging();
    // The settings are of a connection, so `setup` changes one only.
    let first = SqlitePool::connect_with(options.clone()).await.unwrap();
    SqliteStorage::setup(&first).await.unwrap();
    first.close().await;
    let options = options
        .pragma("journal_mode", "WAL")
        .pragma("synchronous", "FULL")
        .pragma("temp_store", "MEMORY")
        .pragma("cache_size", "64000")
        .pragma("journal_size_limit", "67108864");
    let (senders, put): (Vec<_>, Vec<_>) = (0..WORKERS).map(|_| unbounded()).unzip();
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        .after_connect(move |connection, _| {
            let senders = senders.clone();
            Box::pin(async move {
                let mut connection = connection.lock_handle().await?;
                connection.set_update_hook(move |change| {
                    if change.operation == SqliteOperation::Insert && change.table == "Jobs" {
                        // At the end, nobody waits for it.
                        for sender in &senders {
                            let _ = sender.unbounded_send(());
                        }
                    }
                });
                Ok(())
            })
        });
    let pool = pool.connect_with(options).await.unwrap();
    let synchronous = sqlx::query_scalar("PRAGMA synchronous").fetch_one(&pool);
    let synchronous: i64 = synchronous.await.unwrap();
    assert_eq!(synchronous, 2, "FULL");
    (pool, put)
}

fn storage(pool: &SqlitePool) -> SqliteStorage<Load> {
    let config = Config::default()
        .queue(QUEUE)
        .batch_size(BATCH)
        .lock_tasks(false);
    SqliteStorage::new(pool).with_config(config)
}

/// Puts so many jobs.
async fn put(pool: SqlitePool, count: usize) {
    let mut storage = storage(&pool);
    for _ in 0..count / CALLERS {
        if let Err(error) = storage.push_bulk(vec![load(); CALLERS]).await {
            // The worker would wait for ever.
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}

/// Puts jobs, and works on them meanwhile.
async fn job(pool: &SqlitePool, events: Vec<UnboundedReceiver<()>>, count: usize) {
    let left = Arc::new(AtomicUsize::new(count));
    let (ends, ended) = oneshot::channel::<()>();
    let (ends, ended) = (Arc::new(Mutex::new(Some(ends))), ended.map(drop).shared());
    let workers = events.into_iter().enumerate().map(|(number, events)| {
        let (left, ends) = (left.clone(), ends.clone());
        let handler = move |_: Load| {
            if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                drop(ends.lock().unwrap().take());
            }
            async { Ok::<(), BoxDynError>(()) }
        };
        // The hook runs before the commit, so it may wake the worker too early.
        let strategy = Strategy::new()
            .interval(Duration::from_millis(10))
            .stream(events.ready_chunks(BATCH));
        let worker = WorkerBuilder::new(format!("load {number}"))
            .backend(storage(pool).poll_with_strategy(strategy))
            .concurrency(CALLERS / WORKERS)
            .build(handler);
        let end = ended.clone();
        tokio::spawn(worker.run_until(async move {
            end.await;
            Ok::<(), WorkerError>(())
        }))
    });
    let workers: Vec<_> = workers.collect();
    put(pool.clone(), count).await;
    for worker in workers {
        // It ends when its last job is stored as done.
        worker.await.unwrap().unwrap();
    }
}

async fn run() {
    let (case, count) = arguments();
    let count = count / CALLERS * CALLERS;
    let folder = tempfile::tempdir().unwrap();
    let (pool, events) = open(&folder.path().join("apalis.db")).await;
    let start = Instant::now();
    let status = match &*case {
        "put" => {
            put(pool.clone(), count).await;
            "Pending"
        }
        "job" => {
            job(&pool, events, count).await;
            "Done"
        }
        other => panic!("there is no case {other:?}"),
    };
    print(&case, count, start);
    let stored = sqlx::query_scalar("SELECT count(*) FROM Jobs WHERE status = ?1");
    let stored: i64 = stored.bind(status).fetch_one(&pool).await.unwrap();
    assert_eq!(stored, count as i64, "jobs are {status}");
    pool.close().await;
}

fn main() {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().build().unwrap().block_on(run());
}

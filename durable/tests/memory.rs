//! The memory of a process does not depend on how many jobs wait. It is alone in this program, since the
//! memory is that of the process, with what SQLite allocates.
#![cfg(target_os = "linux")]

use futures::future::join_all;
use greenroom_durable::{Job, Queue, Serve, Store, Stored};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Letter(String);

impl Stored for Letter {
    const KIND: &'static str = "letter/1";
}

/// The jobs that wait, of 1 KiB each.
const WAITING: usize = 100_000;

/// What the memory may grow by: a quarter of what waits.
const GROWTH: usize = WAITING / 4;

/// Returns the most memory that this process has had so far, in KiB. The kernel adds it up from counters
/// of each processor, and so it may also be a little less than it was before.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap().trim_end_matches("kB").trim().parse().unwrap()
}

/// Puts so many jobs, by callers of which each waits for its own.
async fn put(queue: &Queue<Letter>, count: usize) {
    const CALLERS: usize = 200;
    let callers = (0..CALLERS).map(|_| async {
        for _ in 0..count / CALLERS {
            let letter = Letter("x".repeat(1022));
            queue.put(Job::new(letter)).await.unwrap();
        }
    });
    join_all(callers).await;
}

/// Does so many jobs by two workers.
async fn work(queue: &Queue<Letter>, count: usize) {
    let before = queue.status().await.unwrap().waiting;
    let (done, mut jobs) = futures::channel::mpsc::unbounded();
    let workers = queue.serve(Serve::workers(2), move |_| {
        // It may have done some more when it is stopped.
        let _ = done.unbounded_send(());
        async { Ok::<(), String>(()) }
    });
    let workers = workers.await.unwrap();
    for _ in 0..count {
        futures::StreamExt::next(&mut jobs).await.unwrap();
    }
    workers.stop().await;
    let after = queue.status().await.unwrap().waiting;
    assert!(before - after >= count as u64, "{after} of {before} wait");
}

#[test]
fn the_memory_of_a_process_does_not_grow_with_the_jobs_that_wait() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("letters.db");
    greenroom::run(async {
        let store = Store::sqlite(&path).open().await.unwrap();
        let queue = store.queue::<Letter>("letters").open().await.unwrap();
        put(&queue, 2000).await;
        work(&queue, 1000).await;
        let before = peak();
        put(&queue, WAITING).await;
        work(&queue, 1000).await;
        store.close().await;
        // Also in a process that begins with them.
        let store = Store::sqlite(&path).open().await.unwrap();
        let queue = store.queue::<Letter>("letters").open().await.unwrap();
        assert!(queue.status().await.unwrap().waiting > WAITING as u64 - 2000);
        work(&queue, 1000).await;
        let after = peak();
        assert!(
            after < before + GROWTH,
            "from {before} to {after} KiB with {WAITING} KiB waiting"
        );
        store.close().await;
    });
}

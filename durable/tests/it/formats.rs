//! Files of version 0.1.0, which each later one has to read.
//!
//! `formats/store-2.sql` is what `write_a_store` has written, as `sqlite3 FILE .dump` prints it, behind the two
//! pragmas that mark it. A file that was published is never changed: a new format gets a new one beside it.

use std::time::Duration;

use futures::future::pending;
use greenroom::time::RetryIntervals;
use greenroom_durable::{
    CheckReport, FinalOutcome, Job, Journal, Queue, Serve, Store, StoreOpenError,
};
use rusqlite::Connection;

use crate::support::{Log, Note, Numbers, Refused, ms, secs};

const STORE: &str = include_str!("formats/store-2.sql");

/// For longer than anybody reads these files.
const ALWAYS: Duration = Duration::from_secs(500 * 365 * 24 * 3600);

/// Opens a store with what a fixture has, after a check.
async fn open(folder: &tempfile::TempDir) -> Result<(Store, CheckReport), StoreOpenError> {
    let file = folder.path().join("old.db");
    let connection = Connection::open(&file).unwrap();
    connection.execute_batch(STORE).unwrap();
    drop(connection);
    let report = Store::check(&file).await?;
    Ok((Store::sqlite(&file).open().await?, report))
}

async fn queue(store: &Store) -> Queue<Note> {
    let queue = store.queue("notes").window(ALWAYS);
    queue.open().await.unwrap()
}

async fn journal(store: &Store) -> Journal<Numbers> {
    let journal = store.journal::<Numbers>("numbers", "alice");
    journal.snapshot_every(4).open().await.unwrap()
}

#[test]
#[ignore = "writes a fixture into the folder GREENROOM_FIXTURE"]
fn write_a_store() {
    let folder = std::env::var("GREENROOM_FIXTURE").unwrap();
    let file = std::path::Path::new(&folder).join("store.db");
    greenroom::run(async {
        let store = Store::sqlite(&file).open().await.unwrap();
        let queue = queue(&store).await;
        let retries = RetryIntervals::steps([ms(1)]).unwrap();
        let serve = Serve::workers(1).retries(retries).lease(secs(60));
        let workers = queue.serve(serve, |job| async move {
            match job.0 {
                0 => Ok(()),
                1 => Err(Refused),
                _ => {
                    job.progress(&"half").await.unwrap();
                    pending().await
                }
            }
        });
        let workers = workers.await.unwrap();
        for (number, id) in [(0, "done"), (1, "dead")] {
            queue.put(Job::new(Note(number)).id(id)).await.unwrap();
            queue.outcome(id).await.unwrap();
        }
        queue.put(Job::new(Note(2)).id("running")).await.unwrap();
        while queue.status().await.unwrap().running == 0 {}
        queue.put(Job::new(Note(3)).key("k")).await.unwrap();
        queue.put(Job::new(Note(4)).key("k")).await.unwrap();
        let first = Job::new(Note(5)).priority(2).after(ms(10));
        queue.put(first).await.unwrap();
        let mut journal = journal(&store).await;
        for number in 0..6 {
            journal.append([Note(number)]).await.unwrap();
        }
        let lease = store.lease("leader").hold().await.unwrap();
        let connection = Connection::open(&file).unwrap();
        let copy = format!("VACUUM INTO '{folder}/store-2.db'");
        connection.execute(&copy, []).unwrap();
        drop((lease, workers));
        store.close().await;
    });
}

#[test]
fn a_store_of_version_0_1_0_is_whole_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    greenroom::run(async {
        let (store, report) = open(&folder).await.unwrap();
        assert!(report.damages.is_empty(), "{:?}", report.damages);
        assert_eq!((report.jobs, report.events), (5, 6));

        let queue = queue(&store).await;
        assert!(!queue.put(Job::new(Note(9)).id("done")).await.unwrap());
        assert_eq!(queue.outcome("done").await.unwrap(), FinalOutcome::Done);
        let dead = store.dead_jobs("notes", 0, 10).await.unwrap();
        assert_eq!(
            (dead[0].id.as_deref(), &*dead[0].reason),
            (Some("dead"), "refused")
        );
        assert_eq!(dead[0].decode::<Note>().unwrap(), Note(1));

        let (log, token) = (Log::new(), Log::new());
        let (own, tokens) = (log.clone(), token.clone());
        let workers = queue.serve(Serve::workers(1), move |job| {
            let half: Option<String> = job.last_progress().unwrap();
            own.add((job.0, job.attempt(), half.is_some()));
            tokens.add(job.token());
            async { Ok::<(), Refused>(()) }
        });
        let workers = workers.await.unwrap();
        queue.drain().await.unwrap();
        workers.stop().await;
        let mut done = log.all();
        assert_eq!(done.remove(0), (5, 1, false), "of the highest priority");
        done.sort_unstable();
        assert_eq!(done, [(2, 2, true), (3, 1, false), (4, 1, false)]);

        let mut journal = journal(&store).await;
        assert_eq!(journal.state().0, [0, 1, 2, 3, 4, 5]);
        journal.append([Note(6)]).await.unwrap();
        let lease = store.lease("leader").hold().await.unwrap();
        assert!(token.all().iter().all(|token| *token < lease.token()));
        drop(lease);
        store.close().await;
        let report = Store::check(folder.path().join("old.db")).await.unwrap();
        assert!(report.damages.is_empty(), "{:?}", report.damages);
    });
}

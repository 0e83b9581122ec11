//! Callers that wait at the same time share a sync.

use std::pin::pin;

use futures::future::join_all;
use futures_lite::future::poll_once;
use rusqlite::Connection;

use super::recorder::{Deed, Part, Recorder};
use super::{open_recorded, text, texts, with_file};

/// Returns how often the WAL was synced.
fn syncs(recorder: &Recorder) -> usize {
    let deeds = recorder.deeds();
    let is_sync = |deed: &&Deed| matches!(deed, Deed::Sync(Part::Wal));
    deeds.iter().filter(is_sync).count()
}

#[test]
fn callers_that_put_at_the_same_time_share_a_sync() {
    let recorder = Recorder::register("shared syncs");
    with_file(|path| async move {
        let store = open_recorded(&path, recorder).await;
        let queue = texts(&store).await;
        let start = syncs(recorder);
        for number in 0..4 {
            queue.put(text(&number.to_string())).await.unwrap();
        }
        assert_eq!(syncs(recorder) - start, 4, "one after another");

        // No transaction ends before all are asked for: the first one may have some of them, and the
        // second one has the others.
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let start = syncs(recorder);
        let ids: Vec<_> = (100..164).map(|number| number.to_string()).collect();
        let mut puts = pin!(join_all(ids.iter().map(|id| queue.put(text(id)))));
        assert!(poll_once(&mut puts).await.is_none());
        other.execute_batch("ROLLBACK").unwrap();
        for put in puts.await {
            assert!(put.unwrap());
        }
        assert!((1..=2).contains(&(syncs(recorder) - start)));
        assert_eq!(queue.status().await.unwrap().waiting, 68);
    });
}

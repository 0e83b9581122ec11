//! What a store notices of the changes of another one.

use std::pin::pin;

use futures_lite::future::poll_once;
use greenroom::time::timeout;
use rusqlite::Connection;

use super::super::doorbell::{Doorbell, Notice};
use super::{Duration, open, text, texts, with_file};
use crate::FinalOutcome;

#[test]
fn what_is_acknowledged_was_announced_before() {
    with_file(|path| async move {
        let store = open(&path).await.unwrap();
        let queue = texts(&store).await;
        let other = Doorbell::new(&path).unwrap();
        other.watch().unwrap();
        for number in 0..20 {
            queue.put(text(&number.to_string())).await.unwrap();
            assert_eq!(other.notice(), Notice::Committed);
        }
    });
}

#[test]
fn a_change_that_is_not_announced_is_noticed_as_it_is_written() {
    with_file(|path| async move {
        let store = open(&path).await.unwrap();
        let queue = texts(&store).await;
        let other = Connection::open(&path).unwrap();
        for id in ["a", "b", "c"] {
            queue.put(text(id)).await.unwrap();
            let mut outcome = pin!(queue.outcome(id));
            assert!(poll_once(&mut outcome).await.is_none());
            let sql = "UPDATE job SET state = 4, until = 1 << 62 WHERE id = ?1";
            let mut noticed = None;
            // What is written before the store sleeps, and committed afterwards, is noticed with the next one.
            for _ in 0..60 {
                other.execute(sql, [id]).unwrap();
                noticed = timeout(Duration::from_secs(1), &mut outcome).await.ok();
                if noticed.is_some() {
                    break;
                }
            }
            assert_eq!(noticed.unwrap().unwrap(), FinalOutcome::Done);
        }
    });
}

//! Pages of a file that have something else than what was written.

use std::fs;

use rusqlite::Connection;

use super::{Page, Text, open, text, texts, with_file};
use crate::error::{StoreOpenProblem, StoreProblem};
use crate::{Job, Serve, Store};

/// The bytes of a page.
const PAGE: usize = 4096;

#[test]
fn each_page_that_is_overwritten_is_reported_and_no_journal_is_half_read() {
    with_file(|path| async move {
        let store = open(&path).await.unwrap();
        let queue = texts(&store).await;
        for number in 0..20 {
            queue
                .put(Job::new(Text("a".repeat(number * 40))))
                .await
                .unwrap();
        }
        // It has pages of its own.
        queue
            .put(Job::new(Text("b".repeat(3 * PAGE))))
            .await
            .unwrap();
        let mut page = store.journal::<Page>("pages", "a").open().await.unwrap();
        let events = (0..200).map(|number| Text(number.to_string().repeat(20)));
        page.append(events).await.unwrap();
        let expected = page.state().0.clone();
        drop(page);
        store.close().await;
        assert_eq!(Store::check(&path).await.unwrap().damages, [""; 0]);

        let whole = fs::read(&path).unwrap();
        let pages = whole.len() / PAGE;
        assert!(pages > 10, "{pages}");
        for number in 0..pages {
            let damaged = path.with_file_name(format!("{number}.db"));
            let mut bytes = whole.clone();
            bytes[number * PAGE..][..PAGE].fill(b'?');
            fs::write(&damaged, bytes).unwrap();
            let is_corrupt = |problem: &StoreOpenProblem| {
                matches!(problem, StoreOpenProblem::Store(StoreProblem::Corrupt(_)))
            };
            match Store::check(&damaged).await {
                Ok(report) => assert_ne!(report.damages, [""; 0], "page {number}"),
                Err(error) => assert!(is_corrupt(&error.why), "page {number}: {error}"),
            }
            let store = match open(&damaged).await {
                Ok(store) => store,
                Err(problem) => {
                    assert!(is_corrupt(&problem), "page {number}: {problem:?}");
                    continue;
                }
            };
            match store.journal::<Page>("pages", "a").open().await {
                Ok(page) => assert_eq!(page.state().0, expected, "page {number}"),
                Err(error) => {
                    let is_corrupt = matches!(error.why, StoreProblem::Corrupt(_));
                    assert!(is_corrupt, "page {number}: {error}");
                }
            }
            store.close().await;
        }
    });
}

#[test]
fn a_job_of_which_something_cannot_be_read_is_dead_and_the_others_go_on() {
    let damages = [
        "UPDATE job SET id = CAST(x'ff' AS TEXT) WHERE id = 'bad'",
        "UPDATE job SET key = CAST(x'ff' AS TEXT) WHERE id = 'bad'",
        "UPDATE job SET kind = 99 WHERE id = 'bad'",
        "UPDATE job SET payload = 7 WHERE id = 'bad'",
    ];
    for damage in damages {
        with_file(|path| async move {
            let store = open(&path).await.unwrap();
            let queue = texts(&store).await;
            queue.put(text("bad").key("a")).await.unwrap();
            queue.put(text("good")).await.unwrap();
            let other = Connection::open(&path).unwrap();
            other.execute(damage, []).unwrap();
            let damages = Store::check(&path).await.unwrap().damages;
            assert_eq!(damages, ["job 1 is not whole"], "{damage}");

            let workers = queue.serve(Serve::workers(1), |_| async { Ok::<(), String>(()) });
            let workers = workers.await.unwrap();
            queue.drain().await.unwrap();
            let dead = store.dead_jobs("texts", 0, 10).await.unwrap();
            assert_eq!(dead[0].reason, "its row is damaged: the sum differs");
            assert_eq!(queue.status().await.unwrap().done, 1);
            store.discard("texts", 1).await.unwrap();
            workers.stop().await;
        });
    }
}

//! Pages of a file that have something else than what was written.

use std::fs;

use super::{Page, Text, open, texts, with_file};
use crate::error::{StoreOpenProblem, StoreProblem};
use crate::{Job, Store};

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

//! Files that are opened: by several at once, by a link, and over what others have left.

use futures::future::join_all;

use rusqlite::Connection;

use super::{Duration, StoreOpenProblem, open, schema, text, texts, with_file};
use crate::Store;

#[test]
fn several_that_create_a_file_at_once_have_one_store() {
    for _ in 0..10 {
        with_file(|path| async move {
            // Each waits for the others, also if the disk stands still.
            let open = |_| {
                let store = Store::sqlite(&path).busy_limit(Duration::from_secs(60));
                store.open()
            };
            let stores = join_all((0..8).map(open)).await;
            for store in &stores {
                let queue = texts(store.as_ref().unwrap()).await;
                queue.put(text("a")).await.unwrap();
            }
            let first = stores[0].as_ref().unwrap();
            assert_eq!(texts(first).await.status().await.unwrap().waiting, 1);
        });
    }
}

#[test]
fn an_open_waits_for_another_process_that_creates_the_tables() {
    with_file(|path| async move {
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let limit = Duration::from_secs(60);
        let opening = greenroom::spawn(Store::sqlite(&path).busy_limit(limit).open());
        // Long enough for an open that does not wait.
        greenroom::time::sleep(Duration::from_millis(100)).await;
        other.execute_batch("ROLLBACK").unwrap();
        opening.await.unwrap();
    });
}

#[test]
fn a_file_is_created_beside_what_a_process_of_the_same_number_has_left() {
    with_file(|path| async move {
        // A process that was killed, or that is in another container.
        let left = |number| format!("{}.new-{}-{number}", path.display(), std::process::id());
        for number in 0..500 {
            std::fs::write(left(number), "").unwrap();
        }
        open(&path).await.unwrap();
    });
}

#[test]
fn a_limit_of_any_length_is_taken() {
    with_file(|path| async move {
        let store = Store::sqlite(path).busy_limit(Duration::MAX).open().await;
        assert!(texts(&store.unwrap()).await.put(text("a")).await.unwrap());
    });
}

#[cfg(unix)]
#[test]
fn a_link_to_a_file_opens_the_same_store() {
    with_file(|path| async move {
        let link = path.with_file_name("link.db");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let store = open(&path).await.unwrap();
        texts(&store).await.put(text("a")).await.unwrap();
        let linked = open(&link).await.unwrap();
        assert!(!texts(&linked).await.put(text("a")).await.unwrap());
        assert_eq!(Store::check(&link).await.unwrap().jobs, 1);
    });
}

#[test]
fn an_empty_file_and_an_older_one_are_not_checked_but_named() {
    for version in [0, 1] {
        with_file(|path| async move {
            let connection = Connection::open(&path).unwrap();
            connection.execute_batch("BEGIN IMMEDIATE; COMMIT").unwrap();
            if version > 0 {
                schema::create_older(&connection, version);
            }
            let found = version as i64;
            let problem = Store::check(&path).await.unwrap_err().why;
            let known = schema::KNOWN;
            assert_eq!(problem, StoreOpenProblem::Older { found, known });
            open(&path).await.unwrap();
            assert_eq!(Store::check(&path).await.unwrap().damages, [""; 0]);
        });
    }
}

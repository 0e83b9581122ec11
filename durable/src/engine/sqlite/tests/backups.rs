//! Backups that are made and restored beside a store.

use greenroom::spawn;
use rusqlite::Connection;

use super::{Page, Text, open, text, texts, with_file};
use crate::{FinalOutcome, Serve, Store};

#[test]
fn a_backup_that_is_made_beside_an_open_store_is_whole_and_what_was_done_since_is_done_again() {
    with_file(|path| async move {
        let store = open(&path).await.unwrap();
        let queue = texts(&store).await;
        for id in ["a", "b"] {
            queue.put(text(id)).await.unwrap();
        }
        let mut page = store.journal::<Page>("pages", "a").open().await.unwrap();
        page.append([Text("before".into())]).await.unwrap();
        // The store goes on meanwhile.
        let own = queue.clone();
        let puts = spawn(async move {
            for number in 0..20 {
                own.put(text(&number.to_string())).await.unwrap();
            }
        });
        let backup = path.with_file_name("backup.db");
        let other = Connection::open(&path).unwrap();
        let name = backup.to_str().unwrap();
        other.execute("VACUUM INTO ?1", [name]).unwrap();
        drop(other);
        puts.await;
        page.append([Text(" and after".into())]).await.unwrap();
        let done = |_| async { Ok::<(), String>(()) };
        let workers = queue.serve(Serve::workers(1), done).await.unwrap();
        assert_eq!(queue.outcome("a").await.unwrap(), FinalOutcome::Done);
        workers.stop().await;
        store.close().await;

        assert_eq!(Store::check(&backup).await.unwrap().damages, [""; 0]);
        let store = open(&backup).await.unwrap();
        let page = store.journal::<Page>("pages", "a").open().await.unwrap();
        assert_eq!(page.state().0, "before");
        let queue = texts(&store).await;
        let workers = queue.serve(Serve::workers(1), done).await.unwrap();
        for id in ["a", "b"] {
            assert_eq!(queue.outcome(id).await.unwrap(), FinalOutcome::Done);
        }
        workers.stop().await;
    });
}

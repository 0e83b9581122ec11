//! sqlx in actors, on a database file.

use std::path::{Path, PathBuf};

use greenroom::supervise::Supervisor;
use greenroom::{Context, Reply, actor, spawn};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};

use crate::support::{bound, with_both, within};

enum Store {
    Add(i64, Reply<Result<(), String>>),
    Sum(Reply<i64>),
    /// Panics.
    Crash,
}

async fn open(path: &Path) -> SqlitePool {
    let options = SqliteConnectOptions::new();
    let options = options.filename(path).create_if_missing(true);
    let pool = SqlitePool::connect_with(options).await.unwrap();
    let create = "CREATE TABLE IF NOT EXISTS numbers (number INTEGER NOT NULL CHECK (number > 0))";
    sqlx::query(create).execute(&pool).await.unwrap();
    pool
}

async fn store(mut cx: Context<Store>, path: PathBuf) {
    let pool = open(&path).await;
    while let Some(message) = cx.recv().await {
        match message {
            Store::Add(number, reply) => {
                let insert = sqlx::query("INSERT INTO numbers VALUES (?)").bind(number);
                let inserted = insert.execute(&pool).await;
                reply.send(inserted.map(drop).map_err(|error| error.to_string()));
            }
            Store::Sum(reply) => {
                let sum = sqlx::query_scalar("SELECT coalesce(sum(number), 0) FROM numbers");
                reply.send(sum.fetch_one(&pool).await.unwrap());
            }
            Store::Crash => panic!("bomb in a turn"),
        }
    }
    pool.close().await;
}

#[test]
fn sqlx_works_in_actors_in_every_place() {
    with_both(|both| {
        let folder = tempfile::tempdir().unwrap();
        let path = || folder.path().join("numbers.db");
        let pinned = both.runtime.spawn_pinned("store").unwrap();
        let mut expected = 0;
        for place in 0..3 {
            // Each actor opens the file that the one before has left.
            let store = match place {
                0 => spawn!(store(_, path()), on = &both.runtime),
                1 => spawn!(store(_, path()), on = &pinned),
                _ => spawn!(store(_, path()), on = both.tokio.handle()),
            };
            both.runtime.block_on(async {
                for number in 1..=10 {
                    let added = store.ask(|reply| Store::Add(number, reply)).await;
                    assert_eq!(added, Ok(Ok(())));
                    expected += number;
                }
                let refused = store.ask(|reply| Store::Add(-1, reply)).await.unwrap();
                assert!(refused.unwrap_err().contains("CHECK"));
                assert_eq!(store.ask(Store::Sum).await, Ok(expected));
                store.stop();
                store.join().await.unwrap();
            });
        }
    });
}

#[test]
fn many_tasks_share_one_pool() {
    with_both(|both| {
        let folder = tempfile::tempdir().unwrap();
        let pool = both.runtime.block_on(async {
            let _entered = both.tokio.enter();
            open(&folder.path().join("numbers.db")).await
        });
        let tasks: Vec<_> = (1..=20_i64)
            .map(|number| {
                let pool = pool.clone();
                both.runtime.spawn(async move {
                    let insert = sqlx::query("INSERT INTO numbers VALUES (?)").bind(number);
                    insert.execute(&pool).await.unwrap();
                })
            })
            .collect();
        let sum: i64 = both.runtime.block_on(async {
            let _entered = both.tokio.enter();
            for task in tasks {
                task.await;
            }
            let sum = sqlx::query_scalar("SELECT sum(number) FROM numbers");
            let sum = sum.fetch_one(&pool).await.unwrap();
            pool.close().await;
            sum
        });
        assert_eq!(sum, 210);
    });
}

#[test]
fn a_supervised_actor_on_a_bound_tokio_opens_its_pool_again() {
    within(|| {
        let (tokio, _runtime) = bound();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers.db");
        tokio.block_on(async {
            let tree = Supervisor::builder().spawn().unwrap();
            let store = tree.start(actor(move |cx| store(cx, path.clone())));
            let store = store.unwrap();
            for number in 1..=3 {
                let added = store.ask(|reply| Store::Add(number, reply)).await;
                assert_eq!(added, Ok(Ok(())));
            }
            store.tell(Store::Crash).unwrap();
            assert_eq!(store.ask(Store::Sum).await, Ok(6));
            tree.stop();
            tree.join().await.unwrap();
        });
    });
}

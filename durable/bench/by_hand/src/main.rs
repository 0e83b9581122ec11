//! The side of a loop that is written by hand.

#[path = "../../src/lib.rs"]
mod shared;

use std::time::Instant;

use rusqlite::{Connection, params};
use shared::{CALLERS, PAYLOAD, arguments, print};

/// The smallest table that a queue needs: a job is found by its due time.
const JOBS: &str = "CREATE TABLE job(seq INTEGER PRIMARY KEY, due INTEGER, payload BLOB);
                    CREATE INDEX job_due ON job(due)";

const EVENTS: &str = "CREATE TABLE event(stream INTEGER, position INTEGER, payload BLOB,
                        PRIMARY KEY(stream, position)) WITHOUT ROWID";

fn main() {
    let (case, count) = arguments();
    let folder = tempfile::tempdir().unwrap();
    let connection = Connection::open(folder.path().join("by_hand.db")).unwrap();
    connection
        .pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))
        .unwrap();
    connection
        .pragma_update(None, "synchronous", "FULL")
        .unwrap();
    let (table, insert) = match &*case {
        "put" => (
            JOBS,
            "INSERT INTO job(due, payload) VALUES (?1 + 0 * ?2, ?3)",
        ),
        "append" => (EVENTS, "INSERT INTO event VALUES (?1, ?2, ?3)"),
        other => panic!("there is no case {other:?}"),
    };
    connection.execute_batch(table).unwrap();
    let payload = vec![b'x'; PAYLOAD];
    let start = Instant::now();
    let mut insert = connection.prepare(insert).unwrap();
    for batch in 0..(count / CALLERS) as i64 {
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        for caller in 0..CALLERS as i64 {
            insert.execute(params![caller, batch, payload]).unwrap();
        }
        connection.execute_batch("COMMIT").unwrap();
    }
    print(&case, count, start);
}

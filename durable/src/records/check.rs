//! A look at all records: whether the pages, the sums, the chains and the counts are right.

use rusqlite::{Connection, Result, Row};

use super::command::RawSnapshot;
use super::db::Db;
use super::jobs::sum_of;
use super::journals::{chain_of, snapshot_sum};

/// The damages that are listed at most.
const LISTED: usize = 100;

/// What a look at a store has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// The jobs that were looked at.
    pub jobs: u64,
    /// The events that were looked at.
    pub events: u64,
    /// What is damaged, at most 100 of it. Nothing if the store is whole.
    pub damages: Vec<String>,
}

impl CheckReport {
    fn note(&mut self, what: String) {
        if self.damages.len() < LISTED {
            self.damages.push(what);
        }
    }
}

/// Looks at everything in one transaction, which others do not change.
pub(crate) fn check(connection: &Connection) -> Result<CheckReport> {
    let (db, mut report) = (Db::new(connection), CheckReport::default());
    db.run("BEGIN", [])?;
    let found = db.rows("PRAGMA integrity_check(100)", [], |row| {
        row.get::<_, String>(0)
    })?;
    report
        .damages
        .extend(found.into_iter().filter(|line| line != "ok"));
    // Rows of damaged pages cannot be read in order.
    if report.damages.is_empty() {
        check_jobs(&db, &mut report)?;
        check_counts(&db, &mut report)?;
        check_keys(&db, &mut report)?;
        check_streams(&db, &mut report)?;
        check_snapshots(&db, &mut report)?;
    }
    db.run("COMMIT", [])?;
    Ok(report)
}

fn check_jobs(db: &Db<'_>, report: &mut CheckReport) -> Result<()> {
    db.each(
        "SELECT seq, queue, kind, id, key, payload, sum FROM job WHERE state <> 4",
        [],
        |row| {
            report.jobs += 1;
            if !is_whole(row).unwrap_or_default() {
                report.note(format!("job {} is not whole", row.get::<_, i64>(0)?));
            }
            Ok(true)
        },
    )
}

/// Returns whether a job is as it was written. An error says that it cannot be read.
fn is_whole(row: &Row<'_>) -> Result<bool> {
    let (id, key): (Option<String>, Option<String>) = (row.get(3)?, row.get(4)?);
    let (id, key) = (id.as_deref(), key.as_deref());
    let payload: Vec<u8> = row.get(5)?;
    let sum = sum_of(row.get(1)?, row.get(2)?, id, key, &payload);
    Ok(sum == row.get::<_, i64>(6)?)
}

fn check_counts(db: &Db<'_>, report: &mut CheckReport) -> Result<()> {
    db.each(
        "SELECT name, waiting, running, dead,
           (SELECT count(*) FROM job WHERE job.queue = queue.queue AND state < 2),
           (SELECT count(*) FROM job WHERE job.queue = queue.queue AND state = 2),
           (SELECT count(*) FROM job WHERE job.queue = queue.queue AND state = 3)
         FROM queue",
        [],
        |row| {
            for (at, what) in [(1, "waiting"), (2, "running"), (3, "dead")] {
                let (noted, there): (i64, i64) = (row.get(at)?, row.get(at + 3)?);
                if noted != there {
                    let name: String = row.get(0)?;
                    report.note(format!(
                        "queue {name:?} has {there} {what} jobs, and not {noted}"
                    ));
                }
            }
            Ok(true)
        },
    )
}

/// Checks that each key with held jobs has one that is ready or runs, and that no key has two.
fn check_keys(db: &Db<'_>, report: &mut CheckReport) -> Result<()> {
    db.each(
        "SELECT queue, key, sum(state IN (0, 2)) AS first FROM job
         WHERE key IS NOT NULL AND state < 3 GROUP BY queue, key HAVING first <> 1",
        [],
        |row| {
            let (key, first): (String, i64) = (row.get(1).unwrap_or_default(), row.get(2)?);
            report.note(format!("{first} jobs of the key {key:?} are first"));
            Ok(true)
        },
    )
}

fn check_streams(db: &Db<'_>, report: &mut CheckReport) -> Result<()> {
    let streams = db.rows("SELECT stream, position, chain FROM stream", [], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    for (stream, position, chain) in streams {
        let (mut at, mut sum): (i64, i64) = (0, 0);
        let stream: i64 = stream;
        db.each(
            "SELECT position, kind, chain, payload FROM event WHERE stream = ?1 ORDER BY position",
            [stream],
            |row| {
                let payload: Vec<u8> = row.get(3)?;
                at += 1;
                report.events += 1;
                sum = chain_of(sum, at, row.get(1)?, &payload);
                if row.get::<_, i64>(0)? == at && row.get::<_, i64>(2)? == sum {
                    return Ok(true);
                }
                report.note(format!("event {at} of stream {stream} is not whole"));
                Ok(false)
            },
        )?;
        let found: (i64, i64) = (at, sum);
        if found != (position, chain) {
            report.note(format!(
                "the events of stream {stream} end at {at}, and not {position}"
            ));
        }
    }
    Ok(())
}

fn check_snapshots(db: &Db<'_>, report: &mut CheckReport) -> Result<()> {
    db.each(
        "SELECT stream, position, chain, (SELECT name FROM kind WHERE kind = snapshot.kind), payload,
           sum
         FROM snapshot",
        [],
        |row| {
            let snapshot = RawSnapshot {
                position: row.get(1)?,
                chain: row.get(2)?,
                kind: row.get(3)?,
                payload: row.get(4)?,
            };
            if snapshot_sum(&snapshot) != row.get::<_, i64>(5)? {
                report.note(format!("the snapshot of stream {} is not whole", row.get::<_, i64>(0)?));
            }
            Ok(true)
        },
    )
}

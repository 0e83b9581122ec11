//! A transaction: what its commands have changed, and what is written at its end.
//!
//! The counts of a queue and the last token are read once and written once, whatever the number of
//! commands, and the number of a kind is read once. Time stands still in a transaction.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Result, params};

use super::db::Db;
use crate::limits::Limits;

/// What a parked command waits for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WakeTopic {
    /// A job of this queue may be taken.
    Ready(i64),
    /// Fewer jobs of this queue wait or run.
    Fewer(i64),
    /// The job of this id has an outcome.
    Ended(i64, String),
    /// The job of this number is to end.
    Cancelled(i64),
    /// The lease of this name is over.
    Lease(String),
}

/// How many jobs of a queue are in which state.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct JobCounts {
    pub(crate) is_paused: bool,
    pub(crate) waiting: i64,
    pub(crate) running: i64,
    pub(crate) dead: i64,
    pub(crate) done: i64,
    /// The minute of the last end, since 1970, the ends in it, and in the one before.
    pub(crate) minute: i64,
    pub(crate) ended: i64,
    pub(crate) before: i64,
}

pub(crate) struct Tx<'a, 'c> {
    pub(crate) db: &'a Db<'c>,
    /// Milliseconds of the store's clock.
    pub(crate) now: i64,
    pub(crate) limits: &'a Limits,
    pub(crate) touched: BTreeSet<WakeTopic>,
    /// The queues whose leases were looked at.
    pub(super) expired: BTreeSet<i64>,
    counts: BTreeMap<i64, (JobCounts, JobCounts)>,
    pub(super) kinds: BTreeMap<String, i64>,
    token: Option<i64>,
}

impl<'a, 'c> Tx<'a, 'c> {
    pub(crate) fn new(db: &'a Db<'c>, now: i64, limits: &'a Limits) -> Self {
        Tx {
            db,
            now,
            limits,
            touched: BTreeSet::new(),
            expired: BTreeSet::new(),
            counts: BTreeMap::new(),
            kinds: BTreeMap::new(),
            token: None,
        }
    }

    pub(crate) fn touch_ready(&mut self, queue: i64) {
        self.touched.insert(WakeTopic::Ready(queue));
    }

    /// Returns the counts of a queue, to be changed.
    pub(super) fn counts(&mut self, queue: i64) -> Result<&mut JobCounts> {
        if !self.counts.contains_key(&queue) {
            let counts = read_counts(self.db, queue)?;
            self.counts.insert(queue, (counts.clone(), counts));
        }
        // It was inserted above, if it was not there.
        let (_, counts) = self.counts.entry(queue).or_default();
        Ok(counts)
    }

    /// Notes that a job of the queue has ended well.
    pub(super) fn count_end(&mut self, queue: i64) -> Result<()> {
        let minute = self.now / 60_000;
        let counts = self.counts(queue)?;
        if counts.minute != minute {
            let is_next = counts.minute + 1 == minute;
            counts.before = if is_next { counts.ended } else { 0 };
            (counts.minute, counts.ended) = (minute, 0);
        }
        counts.ended += 1;
        counts.done += 1;
        Ok(())
    }

    /// Returns a token that is greater than all before.
    pub(super) fn next_token(&mut self) -> Result<i64> {
        let last = match self.token {
            Some(last) => last,
            None => self
                .db
                .row("SELECT token FROM store", [], |row| row.get(0))?
                .unwrap_or_default(),
        };
        self.token = Some(last + 1);
        Ok(last + 1)
    }

    /// Writes what was counted. The transaction is committed next.
    pub(crate) fn finish(&mut self) -> Result<()> {
        for (queue, (before, counts)) in &self.counts {
            if before == counts {
                continue;
            }
            self.db.run(
                "UPDATE queue SET paused = ?2, waiting = ?3, running = ?4, dead = ?5, done = ?6,
                   minute = ?7, ended = ?8, before = ?9
                 WHERE queue = ?1",
                params![
                    queue,
                    counts.is_paused,
                    counts.waiting,
                    counts.running,
                    counts.dead,
                    counts.done,
                    counts.minute,
                    counts.ended,
                    counts.before
                ],
            )?;
            if counts.waiting + counts.running < before.waiting + before.running {
                self.touched.insert(WakeTopic::Fewer(*queue));
            }
        }
        if let Some(token) = self.token {
            let sql = "UPDATE store SET token = ?1, seen = max(seen, ?2)";
            self.db.run(sql, params![token, self.now])?;
        }
        Ok(())
    }
}

/// Reads the counts of a queue. One that does not exist has none.
pub(super) fn read_counts(db: &Db<'_>, queue: i64) -> Result<JobCounts> {
    let counts = db.row(
        "SELECT paused, waiting, running, dead, done, minute, ended, before
         FROM queue WHERE queue = ?1",
        [queue],
        |row| {
            Ok(JobCounts {
                is_paused: row.get(0)?,
                waiting: row.get(1)?,
                running: row.get(2)?,
                dead: row.get(3)?,
                done: row.get(4)?,
                minute: row.get(5)?,
                ended: row.get(6)?,
                before: row.get(7)?,
            })
        },
    )?;
    Ok(counts.unwrap_or_default())
}

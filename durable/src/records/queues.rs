//! Queues as a whole: opened, paused, looked at.

use rusqlite::{Result, params};

use super::command::{CommandStep, RawDead, RawOutcome, RawStatus, StoreAnswer};
use super::schema::{DEAD, ENDED};
use super::tx::{Tx, WakeTopic, read_counts};

/// The late jobs that are counted at most.
const LATE: i64 = 1000;

impl Tx<'_, '_> {
    pub(super) fn find_queue(&self, name: &str) -> Result<Option<i64>> {
        let sql = "SELECT queue FROM queue WHERE name = ?1";
        self.db.row(sql, [name], |row| row.get(0))
    }

    pub(super) fn open_queue(&mut self, name: &str, kind: &str) -> Result<StoreAnswer> {
        let queue = match self.find_queue(name)? {
            Some(queue) => queue,
            None => {
                let count = self
                    .db
                    .row("SELECT count(*) FROM queue", [], |row| row.get(0))?;
                let count: i64 = count.unwrap_or_default();
                if count as u64 >= self.limits.queues {
                    return Ok(StoreAnswer::TooMany("queues", self.limits.queues));
                }
                self.db.run("INSERT INTO queue(name) VALUES (?1)", [name])?;
                self.db.connection.last_insert_rowid()
            }
        };
        let kind = self.kind(kind)?;
        Ok(StoreAnswer::Queue { queue, kind })
    }

    /// Returns the number of a kind, which is known from now on.
    pub(super) fn kind(&mut self, name: &str) -> Result<i64> {
        if let Some(kind) = self.kinds.get(name) {
            return Ok(*kind);
        }
        let sql = "SELECT kind FROM kind WHERE name = ?1";
        let kind = match self.db.row(sql, [name], |row| row.get(0))? {
            Some(kind) => kind,
            None => {
                self.db.run("INSERT INTO kind(name) VALUES (?1)", [name])?;
                self.db.connection.last_insert_rowid()
            }
        };
        self.kinds.insert(name.to_owned(), kind);
        Ok(kind)
    }

    pub(super) fn outcome(&mut self, queue: i64, id: &str) -> Result<CommandStep> {
        let found = self.db.row(
            "SELECT state, cancel, reason FROM job WHERE queue = ?1 AND id = ?2",
            params![queue, id],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        let found: Option<(i64, bool, Option<String>)> = found;
        Ok(CommandStep::Done(match found {
            None => StoreAnswer::Missing,
            Some((ENDED, true, _)) => StoreAnswer::Outcome(RawOutcome::Cancelled),
            Some((ENDED, false, _)) => StoreAnswer::Outcome(RawOutcome::Done),
            Some((DEAD, _, reason)) => {
                StoreAnswer::Outcome(RawOutcome::Dead(reason.unwrap_or_default()))
            }
            Some(_) => {
                return Ok(CommandStep::Wait(
                    WakeTopic::Ended(queue, id.to_owned()),
                    None,
                ));
            }
        }))
    }

    pub(super) fn pause(&mut self, queue: i64, is_paused: bool) -> Result<StoreAnswer> {
        self.counts(queue)?.is_paused = is_paused;
        self.touch_ready(queue);
        Ok(StoreAnswer::Done)
    }

    pub(super) fn drain(&mut self, queue: i64) -> Result<CommandStep> {
        let counts = self.counts(queue)?;
        Ok(match counts.waiting + counts.running {
            0 => CommandStep::Done(StoreAnswer::Done),
            _ => CommandStep::Wait(WakeTopic::Fewer(queue), None),
        })
    }

    pub(super) fn statuses(&mut self, name: Option<&str>) -> Result<StoreAnswer> {
        let queues: Vec<(i64, String)> = self.db.rows(
            "SELECT queue, name FROM queue WHERE ?1 IS NULL OR name = ?1 ORDER BY name",
            [name],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let minute = self.now / 60_000;
        let mut statuses = Vec::new();
        for (queue, name) in queues {
            let counts = read_counts(self.db, queue)?;
            let (late, oldest) = self.lateness(queue)?;
            let before = match minute - counts.minute {
                0 => counts.before,
                1 => counts.ended,
                _ => 0,
            };
            let ended = if counts.minute == minute {
                counts.ended
            } else {
                0
            };
            // The part of the minute before that was in the last 60 seconds.
            let rate = ended + before * (60_000 - self.now % 60_000) / 60_000;
            statuses.push(RawStatus {
                name,
                counts,
                late,
                oldest,
                rate,
            });
        }
        Ok(StoreAnswer::Statuses(statuses))
    }

    /// Returns how many ready jobs are due, at most [`LATE`], and how long ago the first one was.
    fn lateness(&self, queue: i64) -> Result<(i64, Option<i64>)> {
        let (mut below, mut late, mut first) = (i64::MAX, 0, None);
        loop {
            let priority = self.db.row(
                "SELECT priority, due FROM job WHERE queue = ?1 AND state = 0 AND priority < ?2
                 ORDER BY priority DESC, due LIMIT 1",
                params![queue, below],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?;
            let Some((priority, due)) = priority else {
                break;
            };
            below = priority;
            if due > self.now {
                continue;
            }
            first = Some(first.map_or(due, |first: i64| first.min(due)));
            let counted = self.db.row(
                "SELECT count(*) FROM (
                   SELECT 1 FROM job WHERE queue = ?1 AND state = 0 AND priority = ?2 AND due <= ?3
                   LIMIT ?4)",
                params![queue, priority, self.now, LATE - late],
                |row| row.get::<_, i64>(0),
            )?;
            late += counted.unwrap_or_default();
        }
        Ok((late, first.map(|first| self.now - first)))
    }

    pub(super) fn dead_jobs(&self, name: &str, after: i64, most: usize) -> Result<StoreAnswer> {
        let Some(queue) = self.find_queue(name)? else {
            return Ok(StoreAnswer::Missing);
        };
        let found = self.db.rows(
            "SELECT seq, coalesce((SELECT name FROM kind WHERE kind = job.kind), '?'), id, key, attempt,
               coalesce(reason, ''), CAST(payload AS BLOB), due
             FROM job WHERE queue = ?1 AND state = 3 AND seq > ?2 ORDER BY seq LIMIT ?3",
            params![queue, after, most as i64],
            |row| {
                Ok(RawDead {
                    seq: row.get(0)?,
                    kind: row.get(1)?,
                    // A damaged one is none.
                    id: row.get(2).unwrap_or_default(),
                    key: row.get(3).unwrap_or_default(),
                    attempts: row.get(4)?,
                    reason: row.get(5)?,
                    payload: row.get(6)?,
                    age: self.now - row.get::<_, i64>(7)?,
                })
            },
        )?;
        Ok(StoreAnswer::DeadJobs(found))
    }
}

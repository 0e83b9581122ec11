//! Jobs: put, taken, ended.
//!
//! - KEY-1: at most one job of a key is ready or running. The others that wait are held.
//! - KEY-2: the ready one is the first by due time, then by number; one that was taken before keeps
//!   its turn until it has ended, unless it yields.
//! - TOKEN-1: a running job has the token of the one who has taken it last. What comes with another
//!   token changes nothing.

use rusqlite::{Result, Row, params};

use super::command::{CommandStep, JobEnding, NewJob, RawJob, StoreAnswer, TakeJob};
use super::schema::{DEAD, ENDED, HELD, READY, RUNNING, Sum};
use super::tx::{Tx, WakeTopic};

/// The outcomes that are removed at most for each that is added.
const FORGOTTEN: i64 = 2;

/// The jobs that a look gives back at most: the next look goes on.
const EXPIRED: i64 = 64;

/// A job that is in the hands of a worker, or waits.
struct Known {
    seq: i64,
    queue: i64,
    state: i64,
    id: Option<String>,
    key: Option<String>,
    token: Option<i64>,
    cancel: bool,
}

const KNOWN: &str = "SELECT seq, queue, state, id, key, token, cancel FROM job WHERE seq = ?1";

impl Known {
    fn read(row: &Row<'_>) -> Result<Known> {
        Ok(Known {
            seq: row.get(0)?,
            queue: row.get(1)?,
            state: row.get(2)?,
            // A damaged one is none.
            id: row.get(3).unwrap_or_default(),
            key: row.get(4).unwrap_or_default(),
            token: row.get(5)?,
            cancel: row.get(6)?,
        })
    }
}

/// Returns the sum of what never changes in a job.
pub(super) fn sum_of(
    queue: i64,
    kind: i64,
    id: Option<&str>,
    key: Option<&str>,
    payload: &[u8],
) -> i64 {
    // No text and an empty one differ.
    let text =
        |text: Option<&str>| text.map_or(Vec::new(), |text| [b"=", text.as_bytes()].concat());
    Sum::new(queue << 20 | kind)
        .add(&text(id))
        .add(&text(key))
        .add(payload)
        .end()
}

impl Tx<'_, '_> {
    pub(crate) fn put(&mut self, job: &NewJob) -> Result<StoreAnswer> {
        if let Some(id) = &job.id
            && self.finds_id(job.queue, id)?
        {
            return Ok(StoreAnswer::Put { is_new: false });
        }
        let (now, most) = (self.now, self.limits.waiting);
        let counts = self.counts(job.queue)?;
        if counts.waiting as u64 >= most {
            return Ok(StoreAnswer::TooMany("waiting jobs", most));
        }
        counts.waiting += 1;
        let due = now + job.delay;
        let state = match &job.key {
            Some(key) => self.admit(job.queue, key, due)?,
            None => READY,
        };
        let (id, key) = (job.id.as_deref(), job.key.as_deref());
        self.db.run(
            "INSERT INTO job(queue, state, priority, due, kind, id, key, sum, payload)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                job.queue,
                state,
                job.priority,
                due,
                job.kind,
                id,
                key,
                sum_of(job.queue, job.kind, id, key, &job.payload),
                job.payload
            ],
        )?;
        self.touch_ready(job.queue);
        Ok(StoreAnswer::Put { is_new: true })
    }

    /// Returns whether there is a job with this id. An outcome that is over is removed first.
    fn finds_id(&mut self, queue: i64, id: &str) -> Result<bool> {
        let found = self.db.row(
            "SELECT seq, state = 4 AND until <= ?3 FROM job WHERE queue = ?1 AND id = ?2",
            params![queue, id, self.now],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let found: Option<(i64, bool)> = found;
        if let Some((seq, true)) = found {
            self.db.run("DELETE FROM job WHERE seq = ?1", [seq])?;
            return Ok(false);
        }
        Ok(found.is_some())
    }

    /// Returns the state of a new job of a key (KEY-1). One that is due before the ready one takes
    /// its turn (KEY-2).
    fn admit(&mut self, queue: i64, key: &str, due: i64) -> Result<i64> {
        let first = self.db.row(
            "SELECT seq, state, due, attempt = 0 OR yields FROM job
             WHERE queue = ?1 AND key = ?2 AND state IN (0, 2) AND state < 3",
            params![queue, key],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
        )?;
        let first: Option<(i64, i64, i64, bool)> = first;
        match first {
            None => Ok(READY),
            Some((seq, READY, first, true)) if due < first => {
                let sql = "UPDATE job SET state = ?2 WHERE seq = ?1";
                self.db.run(sql, params![seq, HELD])?;
                Ok(READY)
            }
            Some(_) => Ok(HELD),
        }
    }

    /// Makes the next job of a key ready, after the one before it has left.
    fn promote(&mut self, queue: i64, key: Option<&str>) -> Result<()> {
        let Some(key) = key else { return Ok(()) };
        self.db.run(
            "UPDATE job SET state = 0 WHERE seq = (
               SELECT seq FROM job WHERE queue = ?1 AND key = ?2 AND state = 1 AND state < 3
               ORDER BY due, seq LIMIT 1)",
            params![queue, key],
        )?;
        self.touch_ready(queue);
        Ok(())
    }

    /// Takes the job of the highest priority that is due, and of equals the one that was due first.
    pub(crate) fn take(&mut self, take: &TakeJob) -> Result<CommandStep> {
        let until = loop {
            if self.counts(take.queue)?.is_paused {
                break None;
            }
            self.expire(take)?;
            let (found, next) = self.find_ready(take.queue)?;
            let Some(seq) = found else {
                let lease = self.db.row(
                    "SELECT until FROM job WHERE queue = ?1 AND state = 2 ORDER BY until LIMIT 1",
                    [take.queue],
                    |row| row.get(0),
                )?;
                break next.into_iter().chain(lease).min();
            };
            if let Some(job) = self.hand_out(seq, take.lease)? {
                return Ok(CommandStep::Done(StoreAnswer::Taken(job)));
            }
        };
        Ok(CommandStep::Wait(WakeTopic::Ready(take.queue), until))
    }

    /// Looks for a job at each priority, from the highest one. Returns the first that is due, or when
    /// one will be. A look takes as many steps as there are priorities.
    fn find_ready(&self, queue: i64) -> Result<(Option<i64>, Option<i64>)> {
        let (mut below, mut next) = (i64::MAX, None);
        loop {
            let first = self.db.row(
                "SELECT seq, priority, due FROM job
                 WHERE queue = ?1 AND state = 0 AND priority < ?2
                 ORDER BY priority DESC, due, seq LIMIT 1",
                params![queue, below],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )?;
            let Some((seq, priority, due)) = first else {
                return Ok((None, next));
            };
            if due <= self.now {
                return Ok((Some(seq), None));
            }
            next = next.into_iter().chain([due]).min();
            below = priority;
        }
    }

    /// Gives a job to a worker. A damaged one becomes a dead letter instead.
    fn hand_out(&mut self, seq: i64, lease: i64) -> Result<Option<RawJob>> {
        let read = |row: &Row<'_>| -> Result<Option<(i64, RawJob)>> {
            let (queue, kind) = (row.get(0)?, row.get(1)?);
            let (id, key): (Option<String>, Option<String>) = (row.get(3)?, row.get(4)?);
            let payload: Vec<u8> = row.get(7)?;
            let sum = sum_of(queue, kind, id.as_deref(), key.as_deref(), &payload);
            let is_whole = sum == row.get::<_, i64>(6)?;
            let job = RawJob {
                seq,
                token: 0,
                kind: row.get(2)?,
                id,
                key,
                attempt: row.get::<_, u32>(5)?,
                progress: row.get(8)?,
                payload,
            };
            Ok(is_whole.then_some((queue, job)))
        };
        let found = self.db.row(
            "SELECT queue, kind, (SELECT name FROM kind WHERE kind = job.kind), id, key,
               attempt + 1, sum, payload, progress
             FROM job WHERE seq = ?1",
            [seq],
            // One that cannot be read is damaged as well.
            |row| Ok(read(row).ok().flatten()),
        )?;
        let Some((queue, mut job)) = found.flatten() else {
            let reason = "its row is damaged: the sum differs".to_owned();
            self.end(&self.known(seq)?, &JobEnding::Dead { reason })?;
            return Ok(None);
        };
        let counts = self.counts(queue)?;
        counts.waiting -= 1;
        counts.running += 1;
        job.token = self.next_token()?;
        self.db.run(
            "UPDATE job SET state = 2, attempt = attempt + 1, token = ?2, until = ?3 WHERE seq = ?1",
            params![seq, job.token, self.now + lease],
        )?;
        Ok(Some(job))
    }

    /// Takes back the jobs whose leases are over. One without attempts left is dead.
    fn expire(&mut self, take: &TakeJob) -> Result<()> {
        if !self.expired.insert(take.queue) {
            return Ok(());
        }
        let over: Vec<(i64, i64)> = self.db.rows(
            "SELECT seq, attempt FROM job WHERE queue = ?1 AND state = 2 AND until <= ?2
             ORDER BY until LIMIT ?3",
            params![take.queue, self.now, EXPIRED],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        for (seq, attempt) in over {
            let known = self.known(seq)?;
            let ending = match take.attempts {
                _ if known.cancel => JobEnding::Cancelled,
                Some(most) if attempt >= most => JobEnding::Dead {
                    reason: format!("its lease was over in attempt {attempt}, the last one"),
                },
                _ => JobEnding::Release { is_attempt: true },
            };
            self.end(&known, &ending)?;
        }
        Ok(())
    }

    /// Ends the hold of a worker on a job, if its token is not stale (TOKEN-1).
    pub(crate) fn finish_job(
        &mut self,
        seq: i64,
        token: i64,
        ending: &JobEnding,
    ) -> Result<StoreAnswer> {
        match self.held(seq, token)? {
            Some(known) => {
                let ending = match ending {
                    JobEnding::Done { .. } => ending,
                    _ if known.cancel => &JobEnding::Cancelled,
                    _ => ending,
                };
                self.end(&known, ending)?;
                Ok(StoreAnswer::Done)
            }
            None => Ok(StoreAnswer::Stale),
        }
    }

    /// Returns a running job, if this is its token.
    fn held(&self, seq: i64, token: i64) -> Result<Option<Known>> {
        let known = self.db.row(KNOWN, [seq], Known::read)?;
        Ok(known.filter(|known| known.state == RUNNING && known.token == Some(token)))
    }

    fn known(&self, seq: i64) -> Result<Known> {
        let known = self.db.row(KNOWN, [seq], Known::read)?;
        known.ok_or(rusqlite::Error::QueryReturnedNoRows)
    }

    /// Ends an attempt, or a job that waits.
    fn end(&mut self, job: &Known, ending: &JobEnding) -> Result<()> {
        let counts = self.counts(job.queue)?;
        match job.state {
            RUNNING => {
                counts.running -= 1;
                // Whoever waits for its cancellation waits in vain.
                self.touched.insert(WakeTopic::Cancelled(job.seq));
            }
            READY | HELD => counts.waiting -= 1,
            DEAD => counts.dead -= 1,
            _ => return Ok(()),
        }
        let was_first = matches!(job.state, READY | RUNNING);
        match ending {
            JobEnding::Release { is_attempt } => {
                self.counts(job.queue)?.waiting += 1;
                self.db.run(
                    "UPDATE job SET state = 0, attempt = attempt - ?2, token = NULL, until = NULL
                     WHERE seq = ?1",
                    params![job.seq, !is_attempt],
                )?;
                self.touch_ready(job.queue);
                return Ok(());
            }
            JobEnding::Retry {
                after,
                reason,
                yields,
            } => {
                self.counts(job.queue)?.waiting += 1;
                // It keeps its turn (KEY-2), or gets in line behind those of its key that are due.
                let state = if *yields && job.key.is_some() {
                    HELD
                } else {
                    READY
                };
                self.db.run(
                    "UPDATE job SET state = ?2, due = ?3, reason = ?4, yields = ?5, token = NULL,
                       until = NULL
                     WHERE seq = ?1",
                    params![job.seq, state, self.now + after, reason, yields],
                )?;
                self.touch_ready(job.queue);
                if state == READY {
                    return Ok(());
                }
            }
            JobEnding::Dead { reason } => {
                self.counts(job.queue)?.dead += 1;
                self.db.run(
                    "UPDATE job SET state = 3, reason = ?2, due = ?3, token = NULL, until = NULL
                     WHERE seq = ?1",
                    params![job.seq, reason, self.now],
                )?;
                self.touch_end(job);
            }
            JobEnding::Done { window } => {
                self.count_end(job.queue)?;
                self.keep_outcome(job, *window, false)?;
            }
            JobEnding::Cancelled => self.keep_outcome(job, super::command::WINDOW, true)?,
        }
        match was_first {
            true => self.promote(job.queue, job.key.as_deref()),
            false => Ok(()),
        }
    }

    fn touch_end(&mut self, job: &Known) {
        let id = job.id.iter().cloned();
        self.touched
            .extend(id.map(|id| WakeTopic::Ended(job.queue, id)));
    }

    /// Keeps the id of a job that has ended, and its outcome, for a while. Removes older ones.
    fn keep_outcome(&mut self, job: &Known, window: i64, is_cancelled: bool) -> Result<()> {
        if job.id.is_none() {
            self.db.run("DELETE FROM job WHERE seq = ?1", [job.seq])?;
            return Ok(());
        }
        self.db.run(
            "UPDATE job SET state = 4, until = ?2, cancel = ?3, token = NULL, payload = x'',
               progress = NULL
             WHERE seq = ?1",
            params![job.seq, self.now + window, is_cancelled],
        )?;
        self.touch_end(job);
        self.db.run(
            "DELETE FROM job WHERE seq IN (
               SELECT seq FROM job WHERE state = 4 AND until <= ?1 ORDER BY until LIMIT ?2)",
            params![self.now, FORGOTTEN],
        )?;
        Ok(())
    }

    pub(crate) fn renew_job(&mut self, seq: i64, token: i64, lease: i64) -> Result<StoreAnswer> {
        match self.held(seq, token)? {
            Some(_) => {
                let sql = "UPDATE job SET until = ?2 WHERE seq = ?1";
                self.db.run(sql, params![seq, self.now + lease])?;
                Ok(StoreAnswer::Done)
            }
            None => Ok(StoreAnswer::Stale),
        }
    }

    pub(crate) fn progress(
        &mut self,
        seq: i64,
        token: i64,
        progress: &[u8],
    ) -> Result<StoreAnswer> {
        match self.held(seq, token)? {
            Some(_) => {
                let sql = "UPDATE job SET progress = ?2 WHERE seq = ?1";
                self.db.run(sql, params![seq, progress])?;
                Ok(StoreAnswer::Done)
            }
            None => Ok(StoreAnswer::Stale),
        }
    }

    /// Waits until a running job is to end: it was cancelled, or its token is stale.
    pub(crate) fn watch_cancel(&mut self, seq: i64, token: i64) -> Result<CommandStep> {
        match self.held(seq, token)? {
            Some(known) if !known.cancel => Ok(CommandStep::Wait(WakeTopic::Cancelled(seq), None)),
            Some(_) => Ok(CommandStep::Done(StoreAnswer::Done)),
            None => Ok(CommandStep::Done(StoreAnswer::Stale)),
        }
    }

    /// Cancels a job: one that waits or is dead ends at once, one that runs is asked to.
    pub(crate) fn cancel(&mut self, queue: i64, id: &str) -> Result<StoreAnswer> {
        let sql = "SELECT seq, queue, state, id, key, token, cancel FROM job
                   WHERE queue = ?1 AND id = ?2";
        let known = self.db.row(sql, params![queue, id], Known::read)?;
        match known {
            None => Ok(StoreAnswer::Missing),
            Some(known) if known.state == ENDED => Ok(StoreAnswer::Missing),
            Some(known) if known.state == RUNNING => {
                let sql = "UPDATE job SET cancel = 1 WHERE seq = ?1";
                self.db.run(sql, [known.seq])?;
                self.touched.insert(WakeTopic::Cancelled(known.seq));
                Ok(StoreAnswer::Done)
            }
            Some(known) => {
                self.end(&known, &JobEnding::Cancelled)?;
                Ok(StoreAnswer::Done)
            }
        }
    }

    /// Puts a dead letter again, as a new job of its number.
    pub(crate) fn requeue(&mut self, queue: i64, seq: i64) -> Result<StoreAnswer> {
        let Some(known) = self.dead(queue, seq)? else {
            return Ok(StoreAnswer::Missing);
        };
        let counts = self.counts(queue)?;
        counts.dead -= 1;
        counts.waiting += 1;
        let state = match &known.key {
            Some(key) => self.admit(queue, key, self.now)?,
            None => READY,
        };
        self.db.run(
            "UPDATE job SET state = ?2, due = ?3, attempt = 0, yields = 0, cancel = 0, reason = NULL
             WHERE seq = ?1",
            params![seq, state, self.now],
        )?;
        self.touch_ready(queue);
        Ok(StoreAnswer::Done)
    }

    /// Removes a dead letter, with its id.
    pub(crate) fn discard(&mut self, queue: i64, seq: i64) -> Result<StoreAnswer> {
        let Some(known) = self.dead(queue, seq)? else {
            return Ok(StoreAnswer::Missing);
        };
        self.counts(queue)?.dead -= 1;
        self.db.run("DELETE FROM job WHERE seq = ?1", [seq])?;
        self.touch_end(&known);
        Ok(StoreAnswer::Done)
    }

    fn dead(&self, queue: i64, seq: i64) -> Result<Option<Known>> {
        let known = self.db.row(KNOWN, [seq], Known::read)?;
        Ok(known.filter(|known| known.queue == queue && known.state == DEAD))
    }
}

//! The rounds of an engine: each is one transaction for all commands that have come meanwhile.
//!
//! Commands that come while others run belong to the same transaction. So callers that were answered
//! together put their next commands together, and share the next sync.
//!
//! - ROUND-1: a command is answered after the commit of its transaction, never before.
//! - ROUND-2: commands that wait run last in a transaction, so a job that was just put is taken in the
//!   same one.
//! - ROUND-3: if one command fails, the others run again without it.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::parked::Parked;
use super::{CommandResult, Entry};
use crate::error::StoreProblem;
use crate::limits::Limits;
use crate::records::command::{Command, CommandStep, JobEnding, StoreAnswer};
use crate::records::db::Db;
use crate::records::tx::{Tx, WakeTopic};

/// The commands of a transaction at most. More would make the first of them wait.
const COMMANDS: usize = 256;

pub(crate) struct Rounds {
    parked: Parked,
    limits: Limits,
}

/// What an engine does in a round.
pub(crate) trait RoundEngine {
    /// Returns the time of the store in milliseconds.
    fn now(&self) -> i64;
    /// Takes commands that have come since the round began, so many at most.
    fn take_late(&mut self, most: usize) -> Vec<Entry>;
    /// Ends a transaction: commits, or in a simulation something else.
    fn commit(&mut self, db: &Db<'_>) -> Result<(), StoreProblem>;
}

/// Commits as SQLite does.
pub(crate) fn commit(db: &Db<'_>) -> Result<(), StoreProblem> {
    db.run("COMMIT", [])
        .map(drop)
        .map_err(|error| StoreProblem::of_commit(&error))
}

/// What a transaction has done, before its commands are answered.
struct Ran {
    steps: Vec<(Entry, CommandStep)>,
    touched: Vec<WakeTopic>,
}

impl Rounds {
    pub(crate) fn new(limits: Limits) -> Self {
        Rounds {
            parked: Parked::default(),
            limits,
        }
    }

    pub(crate) fn next_due(&self) -> Option<i64> {
        self.parked.next_due()
    }

    /// Runs commands, those whose time has come, and all that wait if another process has changed the
    /// file.
    pub(crate) fn round(
        &mut self,
        db: &Db<'_>,
        engine: &mut dyn RoundEngine,
        mut entries: Vec<Entry>,
        is_changed: bool,
    ) {
        entries.extend(match is_changed {
            true => self.parked.take_all(),
            false => self.parked.take_due(engine.now()),
        });
        while !entries.is_empty() {
            let rest = entries.split_off(entries.len().min(COMMANDS));
            // Those that are left come first.
            let most = if rest.is_empty() { COMMANDS } else { 0 };
            let more = self.batch(db, engine, entries, most);
            entries = more;
            entries.extend(rest);
        }
    }

    /// Runs commands in one transaction, with late ones up to so many. Returns what is to run next.
    fn batch(
        &mut self,
        db: &Db<'_>,
        engine: &mut dyn RoundEngine,
        entries: Vec<Entry>,
        most: usize,
    ) -> Vec<Entry> {
        let mut entries: Vec<_> = entries.into_iter().filter(Entry::is_wanted).collect();
        if entries.is_empty() {
            return entries;
        }
        match self.transact(db, engine, &mut entries, most) {
            Ok((steps, touched)) => {
                let steps = entries.into_iter().zip(steps).collect();
                self.answer(Ran { steps, touched })
            }
            Err((problem, is_of_one)) => {
                if is_of_one && entries.len() > 1 {
                    // One at a time.
                    let runs = entries.into_iter();
                    return runs
                        .flat_map(|entry| self.batch(db, engine, vec![entry], 1))
                        .collect();
                }
                for entry in entries {
                    entry.answer(Err(problem.clone()));
                }
                Vec::new()
            }
        }
    }

    /// Runs commands from `BEGIN` to the commit. Late ones are added, and those that wait for what they
    /// touch. An error says whether a single one of them may have caused it.
    fn transact(
        &mut self,
        db: &Db<'_>,
        engine: &mut dyn RoundEngine,
        entries: &mut Vec<Entry>,
        most: usize,
    ) -> Result<(Vec<CommandStep>, Vec<WakeTopic>), (StoreProblem, bool)> {
        let reads = entries.iter().all(|entry| entry.command.only_reads());
        // A transaction that has begun as one that reads may not write.
        let (begin, most) = match reads {
            true => ("BEGIN", 0),
            false => ("BEGIN IMMEDIATE", most),
        };
        db.run(begin, [])
            .map_err(|error| (StoreProblem::of(&error), false))?;
        let limits = self.limits.clone();
        let mut tx = Tx::new(db, engine.now(), &limits);
        let late = &mut |most| engine.take_late(most);
        let ran = self.run(&mut tx, entries, most, late);
        let touched = tx.touched.into_iter().collect();
        let ran = ran.map_err(|error| (StoreProblem::of(&error), true));
        let ended = ran.and_then(|steps| {
            engine.commit(db).map_err(|problem| (problem, false))?;
            Ok((steps, touched))
        });
        if ended.is_err() && !db.connection.is_autocommit() {
            // It fails if SQLite has rolled back itself.
            let _ = db.run("ROLLBACK", []);
        }
        ended
    }

    fn run(
        &mut self,
        tx: &mut Tx<'_, '_>,
        entries: &mut Vec<Entry>,
        most: usize,
        late: &mut dyn FnMut(usize) -> Vec<Entry>,
    ) -> rusqlite::Result<Vec<CommandStep>> {
        let mut steps = Vec::with_capacity(entries.len());
        let plain = loop {
            // What waits comes last (ROUND-2).
            entries[steps.len()..].sort_by_key(|entry| entry.command.waits());
            let plain = entries.partition_point(|entry| !entry.command.waits());
            for entry in &entries[steps.len()..plain] {
                steps.push(tx.step(&entry.command)?);
            }
            let more = late(most.saturating_sub(entries.len()));
            if more.is_empty() {
                break plain;
            }
            entries.extend(more.into_iter().filter(Entry::is_wanted));
        };
        for topic in std::mem::take(&mut tx.touched) {
            entries.extend(
                self.parked
                    .take(&topic)
                    .into_iter()
                    .filter(Entry::is_wanted),
            );
        }
        // A queue without a job for one worker has none for the next.
        let mut empty: BTreeMap<i64, Option<i64>> = BTreeMap::new();
        for entry in &entries[plain..] {
            if let Command::Take(take) = &entry.command
                && let Some(until) = empty.get(&take.queue)
            {
                steps.push(CommandStep::Wait(WakeTopic::Ready(take.queue), *until));
                continue;
            }
            let step = tx.step(&entry.command)?;
            if let CommandStep::Wait(WakeTopic::Ready(queue), until) = &step {
                empty.insert(*queue, *until);
            }
            steps.push(step);
        }
        tx.finish()?;
        Ok(steps)
    }

    /// Answers or parks the commands. Returns those that are to run next: what waits for a topic that
    /// was touched late, and jobs that go back, since who took them is gone.
    fn answer(&mut self, ran: Ran) -> Vec<Entry> {
        let mut next = Vec::new();
        for (entry, step) in ran.steps {
            match step {
                CommandStep::Wait(topic, until) => self.parked.park(topic, until, entry),
                CommandStep::Done(answer) => {
                    if let Some(Ok(StoreAnswer::Taken(job))) = entry.answer(Ok(answer)) {
                        next.push(Entry::release(job.seq, job.token));
                    }
                }
            }
        }
        next.extend(ran.touched.iter().flat_map(|topic| self.parked.take(topic)));
        next
    }

    /// Answers all that waits, since the engine ends.
    pub(crate) fn close(&mut self) {
        for entry in self.parked.take_all() {
            entry.answer(Err(StoreProblem::Closed));
        }
    }
}

impl Entry {
    /// Creates the command that gives a job back, as if it had not been taken.
    pub(crate) fn release(seq: i64, token: i64) -> Entry {
        let ending = JobEnding::Release { is_attempt: false };
        Entry {
            command: Command::Finish { seq, token, ending },
            reply: None,
        }
    }

    /// Returns whether it is to run. A command that only waits is not, once its future is gone.
    pub(super) fn is_wanted(&self) -> bool {
        !self.command.waits() || self.reply.as_ref().is_some_and(|reply| reply.is_wanted())
    }

    /// Gives an answer, or returns it if it comes too late.
    pub(crate) fn answer(self, answer: CommandResult) -> Option<CommandResult> {
        self.reply?.send(answer).err()
    }
}

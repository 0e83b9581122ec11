//! The rounds of an engine: each is one transaction for all commands that have come meanwhile.
//!
//! - ROUND-1: a command is answered after the commit of its transaction, never before.
//! - ROUND-2: commands that wait run last in a transaction, so a job that was just put is taken in the
//!   same one.
//! - ROUND-3: if one command fails, the others run again without it.

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

/// What ends a transaction: the commit, or in a simulation something else.
pub(crate) type Commit<'a> = &'a mut dyn FnMut(&Db<'_>) -> Result<(), StoreProblem>;

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
        clock: &dyn Fn() -> i64,
        mut entries: Vec<Entry>,
        is_changed: bool,
        commit: Commit<'_>,
    ) {
        entries.extend(match is_changed {
            true => self.parked.take_all(),
            false => self.parked.take_due(clock()),
        });
        while !entries.is_empty() {
            let rest = entries.split_off(entries.len().min(COMMANDS));
            let more = self.batch(db, clock, entries, commit);
            entries = more;
            entries.extend(rest);
        }
    }

    /// Runs commands in one transaction. Returns what is to run next.
    fn batch(
        &mut self,
        db: &Db<'_>,
        clock: &dyn Fn() -> i64,
        entries: Vec<Entry>,
        commit: Commit<'_>,
    ) -> Vec<Entry> {
        let mut entries: Vec<_> = entries.into_iter().filter(Entry::is_wanted).collect();
        if entries.is_empty() {
            return entries;
        }
        match self.transact(db, clock, &mut entries, commit) {
            Ok((steps, touched)) => {
                let steps = entries.into_iter().zip(steps).collect();
                self.answer(Ran { steps, touched })
            }
            Err((problem, is_of_one)) => {
                if is_of_one && entries.len() > 1 {
                    // One at a time.
                    let runs = entries.into_iter();
                    return runs
                        .flat_map(|entry| self.batch(db, clock, vec![entry], commit))
                        .collect();
                }
                for entry in entries {
                    entry.answer(Err(problem.clone()));
                }
                Vec::new()
            }
        }
    }

    /// Runs commands from `BEGIN` to the commit. Those that wait for what they touch are added. An error
    /// says whether a single one of them may have caused it.
    fn transact(
        &mut self,
        db: &Db<'_>,
        clock: &dyn Fn() -> i64,
        entries: &mut Vec<Entry>,
        commit: Commit<'_>,
    ) -> Result<(Vec<CommandStep>, Vec<WakeTopic>), (StoreProblem, bool)> {
        let reads = entries.iter().all(|entry| entry.command.only_reads());
        let begin = if reads { "BEGIN" } else { "BEGIN IMMEDIATE" };
        db.run(begin, [])
            .map_err(|error| (StoreProblem::of(&error), false))?;
        let limits = self.limits.clone();
        let mut tx = Tx::new(db, clock(), &limits);
        let ran = self.run(&mut tx, entries);
        let touched = tx.touched.into_iter().collect();
        let ran = ran.map_err(|error| (StoreProblem::of(&error), true));
        let ended = ran.and_then(|steps| {
            commit(db).map_err(|problem| (problem, false))?;
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
    ) -> rusqlite::Result<Vec<CommandStep>> {
        // What waits comes last (ROUND-2).
        entries.sort_by_key(|entry| entry.command.waits());
        let mut steps = Vec::with_capacity(entries.len());
        let plain = entries.partition_point(|entry| !entry.command.waits());
        for entry in &entries[..plain] {
            steps.push(tx.step(&entry.command)?);
        }
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

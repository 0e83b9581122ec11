//! One step of a transaction: a command, and its answer.

use rusqlite::Result;

use super::command::{Command, CommandStep, StoreAnswer};
use super::tx::Tx;

impl Tx<'_, '_> {
    /// Does a command, or says what it waits for.
    pub(crate) fn step(&mut self, command: &Command) -> Result<CommandStep> {
        match command {
            Command::Take(take) => self.take(take),
            Command::WatchCancel { seq, token } => self.watch_cancel(*seq, *token),
            Command::Outcome { queue, id } => self.outcome(*queue, id),
            Command::Drain { queue } => self.drain(*queue),
            Command::Hold { name, time } => self.hold(name, *time),
            command => self.answer(command).map(CommandStep::Done),
        }
    }

    /// Does a command that waits for nothing.
    fn answer(&mut self, command: &Command) -> Result<StoreAnswer> {
        match command {
            Command::OpenQueue { name, kind } => self.open_queue(name, kind),
            Command::Put(job) => self.put(job),
            Command::Finish { seq, token, ending } => self.finish_job(*seq, *token, ending),
            Command::RenewJob { seq, token, lease } => self.renew_job(*seq, *token, *lease),
            Command::Progress {
                seq,
                token,
                progress,
            } => self.progress(*seq, *token, progress),
            Command::Cancel { queue, id } => self.cancel(*queue, id),
            Command::Pause { queue, is_paused } => self.pause(*queue, *is_paused),
            Command::Statuses { name } => self.statuses(name.as_deref()),
            Command::DeadJobs { name, after, most } => self.dead_jobs(name, *after, *most),
            Command::Requeue { name, seq } => match self.find_queue(name)? {
                Some(queue) => self.requeue(queue, *seq),
                None => Ok(StoreAnswer::Missing),
            },
            Command::Discard { name, seq } => match self.find_queue(name)? {
                Some(queue) => self.discard(queue, *seq),
                None => Ok(StoreAnswer::Missing),
            },
            Command::OpenStream { name, key } => self.open_stream(name, key),
            Command::ReadEvents {
                stream,
                after,
                chain,
                most,
            } => self.read_events(*stream, *after, *chain, *most),
            Command::Append(append) => self.append(append),
            Command::Save {
                stream,
                token,
                position,
                kind,
                payload,
            } => self.save(*stream, *token, *position, kind, payload),
            Command::RenewLease { name, token, time } => self.renew_lease(name, *token, *time),
            Command::EndLease { name, token } => self.end_lease(name, *token),
            // Those that wait.
            _ => Ok(StoreAnswer::Missing),
        }
    }
}

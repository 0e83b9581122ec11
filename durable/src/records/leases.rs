//! Leases: each name has at most one holder at a time, with a token that only grows.

use rusqlite::{Result, params};

use super::command::{CommandStep, StoreAnswer};
use super::tx::{Tx, WakeTopic};

impl Tx<'_, '_> {
    /// Gives a lease away, or waits until it is over.
    pub(crate) fn hold(&mut self, name: &str, time: i64) -> Result<CommandStep> {
        let sql = "SELECT until FROM lease WHERE name = ?1";
        let until: Option<i64> = self.db.row(sql, [name], |row| row.get(0))?;
        if let Some(until) = until.filter(|until| *until > self.now) {
            return Ok(CommandStep::Wait(
                WakeTopic::Lease(name.to_owned()),
                Some(until),
            ));
        }
        let token = self.next_token()?;
        self.db.run(
            "INSERT OR REPLACE INTO lease(name, token, until) VALUES (?1, ?2, ?3)",
            params![name, token, self.ends(time)],
        )?;
        Ok(CommandStep::Done(StoreAnswer::Token(token)))
    }

    /// Returns when a lease of now ends. The holder counts from before, and its clock is finer.
    fn ends(&self, time: i64) -> i64 {
        self.now + time + 1
    }

    pub(crate) fn renew_lease(&mut self, name: &str, token: i64, time: i64) -> Result<StoreAnswer> {
        let renewed = self.db.run(
            "UPDATE lease SET until = ?3 WHERE name = ?1 AND token = ?2 AND until > 0",
            params![name, token, self.ends(time)],
        )?;
        Ok(match renewed {
            0 => StoreAnswer::Stale,
            _ => StoreAnswer::Done,
        })
    }

    /// Ends a lease early. Its row stays, as the next holder will have it.
    pub(crate) fn end_lease(&mut self, name: &str, token: i64) -> Result<StoreAnswer> {
        let sql = "UPDATE lease SET until = 0 WHERE name = ?1 AND token = ?2";
        self.db.run(sql, params![name, token])?;
        self.touched.insert(WakeTopic::Lease(name.to_owned()));
        Ok(StoreAnswer::Done)
    }
}

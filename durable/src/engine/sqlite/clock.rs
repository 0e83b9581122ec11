//! The clock of a store: on Linux it never goes back, and no change of the machine's date moves it.
//!
//! While the machine runs, it follows the clock that counts from the start of the machine. At the next
//! start it goes on from the date, or from the latest time in the file if that is later. Then no process
//! from before is there, so all leases are over.

use rusqlite::{Connection, Result, TransactionBehavior, params};
use std::time::{SystemTime, UNIX_EPOCH};

/// In milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreClock {
    ahead: i64,
}

impl StoreClock {
    /// Reads or sets the clock of a file.
    pub(super) fn open(connection: &mut Connection) -> Result<Self> {
        let boot = boot();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let sql = "SELECT ahead, seen FROM store WHERE boot = ?1 UNION ALL
                   SELECT NULL, seen FROM store WHERE boot <> ?1 UNION ALL SELECT NULL, 0";
        let (ahead, seen): (Option<i64>, i64) =
            transaction.query_row(sql, [&boot], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if let Some(ahead) = ahead {
            return Ok(StoreClock { ahead });
        }
        let ahead = date().max(seen) - since_boot();
        transaction.execute(
            "INSERT INTO store(only, boot, ahead, seen, token) VALUES (1, ?1, ?2, ?3, 0)
             ON CONFLICT(only) DO UPDATE SET boot = ?1, ahead = ?2, seen = ?3",
            params![boot, ahead, ahead + since_boot()],
        )?;
        transaction.execute("UPDATE job SET until = 0 WHERE state = 2", [])?;
        transaction.execute("UPDATE lease SET until = 0", [])?;
        transaction.commit()?;
        Ok(StoreClock { ahead })
    }

    pub(crate) fn now(&self) -> i64 {
        since_boot() + self.ahead
    }
}

/// Returns the milliseconds since 1970, by the date.
fn date() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}

/// Returns what differs from one start of the machine to the next.
#[cfg(target_os = "linux")]
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

#[cfg(target_os = "linux")]
fn since_boot() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    time.tv_sec * 1000 + time.tv_nsec / 1_000_000
}

/// Returns no start, so that the clock of a store follows the date.
#[cfg(not(target_os = "linux"))]
fn boot() -> String {
    String::new()
}

#[cfg(not(target_os = "linux"))]
fn since_boot() -> i64 {
    date()
}

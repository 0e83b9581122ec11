//! The engine with a SQLite file: one thread, which has the only connection of the store.
//!
//! - THREAD-1: only this thread uses the connection, from `open` to the end.
//! - THREAD-2: while it commits, commands gather, and the next transaction has all of them. So those who
//!   wait share a sync.
//! - THREAD-3: it sleeps until a command comes, the next time is due, or another process has changed the
//!   WAL. Nothing else wakes it.

mod clock;
mod doorbell;
pub(crate) mod file;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use greenroom::time::Instant;
use rusqlite::Connection;

use clock::StoreClock;
use doorbell::{Doorbell, Notice};
use file::FileOptions;

use super::rounds::{self, RoundEngine, Rounds};
use super::{
    CommandInbox, EngineHandle, Entry, StoreEngine, ValueReceiver, ValueSender, from_outside, reply,
};
use crate::error::{StoreOpenProblem, StoreProblem};
use crate::limits::Limits;
use crate::records::check::{self, CheckReport};
use crate::records::db::Db;

#[derive(Debug)]
struct SqliteEngine {
    shared: Arc<SharedInbox>,
    limits: Limits,
    /// The process that has opened it.
    process: u32,
}

struct SharedInbox {
    inbox: CommandInbox,
    doorbell: Doorbell,
}

impl std::fmt::Debug for SharedInbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedInbox").finish_non_exhaustive()
    }
}

/// Opens a file and starts the thread of its engine.
pub(crate) async fn open(
    mut options: FileOptions,
    limits: Limits,
) -> Result<EngineHandle, StoreOpenProblem> {
    let system = |error: std::io::Error| StoreOpenProblem::System(error.to_string());
    options.path = file::resolve(&options.path)?;
    let doorbell = Doorbell::new(&options.path).map_err(system)?;
    let shared = Arc::new(SharedInbox {
        inbox: CommandInbox::default(),
        doorbell,
    });
    let (opened, opening) = reply();
    let (own, own_limits) = (shared.clone(), limits.clone());
    let thread = thread::Builder::new().name("greenroom-durable".into());
    let started = thread.spawn(move || run(&options, own_limits, &own, opened));
    started.map_err(system)?;
    let engine = SqliteEngine {
        shared,
        limits,
        process: std::process::id(),
    };
    // If this future is dropped, the thread ends.
    let engine = EngineHandle::new(engine);
    let gone = || Err(StoreOpenProblem::System("its thread has ended".into()));
    from_outside(opening).await.unwrap_or_else(gone)?;
    Ok(engine)
}

/// Checks a file, on a thread of its own.
pub(crate) async fn check(path: PathBuf) -> Result<CheckReport, StoreOpenProblem> {
    let (sender, checked) = reply();
    let thread = thread::Builder::new().name("greenroom-durable".into());
    let started = thread.spawn(move || {
        let opened = file::resolve(&path).and_then(|path| file::open_to_check(&path));
        let read = |connection| check::check(&connection).map_err(StoreOpenProblem::of);
        let _ = sender.send(opened.and_then(read));
    });
    started.map_err(|error| StoreOpenProblem::System(error.to_string()))?;
    let gone = || Err(StoreOpenProblem::System("its thread has ended".into()));
    from_outside(checked).await.unwrap_or_else(gone)
}

/// Ends all waits for the thread when it ends, or panics. The file is closed before.
struct CloseInbox<'a>(&'a CommandInbox);

impl Drop for CloseInbox<'_> {
    fn drop(&mut self) {
        self.0.close();
        drop(self.0.take());
        self.0.end();
    }
}

/// Runs the thread until the store is closed.
fn run(
    options: &FileOptions,
    limits: Limits,
    shared: &SharedInbox,
    opened: ValueSender<Result<(), StoreOpenProblem>>,
) {
    let _closing = CloseInbox(&shared.inbox);
    let (connection, clock) = match prepare(options, shared) {
        Ok(prepared) => prepared,
        Err(problem) => {
            let _ = opened.send(Err(problem));
            return;
        }
    };
    let _ = opened.send(Ok(()));
    work(&Db::new(&connection), clock, limits, shared);
    // The last connection of a file copies its WAL and removes it.
    drop(connection);
}

fn prepare(
    options: &FileOptions,
    shared: &SharedInbox,
) -> Result<(Connection, StoreClock), StoreOpenProblem> {
    let mut connection = file::open(options)?;
    let clock = StoreClock::open(&mut connection).map_err(StoreOpenProblem::of)?;
    let watched = shared.doorbell.watch();
    watched.map_err(|error| StoreOpenProblem::System(error.to_string()))?;
    Ok((connection, clock))
}

/// After this time, a change that was noticed while it was written is looked at, if its process has not
/// announced it: it may have died.
const LOOK: Duration = Duration::from_millis(100);

/// The thread of an engine in a round.
struct EngineThread<'a> {
    shared: &'a SharedInbox,
    clock: StoreClock,
    /// The rows that were changed so far.
    changes: u64,
}

impl RoundEngine for EngineThread<'_> {
    fn now(&self) -> i64 {
        self.clock.now()
    }

    fn take_late(&mut self, most: usize) -> Vec<Entry> {
        self.shared.inbox.take_some(most)
    }

    /// Commits, and announces that before anybody has an answer. So what was acknowledged is noticed by
    /// others, also if this process ends now.
    fn commit(&mut self, db: &Db<'_>) -> Result<(), StoreProblem> {
        let committed = rounds::commit(db);
        let before = std::mem::replace(&mut self.changes, db.connection.total_changes());
        if before != self.changes {
            self.shared.doorbell.announce();
        }
        committed
    }
}

fn work(db: &Db<'_>, clock: StoreClock, limits: Limits, shared: &SharedInbox) {
    let SharedInbox { inbox, doorbell } = shared;
    let mut rounds = Rounds::new(limits);
    let changes = db.connection.total_changes();
    let mut engine = EngineThread {
        shared,
        clock,
        changes,
    };
    let mut version = data_version(db);
    let mut look: Option<Instant> = None;
    let mut is_noticed = true;
    loop {
        let (entries, is_closed) = inbox.take();
        let is_changed = is_noticed && {
            let before = std::mem::replace(&mut version, data_version(db));
            before != version
        };
        let changes = engine.changes;
        rounds.round(db, &mut engine, entries, is_changed);
        if is_closed {
            rounds.close();
            return;
        }
        if engine.changes != changes {
            // The notices are mostly of this change, but may hide one of another process.
            doorbell.notice();
            is_noticed = true;
            continue;
        }
        if !inbox.sleep() {
            continue;
        }
        let until = |due: i64| Duration::from_millis((due - engine.now()).max(0) as u64);
        let due = rounds.next_due().map(until);
        let look_after = look.map(|look| look.duration_since(Instant::now()));
        doorbell.watch_writes(true);
        // By a process that has died before it could announce its change.
        let is_missed = data_version(db) != version;
        if !is_missed {
            doorbell.wait(due.into_iter().chain(look_after).min());
        }
        doorbell.watch_writes(false);
        let notice = doorbell.notice();
        if notice == Notice::Written {
            look = look.or_else(|| Instant::now().checked_add(LOOK));
        }
        let is_over = look.is_some_and(|look| look <= Instant::now());
        look = look.filter(|_| !is_over);
        is_noticed = is_missed || is_over || notice == Notice::Committed;
    }
}

/// Returns a number that changes with each commit of another connection.
fn data_version(db: &Db<'_>) -> i64 {
    let version = db.row("PRAGMA data_version", [], |row| row.get(0));
    version.ok().flatten().unwrap_or_default()
}

impl StoreEngine for SqliteEngine {
    fn submit(&self, entry: Entry) {
        // A child of fork has no such thread, and may not use a connection of its parent.
        if std::process::id() != self.process {
            entry.answer(Err(StoreProblem::Forked));
            return;
        }
        if self.shared.inbox.push(entry) {
            self.shared.doorbell.ring();
        }
    }

    fn close(&self) {
        // In a child of fork the bell would wake the thread of the parent.
        if std::process::id() == self.process {
            self.shared.inbox.close();
            self.shared.doorbell.ring();
        }
    }

    fn closed(&self) -> ValueReceiver<()> {
        match std::process::id() == self.process {
            true => self.shared.inbox.ended(),
            // There is nothing to wait for.
            false => reply().1,
        }
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }
}

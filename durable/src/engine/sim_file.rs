//! `SimFile`: a store in memory, with delays, failures and crashes, for tests.
//!
//! Within a simulation all of it follows from the seed, and time is virtual. The commands run in the same
//! transactions as with a file. What a real file may do besides, such as tear a page, is tested with
//! real files.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;

use futures_lite::future::{or, poll_fn};
use greenroom::sim;
use greenroom::time::{Instant, sleep};
use rusqlite::Connection;

use super::rounds::{self, RoundEngine, Rounds};
use super::{CommandInbox, EngineHandle, Entry, StoreEngine, ValueReceiver, lock};
use crate::error::{StoreOpenProblem, StoreProblem};
use crate::limits::Limits;
use crate::records::db::Db;
use crate::records::schema;

/// A store in memory, for tests: it stands for a file that several processes use.
///
/// A [`StoreBuilder`](crate::StoreBuilder) opens it as often as there are processes. What is in it
/// survives a [crash](SimFile::crash).
///
/// ```
/// use greenroom::sim;
/// use greenroom_durable::{SimFile, Store};
///
/// sim::run(7, async {
///     let file = SimFile::new();
///     let store = Store::simulated(&file).open().await.unwrap();
///     file.crash(&store);
///     let again = Store::simulated(&file).open().await.unwrap();
/// #   drop(again);
/// });
/// ```
#[derive(Clone)]
pub struct SimFile(Arc<Mutex<FileState>>);

struct FileState {
    connection: Connection,
    /// When its clock began.
    start: Instant,
    delay: Range<Duration>,
    /// The shares of commits that fail, and of those that fail with their outcome unknown.
    fails: f64,
    unknown: f64,
    engines: Vec<Weak<SimWorker>>,
}

/// The clock of a store in memory begins at this number of milliseconds.
const START: i64 = 1_000_000_000;

impl Default for SimFile {
    fn default() -> Self {
        SimFile::new()
    }
}

impl SimFile {
    /// Creates an empty store, in which a commit takes 1 to 2 ms.
    ///
    /// # Panics
    /// If SQLite has no memory for it.
    pub fn new() -> Self {
        let made = Connection::open_in_memory().map_err(StoreOpenProblem::of);
        let made = made.and_then(|mut connection| {
            schema::complete(&mut connection)?;
            let sql = "INSERT INTO store(only, boot, ahead, seen, token) VALUES (1, '', 0, 0, 0)";
            let written = connection.execute(sql, []);
            written.map_err(StoreOpenProblem::of)?;
            Ok(connection)
        });
        let connection = made.unwrap_or_else(|problem| panic!("no store in memory: {problem:?}"));
        SimFile(Arc::new(Mutex::new(FileState {
            connection,
            start: Instant::now(),
            delay: Duration::from_millis(1)..Duration::from_millis(2),
            fails: 0.0,
            unknown: 0.0,
            engines: Vec::new(),
        })))
    }

    /// Sets how long commits take from now on.
    pub fn delay(&self, delay: Range<Duration>) {
        lock(&self.0).delay = delay;
    }

    /// Sets the share of commits, from 0 to 1, that fail with nothing stored.
    pub fn fails(&self, share: f64) {
        lock(&self.0).fails = share;
    }

    /// Sets the share of commits, from 0 to 1, that fail as a sync does: with the problem
    /// [`Unknown`](StoreProblem::Unknown). Half of them are stored.
    pub fn unknown(&self, share: f64) {
        lock(&self.0).unknown = share;
    }

    /// Ends a store of this file as the end of its process does: what was not committed is lost, and
    /// nothing is answered. A later operation of it has the problem
    /// [`Closed`](StoreProblem::Closed).
    pub fn crash(&self, store: &crate::Store) {
        store.handle().engine().crash();
    }

    /// Opens a store in it, whose engine is a task of the simulation.
    pub(crate) fn open(&self, limits: Limits) -> EngineHandle {
        let worker = Arc::new(SimWorker {
            file: self.clone(),
            inbox: CommandInbox::default(),
            bell: Mutex::new(SimBell::default()),
        });
        lock(&self.0).engines.push(Arc::downgrade(&worker));
        greenroom::spawn(worker.clone().work(limits.clone())).detach();
        EngineHandle::new(SimStore { worker, limits })
    }
}

impl fmt::Debug for SimFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimFile").finish_non_exhaustive()
    }
}

/// The engine of one store, as its handle sees it.
#[derive(Debug)]
struct SimStore {
    worker: Arc<SimWorker>,
    limits: Limits,
}

/// The same, as its task sees it.
struct SimWorker {
    file: SimFile,
    inbox: CommandInbox,
    bell: Mutex<SimBell>,
}

#[derive(Default)]
struct SimBell {
    is_rung: bool,
    /// Another store has changed the file.
    is_changed: bool,
    is_crashed: bool,
    waker: Option<Waker>,
}

impl fmt::Debug for SimWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimWorker").finish_non_exhaustive()
    }
}

impl StoreEngine for SimStore {
    fn submit(&self, entry: Entry) {
        self.worker.inbox.push(entry);
        self.worker.ring(|bell| bell.is_rung = true);
    }

    fn close(&self) {
        self.worker.inbox.close();
        self.worker.ring(|bell| bell.is_rung = true);
    }

    fn crash(&self) {
        self.worker.inbox.close();
        self.worker.ring(|bell| bell.is_crashed = true);
    }

    fn closed(&self) -> ValueReceiver<()> {
        self.worker.inbox.ended()
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }
}

impl SimWorker {
    fn ring(&self, change: impl FnOnce(&mut SimBell)) {
        let waker = {
            let mut bell = lock(&self.bell);
            change(&mut bell);
            bell.waker.take()
        };
        waker.inspect(Waker::wake_by_ref);
    }

    /// Waits until the condition holds, which may take what it finds.
    async fn wait<T>(&self, holds: impl Fn(&mut SimBell) -> Option<T>) -> T {
        poll_fn(|cx| {
            let mut bell = lock(&self.bell);
            if let Some(found) = holds(&mut bell) {
                return Poll::Ready(found);
            }
            bell.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    fn now(&self) -> i64 {
        let elapsed = lock(&self.file.0).start.elapsed();
        START + elapsed.as_millis() as i64
    }

    /// Sleeps. Returns early, and true, if the store crashes.
    async fn pause(&self, time: Duration) -> bool {
        let crash = self.wait(|bell| bell.is_crashed.then_some(true));
        or(crash, async {
            sleep(time).await;
            false
        })
        .await
    }

    /// Runs the task of the engine until the store is closed.
    async fn work(self: Arc<Self>, limits: Limits) {
        let mut rounds = Rounds::new(limits);
        loop {
            let due = rounds
                .next_due()
                .map(|due| (due - self.now()).max(0) as u64);
            let bell = self.wait(|bell| {
                let is_changed = std::mem::take(&mut bell.is_changed);
                let is_rung = std::mem::take(&mut bell.is_rung);
                (is_rung || is_changed || bell.is_crashed).then_some(is_changed)
            });
            let is_changed = match due {
                Some(due) => {
                    let due = async {
                        sleep(Duration::from_millis(due)).await;
                        false
                    };
                    or(bell, due).await
                }
                None => bell.await,
            };
            let takes = draw_within(&lock(&self.file.0).delay);
            if self.pause(takes).await {
                break;
            }
            let (entries, is_closed) = self.inbox.take();
            self.round(&mut rounds, entries, is_changed);
            if is_closed {
                rounds.close();
                break;
            }
        }
        // After a crash, nothing is answered: the senders are dropped.
        drop(self.inbox.take());
        drop(rounds);
        self.inbox.end();
    }

    fn round(&self, rounds: &mut Rounds, mut entries: Vec<Entry>, is_changed: bool) {
        // Some come while the others run.
        let late = sim::random() as usize % (entries.len() + 1);
        let late = entries.split_off(entries.len() - late);
        let mut has_stored = false;
        {
            let state = lock(&self.file.0);
            let mut round = SimRound {
                state: &state,
                now: START + state.start.elapsed().as_millis() as i64,
                late,
                before: state.connection.total_changes(),
                has_stored: &mut has_stored,
            };
            let db = Db::new(&state.connection);
            rounds.round(&db, &mut round, entries, is_changed);
            while !round.late.is_empty() {
                let entries = std::mem::take(&mut round.late);
                rounds.round(&db, &mut round, entries, false);
            }
        }
        if has_stored {
            self.notify_others();
        }
    }

    /// Notifies the other stores of the file, as the system does.
    fn notify_others(&self) {
        let mut engines = Vec::new();
        lock(&self.file.0).engines.retain(|engine| {
            let engine = engine.upgrade();
            let is_there = engine.is_some();
            engines.extend(engine);
            is_there
        });
        for engine in engines {
            if !std::ptr::eq(&*engine, self) {
                engine.ring(|bell| bell.is_changed = true);
            }
        }
    }
}

/// A round of a simulated engine.
struct SimRound<'a> {
    state: &'a FileState,
    now: i64,
    late: Vec<Entry>,
    /// The changes of the database before the transaction.
    before: u64,
    has_stored: &'a mut bool,
}

impl RoundEngine for SimRound<'_> {
    fn now(&self) -> i64 {
        self.now
    }

    fn take_late(&mut self, most: usize) -> Vec<Entry> {
        let some = sim::random() as usize % 4;
        let some = some.max(1).min(most).min(self.late.len());
        self.late.drain(..some).collect()
    }

    /// Commits, or fails with or without a commit.
    fn commit(&mut self, db: &Db<'_>) -> Result<(), StoreProblem> {
        let changes = self.state.connection.total_changes();
        let is_change = std::mem::replace(&mut self.before, changes) != changes;
        if !is_change {
            return rounds::commit(db);
        }
        let lot = (sim::random() % 1_000_000) as f64 / 1e6;
        if lot < self.state.fails {
            return Err(StoreProblem::Failed("a simulated failure".into()));
        }
        let is_unknown = lot < self.state.fails + self.state.unknown;
        if !is_unknown || sim::random().is_multiple_of(2) {
            *self.has_stored = true;
            rounds::commit(db)?;
        }
        match is_unknown {
            true => Err(StoreProblem::Unknown("a simulated failure".into())),
            false => Ok(()),
        }
    }
}

/// Draws a duration of this range.
fn draw_within(range: &Range<Duration>) -> Duration {
    let span = range.end.saturating_sub(range.start).as_nanos() as u64;
    let extra = Duration::from_nanos(sim::random() % span.max(1));
    range.start.saturating_add(extra)
}

//! `Store`: an open store, and how it is opened.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::dead::DeadJob;
use crate::engine::EngineHandle;
use crate::engine::sim_file::SimFile;
use crate::engine::sqlite;
use crate::engine::sqlite::file::{FileOptions, WAL_PAGES};
use crate::error::{StoreError, StoreOpenError};
use crate::journal::{JournalBuilder, JournalState};
use crate::lease::LeaseBuilder;
use crate::limits::Limits;
use crate::queue::QueueBuilder;
use crate::records::check::CheckReport;
use crate::records::command::{Command, StoreAnswer};
use crate::status::QueueStatus;
use crate::stored::Stored;

/// An open store: a SQLite file with queues, journals and leases.
///
/// A clone is the same store. It closes when its last clone is dropped, and all that was made of it.
/// Several processes may open one file, and so may one process several times.
///
/// ```
/// use greenroom_durable::Store;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let file = folder.path().join("shop.db");
/// greenroom::run(async {
///     let store = Store::sqlite(file).open().await?;
///     assert_eq!(store.statuses().await.unwrap().len(), 0);
///     store.close().await;
///     Ok::<(), greenroom_durable::StoreOpenError>(())
/// }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Store {
    engine: EngineHandle,
}

impl Store {
    /// Begins to open a SQLite file, which is created if there is none.
    ///
    /// Only its owner may read and write a new file. One on a network file system is refused. A
    /// [simulation](greenroom::sim) does not wait for a file: use [`simulated`](Store::simulated) there.
    pub fn sqlite(path: impl AsRef<Path>) -> StoreBuilder {
        StoreBuilder::new(StoreSource::File(path.as_ref().to_owned()))
    }

    /// Begins to open a simulated file, in a [simulation](greenroom::sim).
    pub fn simulated(file: &SimFile) -> StoreBuilder {
        StoreBuilder::new(StoreSource::Simulated(file.clone()))
    }

    /// Begins to open a queue, which is created if there is none.
    pub fn queue<J: Stored>(&self, name: &str) -> QueueBuilder<J> {
        QueueBuilder::new(self.engine.clone(), name)
    }

    /// Begins to open the journal of a key, which has no events if there is none.
    pub fn journal<S: JournalState>(&self, name: &str, key: &str) -> JournalBuilder<S> {
        JournalBuilder::new(self.engine.clone(), name, key)
    }

    /// Begins to take the lease of this name.
    pub fn lease(&self, name: &str) -> LeaseBuilder {
        LeaseBuilder::new(self.engine.clone(), name)
    }

    /// Checks a SQLite file: its pages, the sum of each row, the chains of events and the counts of queues.
    /// It may be in use, by this process as well. It takes as long as to read all of it. SQLite needs the
    /// other files beside it: in a folder that cannot be written, check a copy of a file that is not open.
    ///
    /// # Errors
    /// A [`StoreOpenError`] if the file cannot be read. What is damaged in it is in the report.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    ///
    /// ```
    /// use greenroom_durable::Store;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let file = folder.path().join("shop.db");
    /// # greenroom::run(async {
    /// # Store::sqlite(&file).open().await?.close().await;
    /// let report = Store::check(&file).await?;
    /// assert!(report.damages.is_empty());
    /// # Ok::<(), greenroom_durable::StoreOpenError>(())
    /// # }).unwrap();
    /// ```
    pub async fn check(path: impl AsRef<Path>) -> Result<CheckReport, StoreOpenError> {
        let path = path.as_ref().to_owned();
        let checked = sqlite::check(path.clone()).await;
        checked.map_err(|why| StoreOpenError { path, why })
    }

    /// Returns the status of each queue, by its name. It waits for what was asked before.
    ///
    /// # Errors
    /// A [`StoreError`] with the reason.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    pub async fn statuses(&self) -> Result<Vec<QueueStatus>, StoreError> {
        let answer = self.call("", Command::Statuses { name: None }).await?;
        Ok(QueueStatus::all(answer))
    }

    /// Returns dead letters of a queue with numbers above `after`, in their order, and at most so many.
    /// Numbers begin with 1.
    ///
    /// # Errors
    /// [`Missing`](crate::StoreProblem::Missing) if there is no such queue, and any other problem of the store.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    pub async fn dead_jobs(
        &self,
        queue: &str,
        after: i64,
        most: usize,
    ) -> Result<Vec<DeadJob>, StoreError> {
        let name = queue.to_owned();
        match self
            .call(queue, Command::DeadJobs { name, after, most })
            .await?
        {
            StoreAnswer::DeadJobs(found) => Ok(found.into_iter().map(DeadJob::new).collect()),
            _ => Ok(Vec::new()),
        }
    }

    /// Puts a dead letter again, with all of its attempts. Its key, id and number stay.
    ///
    /// # Errors
    /// [`Missing`](crate::StoreProblem::Missing) if there is no such dead letter, and any other problem of the store.
    ///
    /// # Cancel safety
    /// It is done also if the future is dropped after its first poll.
    pub async fn requeue(&self, queue: &str, number: i64) -> Result<(), StoreError> {
        let (name, seq) = (queue.to_owned(), number);
        self.call(queue, Command::Requeue { name, seq }).await?;
        Ok(())
    }

    /// Removes a dead letter. Its id may be put again.
    ///
    /// # Errors
    /// [`Missing`](crate::StoreProblem::Missing) if there is no such dead letter, and any other problem of the store.
    ///
    /// # Cancel safety
    /// It is done also if the future is dropped after its first poll.
    pub async fn discard(&self, queue: &str, number: i64) -> Result<(), StoreError> {
        let (name, seq) = (queue.to_owned(), number);
        self.call(queue, Command::Discard { name, seq }).await?;
        Ok(())
    }

    async fn call(&self, name: &str, command: Command) -> Result<StoreAnswer, StoreError> {
        let answer = self.engine.call(command).await;
        answer.map_err(|why| StoreError::new(name, why))
    }

    /// Closes the store, and waits until what was asked before is stored and the file is closed.
    ///
    /// What waits, such as a worker of a queue, ends with [`Closed`](crate::StoreProblem::Closed).
    ///
    /// # Cancel safety
    /// It closes also if the future is dropped after its first poll.
    pub async fn close(&self) {
        self.engine.close().await;
    }

    pub(crate) fn new(engine: EngineHandle) -> Self {
        Store { engine }
    }

    pub(crate) fn handle(&self) -> &EngineHandle {
        &self.engine
    }
}

#[derive(Debug)]
enum StoreSource {
    File(PathBuf),
    Simulated(SimFile),
}

/// How a [`Store`] is opened.
#[derive(Debug)]
#[must_use = "a store is opened by `open`"]
pub struct StoreBuilder {
    source: StoreSource,
    limits: Limits,
    busy_limit: Duration,
}

impl StoreBuilder {
    fn new(source: StoreSource) -> Self {
        StoreBuilder {
            source,
            limits: Limits::default(),
            busy_limit: Duration::from_secs(5),
        }
    }

    /// Sets what the store takes at most.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how long a change waits while another process writes, by default 5 s. After that it ends
    /// with [`Busy`](crate::StoreProblem::Busy). All other operations of this store wait meanwhile.
    pub fn busy_limit(mut self, limit: Duration) -> Self {
        self.busy_limit = limit;
        self
    }

    /// Opens the store, and starts its thread. A file of an older version is brought up to date.
    ///
    /// # Errors
    /// A [`StoreOpenError`] with the file and the reason.
    ///
    /// # Cancel safety
    /// If the future is dropped, the store is closed. The file may have been created.
    pub async fn open(self) -> Result<Store, StoreOpenError> {
        let engine = match self.source {
            StoreSource::Simulated(file) => file.open(self.limits),
            StoreSource::File(path) => {
                let options = FileOptions {
                    path: path.clone(),
                    busy_limit: self.busy_limit,
                    synchronous: "FULL",
                    wal_pages: WAL_PAGES,
                    vfs: None,
                };
                let opened = sqlite::open(options, self.limits).await;
                opened.map_err(|why| StoreOpenError { path, why })?
            }
        };
        Ok(Store::new(engine))
    }
}

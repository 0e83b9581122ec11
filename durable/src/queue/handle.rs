//! `Queue`: an open queue.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use super::job::{Job, PutError};
use super::serve::{QueueWorkers, Serve};
use super::taken::TakenJob;
use crate::engine::EngineHandle;
use crate::error::{StoreError, StoreProblem, millis};
use crate::records::command::{Command, NewJob, RawOutcome, StoreAnswer, WINDOW};
use crate::status::QueueStatus;
use crate::stored::{Stored, encode, within};

/// How a [`Queue`] is opened.
#[must_use = "a queue is opened by `open`"]
pub struct QueueBuilder<J> {
    engine: EngineHandle,
    name: String,
    window: i64,
    jobs: PhantomData<fn() -> J>,
}

impl<J: Stored> QueueBuilder<J> {
    pub(crate) fn new(engine: EngineHandle, name: &str) -> Self {
        QueueBuilder {
            engine,
            name: name.to_owned(),
            window: WINDOW,
            jobs: PhantomData,
        }
    }

    /// Sets how long the id and the outcome of a job are kept after its end, by default a day. It
    /// holds for the jobs that workers of this handle finish.
    pub fn window(mut self, window: Duration) -> Self {
        self.window = millis(window);
        self
    }

    /// Opens the queue, and creates it if there is none.
    ///
    /// # Errors
    /// [`StoreProblem::TooLarge`] for the name, [`StoreProblem::TooMany`] for queues, and any other
    /// problem of the store.
    ///
    /// # Cancel safety
    /// If the future is dropped, the queue may have been created.
    pub async fn open(self) -> Result<Queue<J>, StoreError> {
        let name = self.name.clone();
        let error = |why| StoreError::new(&self.name, why);
        within("name", name.len(), self.engine.limits().name).map_err(error)?;
        let kind = J::KIND;
        within("kind", kind.len(), self.engine.limits().name).map_err(error)?;
        match self.engine.call(Command::OpenQueue { name, kind }).await {
            Ok(StoreAnswer::Queue { queue, kind }) => Ok(Queue {
                engine: self.engine,
                name: self.name,
                queue,
                kind,
                window: self.window,
                jobs: PhantomData,
            }),
            Ok(_) => Err(error(StoreProblem::Missing)),
            Err(why) => Err(error(why)),
        }
    }
}

impl<J> fmt::Debug for QueueBuilder<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueBuilder")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// An open queue of jobs with this payload. A clone is the same queue.
///
/// Each job is done at least once: it is stored when [`put`](Queue::put) returns, and done when the `Ok`
/// of its handler is stored. If a process dies in between, the job runs again when its lease is over. So a
/// handler has to be idempotent: what it does twice has to be as if it were done once.
///
/// ```
/// use greenroom_durable::{Job, Serve, SimFile, Store, Stored};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Resize {
///     file: String,
/// }
///
/// impl Stored for Resize {
///     const KIND: &'static str = "resize/1";
/// }
///
/// # async fn program(store: Store) -> Result<(), Box<dyn std::error::Error>> {
/// let queue = store.queue::<Resize>("resize").open().await?;
/// let workers = queue.serve(Serve::workers(8), |job| async move {
///     println!("{} for {:?}", job.file, job.key());
///     Ok::<(), std::io::Error>(()) // an error is tried again
/// }).await?;
/// queue.put(Job::new(Resize { file: "a.png".into() }).id("upload-17").key("alice")).await?;
/// queue.outcome("upload-17").await?;
/// workers.stop().await;
/// # Ok(())
/// # }
/// # greenroom::sim::run(7, async {
/// #     program(Store::simulated(&SimFile::new()).open().await.unwrap()).await.unwrap();
/// # });
/// ```
pub struct Queue<J> {
    pub(super) engine: EngineHandle,
    pub(super) name: String,
    pub(super) queue: i64,
    kind: i64,
    /// How long outcomes are kept, in milliseconds.
    pub(super) window: i64,
    jobs: PhantomData<fn() -> J>,
}

impl<J> Clone for Queue<J> {
    fn clone(&self) -> Self {
        Queue {
            engine: self.engine.clone(),
            name: self.name.clone(),
            jobs: PhantomData,
            ..*self
        }
    }
}

impl<J: Stored> Queue<J> {
    /// Puts a job. It is stored, and survives a crash of the machine, when this returns. Returns
    /// whether it is new: with `false`, a job of its id is there already.
    ///
    /// Callers that wait at the same time share a sync of the disk.
    ///
    /// # Errors
    /// A [`PutError`] with the job and the reason.
    ///
    /// # Cancel safety
    /// If the future is dropped after its first poll, the job may be stored.
    pub async fn put(&self, job: Job<J>) -> Result<bool, PutError<J>> {
        let new = match self.encoded(&job) {
            Ok(new) => new,
            Err(why) => return Err(PutError { job, why }),
        };
        match self.engine.call(Command::Put(new)).await {
            Ok(StoreAnswer::Put { is_new }) => Ok(is_new),
            Ok(_) => Ok(false),
            Err(why) => Err(PutError { job, why }),
        }
    }

    fn encoded(&self, job: &Job<J>) -> Result<NewJob, StoreProblem> {
        let limits = self.engine.limits();
        for (what, text) in [("id", &job.id), ("key", &job.key)] {
            within(what, text.as_ref().map_or(0, String::len), limits.key)?;
        }
        Ok(NewJob {
            queue: self.queue,
            kind: self.kind,
            id: job.id.clone(),
            key: job.key.clone(),
            priority: job.priority,
            delay: millis(job.delay),
            payload: encode(&job.payload, limits)?,
        })
    }

    /// Starts workers on the current runtime: each is an actor that takes a job, runs the handler and
    /// stores what has become of the job.
    ///
    /// A job whose handler returns an error or panics is tried again after an interval. After the last
    /// one it is a dead letter. So is a job whose payload is not understood. Handlers that block are for
    /// [`serve_blocking`](Queue::serve_blocking).
    ///
    /// # Errors
    /// A [`StoreError`] if the store is closed.
    ///
    /// # Panics
    /// If no runtime is current.
    ///
    /// # Cancel safety
    /// If the future is dropped, no worker was started.
    pub async fn serve<F, Fut, E>(
        &self,
        serve: Serve,
        handler: F,
    ) -> Result<QueueWorkers, StoreError>
    where
        F: Fn(TakenJob<J>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        self.status().await?;
        Ok(QueueWorkers::start(self, serve, handler))
    }

    /// Cancels the job of this id. One that waits or is a dead letter never runs, and one that runs is asked
    /// to [end](TakenJob::cancelled). Its outcome is [`Cancelled`](FinalOutcome::Cancelled), unless its
    /// handler returns `Ok`.
    ///
    /// # Errors
    /// [`StoreProblem::Missing`] if there is none, or it has ended, and any other problem of the store.
    ///
    /// # Cancel safety
    /// It is done also if the future is dropped after its first poll.
    pub async fn cancel(&self, id: &str) -> Result<(), StoreError> {
        let (queue, id) = (self.queue, id.to_owned());
        self.call(Command::Cancel { queue, id }).await?;
        Ok(())
    }

    /// Waits until the job of this id has ended, and returns its outcome. That is known until the
    /// [window](QueueBuilder::window) is over.
    ///
    /// # Errors
    /// [`StoreProblem::Missing`] if there is no such job, and any other problem of the store.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    pub async fn outcome(&self, id: &str) -> Result<FinalOutcome, StoreError> {
        let (queue, id) = (self.queue, id.to_owned());
        match self.call(Command::Outcome { queue, id }).await? {
            StoreAnswer::Outcome(RawOutcome::Done) => Ok(FinalOutcome::Done),
            StoreAnswer::Outcome(RawOutcome::Dead(reason)) => Ok(FinalOutcome::Dead { reason }),
            _ => Ok(FinalOutcome::Cancelled),
        }
    }

    /// Pauses the queue in all processes: no job is taken until it is [resumed](Queue::resume). Jobs
    /// can still be put, and those that run go on. The queue stays paused if all processes end.
    ///
    /// # Errors
    /// A [`StoreError`] with the reason.
    ///
    /// # Cancel safety
    /// It is done also if the future is dropped after its first poll.
    pub async fn pause(&self) -> Result<(), StoreError> {
        self.set_paused(true).await
    }

    /// Ends a pause.
    ///
    /// # Errors
    /// A [`StoreError`] with the reason.
    ///
    /// # Cancel safety
    /// It is done also if the future is dropped after its first poll.
    pub async fn resume(&self) -> Result<(), StoreError> {
        self.set_paused(false).await
    }

    async fn set_paused(&self, is_paused: bool) -> Result<(), StoreError> {
        let queue = self.queue;
        self.call(Command::Pause { queue, is_paused }).await?;
        Ok(())
    }

    /// Waits until no job waits or runs. Dead letters do not count.
    ///
    /// # Errors
    /// A [`StoreError`] with the reason.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    pub async fn drain(&self) -> Result<(), StoreError> {
        let queue = self.queue;
        self.call(Command::Drain { queue }).await?;
        Ok(())
    }

    /// Returns how the queue fares.
    ///
    /// # Errors
    /// A [`StoreError`] with the reason.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    pub async fn status(&self) -> Result<QueueStatus, StoreError> {
        let name = Some(self.name.clone());
        let answer = self.call(Command::Statuses { name }).await?;
        let status = QueueStatus::all(answer).pop();
        status.ok_or_else(|| StoreError::new(&self.name, StoreProblem::Missing))
    }

    async fn call(&self, command: Command) -> Result<StoreAnswer, StoreError> {
        let answer = self.engine.call(command).await;
        answer.map_err(|why| StoreError::new(&self.name, why))
    }
}

impl<J> fmt::Debug for Queue<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// What has become of a job in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinalOutcome {
    /// Its handler has returned `Ok`.
    Done,
    /// It was cancelled.
    Cancelled,
    /// It is a dead letter. It may be put again, and have another outcome later.
    Dead {
        /// Why its last attempt has failed.
        reason: String,
    },
}

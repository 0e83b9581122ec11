//! `TakenJob`: a job in the hands of a worker.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::worker::Holding;
use crate::error::{StoreError, StoreProblem};
use crate::fence::Fence;
use crate::records::command::{Command, RawFence, RawJob};
use crate::stored::encode;

/// A job in the hands of a worker, which its handler receives. It is also its payload.
///
/// The worker has it for the time of a [lease](crate::Serve::lease). After that another worker may have
/// it, and what this one does with it is refused with [`StoreProblem::Stale`].
///
/// A handler that was cancelled has the job until this is dropped. So move it into what goes on alone, such
/// as a closure that [blocks](crate::Queue::serve_blocking).
pub struct TakenJob<J> {
    payload: J,
    holding: Arc<Holding>,
    raw: RawJob,
    /// In milliseconds.
    lease: i64,
}

impl<J> TakenJob<J> {
    pub(super) fn new(payload: J, holding: Arc<Holding>, raw: RawJob, lease: i64) -> Self {
        TakenJob {
            payload,
            holding,
            raw,
            lease,
        }
    }

    /// Returns the id, if it has one.
    pub fn id(&self) -> Option<&str> {
        self.raw.id.as_deref()
    }

    /// Returns the key, if it has one.
    pub fn key(&self) -> Option<&str> {
        self.raw.key.as_deref()
    }

    /// Returns the number of the attempt, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.raw.attempt
    }

    /// Returns the number of the job in its store.
    pub fn number(&self) -> i64 {
        self.raw.seq
    }

    /// Returns the token, which is greater than all that the store has given away before. What is
    /// outside of the store can refuse a smaller one.
    pub fn token(&self) -> i64 {
        self.raw.token
    }

    /// Returns what fences changes in this store: they are refused once another worker has the job.
    pub fn fence(&self) -> Fence {
        let (seq, token) = (self.raw.seq, self.raw.token);
        Fence(RawFence::Job { seq, token })
    }

    /// Renews the lease for its full time, from when this is stored.
    ///
    /// # Errors
    /// [`StoreProblem::Stale`] if another worker may have the job by now, and any other problem of the
    /// store.
    ///
    /// # Cancel safety
    /// It is done also if the future is dropped after its first poll.
    pub async fn renew(&self) -> Result<(), StoreError> {
        let (seq, token, lease) = (self.raw.seq, self.raw.token, self.lease);
        self.call(Command::RenewJob { seq, token, lease }).await
    }

    /// Stores how far the job has come, encoded as JSON, for the next attempt.
    ///
    /// # Errors
    /// [`StoreProblem::Stale`] if another worker may have the job by now,
    /// [`Unencodable`](StoreProblem::Unencodable), [`TooLarge`](StoreProblem::TooLarge), and any other
    /// problem of the store.
    ///
    /// # Cancel safety
    /// It is done also if the future is dropped after its first poll.
    pub async fn progress(&self, progress: &impl Serialize) -> Result<(), StoreError> {
        let encoded = encode(progress, self.holding.engine.limits());
        let progress = encoded.map_err(|why| self.error(why))?;
        let (seq, token) = (self.raw.seq, self.raw.token);
        self.call(Command::Progress {
            seq,
            token,
            progress,
        })
        .await
    }

    /// Returns how far earlier attempts have come, if they have stored it.
    ///
    /// # Errors
    /// [`StoreProblem::Undecodable`] with the reason.
    pub fn last_progress<P: DeserializeOwned>(&self) -> Result<Option<P>, StoreError> {
        let decode = |bytes: &Vec<u8>| serde_json::from_slice(bytes);
        let progress = self.raw.progress.as_ref().map(decode).transpose();
        progress.map_err(|error| self.error(StoreProblem::Undecodable(error.to_string())))
    }

    /// Waits until the job is to end early: it was [cancelled](crate::Queue::cancel), or its lease is
    /// over and another worker has it. It never returns otherwise, also if the store closes.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    pub async fn cancelled(&self) {
        self.early_end().await;
    }

    /// Returns [`cancelled`](TakenJob::cancelled) as a future that does not have the job.
    pub(super) fn early_end(&self) -> impl Future<Output = ()> + Send + use<J> {
        let engine = self.holding.engine.clone();
        let (seq, token) = (self.raw.seq, self.raw.token);
        async move {
            match engine.call(Command::WatchCancel { seq, token }).await {
                Ok(_) | Err(StoreProblem::Stale) => {}
                Err(_) => std::future::pending().await,
            }
        }
    }

    async fn call(&self, command: Command) -> Result<(), StoreError> {
        let answer = self.holding.engine.call(command).await;
        answer.map(drop).map_err(|why| self.error(why))
    }

    fn error(&self, why: StoreProblem) -> StoreError {
        StoreError::new(&format!("job {}", self.raw.seq), why)
    }
}

impl<J> Deref for TakenJob<J> {
    type Target = J;

    fn deref(&self) -> &J {
        &self.payload
    }
}

impl<J> fmt::Debug for TakenJob<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TakenJob")
            .field("number", &self.raw.seq)
            .field("token", &self.raw.token)
            .field("id", &self.raw.id)
            .field("key", &self.raw.key)
            .field("attempt", &self.raw.attempt)
            .finish_non_exhaustive()
    }
}

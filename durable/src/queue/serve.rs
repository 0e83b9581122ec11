//! `Serve`: how a queue is served, and `QueueWorkers`, who serve it.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use greenroom::time::RetryIntervals;
use greenroom::{Handle, spawn};

use super::handle::Queue;
use super::taken::TakenJob;
use super::worker::{WorkerParts, work};
use crate::error::millis;
use crate::stored::Stored;

/// The attempts beyond which a number of retries counts as unlimited.
const MANY: usize = 1000;

/// How a queue is [served](crate::Queue::serve).
///
/// ```
/// use greenroom::time::RetryIntervals;
/// use greenroom_durable::Serve;
/// use std::time::Duration;
///
/// let secs = Duration::from_secs;
/// let retries = RetryIntervals::exponential(secs(1), secs(60)).with_step_limit(4)?;
/// let serve = Serve::workers(8).retries(retries).lease(secs(60));
/// # drop(serve);
/// # Ok::<(), greenroom::time::IntervalsError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "it does nothing until a queue is served"]
pub struct Serve {
    workers: usize,
    pub(super) retries: Option<RetryIntervals>,
    pub(super) lease: Duration,
    pub(super) skips_failed: bool,
}

impl Serve {
    /// Begins with this many workers; 0 counts as 1.
    ///
    /// A job is tried ten times, with intervals that double from 1 s to 10 min. Its lease is 60 s.
    pub fn workers(workers: usize) -> Self {
        let intervals = |most| RetryIntervals::exponential(Duration::from_secs(1), most);
        let retries = intervals(Duration::from_secs(600));
        Serve {
            workers: workers.max(1),
            retries: retries.with_step_limit(9).ok(),
            lease: Duration::from_secs(60),
            skips_failed: false,
        }
    }

    /// Sets the intervals between the attempts of a job. After the last one it is a dead letter. With
    /// `None` that is after the first attempt.
    pub fn retries(mut self, retries: impl Into<Option<RetryIntervals>>) -> Self {
        self.retries = retries.into();
        self
    }

    /// Sets how long a worker may have a job without [renewing](TakenJob::renew) it, at least 10 ms. After
    /// that the job goes back, and counts as tried.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease.max(Duration::from_millis(10));
        self
    }

    /// Lets the other jobs of a key pass one that waits for its retry. Otherwise they wait for it.
    pub fn skip_failed(mut self) -> Self {
        self.skips_failed = true;
        self
    }

    /// Returns how often a job is tried, if there is a limit.
    pub(super) fn attempts(&self) -> Option<i64> {
        let retries = self.retries.iter().flat_map(RetryIntervals::iter);
        let retries = retries.take(MANY).count();
        (retries < MANY).then_some(retries as i64 + 1)
    }
}

/// The workers of a queue. They stop when this is dropped.
#[must_use = "the workers stop when this is dropped"]
pub struct QueueWorkers {
    workers: Vec<Handle<Infallible, ()>>,
}

impl QueueWorkers {
    pub(super) fn start<J, F, Fut, E>(queue: &Queue<J>, serve: Serve, handler: F) -> Self
    where
        J: Stored,
        F: Fn(TakenJob<J>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        let count = serve.workers;
        let parts = Arc::new(WorkerParts {
            engine: queue.engine.clone(),
            queue: queue.queue,
            lease: millis(serve.lease),
            window: queue.window,
            attempts: serve.attempts(),
            serve,
            handler,
        });
        let workers = (0..count).map(|_| {
            let parts = parts.clone();
            spawn!(work(_, parts), name = "queue worker")
        });
        QueueWorkers {
            workers: workers.collect(),
        }
    }

    /// Stops the workers, and waits until each has finished the job in its hands.
    ///
    /// # Cancel safety
    /// The workers stop also if the future is dropped.
    pub async fn stop(self) {
        for worker in &self.workers {
            worker.stop();
        }
        for worker in self.workers {
            // A worker that was killed has given its job back.
            let _ = worker.join().await;
        }
    }
}

impl fmt::Debug for QueueWorkers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueWorkers")
            .field("workers", &self.workers.len())
            .finish()
    }
}

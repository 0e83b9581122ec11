//! The options of a market.

use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::hash::Hash;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use futures_core::Stream;

use super::core::{MarketCore, MarketLimits};
use super::handle::{EndOf, Market};
use super::serving::{StopOnDrop, hire};
use crate::actor::{ActorBuilder, Address, Context};
use crate::error::BuildError;
use crate::runtime::{Runtime, max_blocking_workers};
use crate::timers::TimerThread;

/// The options of a [`Market`].
#[must_use = "a builder does nothing until `build`"]
pub struct MarketBuilder<K> {
    runtime: Option<Runtime>,
    max_workers: Option<usize>,
    capacity: usize,
    capacity_per_key: usize,
    idle: Duration,
    keys: PhantomData<fn() -> K>,
}

/// The default number of workers.
const WORKERS: usize = 64;

impl<K: Hash + Eq + Clone + Send + 'static> Market<K> {
    /// Creates the options of a market.
    pub fn builder() -> MarketBuilder<K> {
        MarketBuilder::new()
    }
}

impl<K> MarketBuilder<K> {
    fn new() -> Self {
        MarketBuilder {
            runtime: None,
            max_workers: None,
            capacity: WORKERS * WORKERS,
            capacity_per_key: 0,
            idle: Duration::ZERO,
            keys: PhantomData,
        }
    }

    /// Sets the runtime whose blocking threads run the jobs, by default the current one.
    ///
    /// Without any, the jobs run on the threads that [`unblock`](crate::unblock()) uses outside a
    /// runtime.
    pub fn on(mut self, runtime: &Runtime) -> Self {
        self.runtime = Some(runtime.clone());
        self
    }

    /// Sets how many jobs may run at the same time, at least 1 and at most
    /// [`max_blocking_workers`](crate::Builder::max_blocking_workers). The default is 64, or less
    /// if there are fewer threads.
    #[doc(alias = "Max_Workers")]
    pub fn max_workers(mut self, workers: usize) -> Self {
        self.max_workers = Some(workers);
        self
    }

    /// Sets how many jobs may wait on the board, at least 1. The default is 4096.
    #[doc(alias = "Max_Jobs")]
    pub fn capacity(mut self, jobs: usize) -> Self {
        self.capacity = jobs;
        self
    }

    /// Sets how many jobs of one key may wait, beside the one that runs or would run next. The
    /// default is 0.
    pub fn capacity_per_key(mut self, jobs: usize) -> Self {
        self.capacity_per_key = jobs;
        self
    }

    /// Sets how long a worker without a job waits for one before it gives its thread back. The
    /// default is zero.
    ///
    /// A worker that waits keeps its thread from [`unblock`](crate::unblock()) and from other
    /// markets, which matters if all [`max_blocking_workers`](crate::Builder::max_blocking_workers)
    /// are taken.
    #[doc(alias = "Max_Idle_W")]
    pub fn idle(mut self, time: Duration) -> Self {
        self.idle = time;
        self
    }
}

impl<K: Hash + Eq + Clone + Send + 'static> MarketBuilder<K> {
    /// Builds the market. It has no worker until a job is offered.
    ///
    /// # Errors
    /// [`BuildError::Impossible`] if an option is out of range, or if the runtime is over. Without
    /// any runtime, also if the system does not start the process's timer thread.
    #[track_caller]
    pub fn build(self) -> Result<Market<K>, BuildError> {
        let impossible = |option, reason| BuildError::Impossible { option, reason };
        let runtime = self.runtime.or_else(Runtime::try_current);
        let inner = runtime.as_ref().map(|runtime| runtime.inner().clone());
        let threads = max_blocking_workers(inner.as_ref());
        let workers = self.max_workers.unwrap_or(WORKERS.min(threads));
        if !(1..=threads).contains(&workers) {
            let reason = format!("is {workers}, but must be from 1 to {threads}");
            return Err(impossible("max_workers", reason));
        }
        if self.capacity == 0 {
            let reason = "is 0, but must be at least 1".into();
            return Err(impossible("capacity", reason));
        }
        let limits = MarketLimits {
            workers,
            jobs: self.capacity,
            idle: self.idle,
            capacity_per_key: self.capacity_per_key,
        };
        if runtime.is_none() {
            // When the market needs it, the system may start no thread.
            TimerThread::get().map_err(|error| {
                let reason = format!("is missing, and the timer thread does not start: {error}");
                impossible("runtime", reason)
            })?;
        }
        let core = MarketCore::new(limits, inner, hire);
        if let Some(runtime) = &runtime {
            let stops = StopOnDrop(Some(core.clone()));
            let stops = ActorBuilder::new(stops, guard).name("market");
            let spawned = stops.on(runtime).try_spawn();
            let spawned = spawned.map_err(|error| {
                impossible("runtime", format!("is of no use: {}", error.problem()))
            })?;
            spawned.detach();
        }
        Ok(Market::new(core))
    }
}

/// Keeps the guard that stops a market until the market has ended, or its runtime shuts down.
async fn guard<K: Send + 'static>(stops: StopOnDrop<K>, mut cx: Context<Infallible>) {
    // Without an address the mailbox would be closed.
    let _open: Address<Infallible> = cx.address();
    let Some(core) = &stops.0 else { return };
    let mut end = EndOf::new(core);
    poll_fn(|task| {
        let is_over = Pin::new(&mut end).poll(task).is_ready();
        match is_over || Pin::new(&mut cx).poll_next(task).is_ready() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}

impl<K> fmt::Debug for MarketBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MarketBuilder")
            .field("max_workers", &self.max_workers)
            .field("capacity", &self.capacity)
            .field("capacity_per_key", &self.capacity_per_key)
            .field("idle", &self.idle)
            .finish_non_exhaustive()
    }
}

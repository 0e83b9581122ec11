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

use super::board::BoardRules;
use super::core::MarketCore;
use super::handle::{EndOf, Market};
#[cfg(doc)]
use super::job::Job;
use super::serving::{StopOnDrop, hire};
use super::state::MarketLimits;
use crate::actor::{ActorBuilder, Address, Context};
use crate::contain::KeptWaker;
use crate::error::BuildError;
use crate::runtime::{Runtime, max_blocking_workers};
use crate::time::Alarm;
use crate::timers::TimerThread;

/// The options of a [`Market`].
#[must_use = "a builder does nothing until `build`"]
pub struct MarketBuilder<K> {
    runtime: Option<Runtime>,
    max_workers: Option<usize>,
    capacity: usize,
    rules: BoardRules,
    reserved: Option<(u32, usize)>,
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
            rules: BoardRules::plain(0),
            reserved: None,
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
        self.rules.capacity_per_key = jobs;
        self
    }

    /// Lets a job that waits gain one priority in each time of this length, by default none. So no
    /// job starves behind others of higher priorities that come again and again.
    ///
    /// Exactly: a job whose priority is lower by `d` goes before those that are due more than `d`
    /// times `step` later, and after the rest. The age of a job counts from when it was accepted
    /// or, if it is [delayed](Job::after), from when it was due. What a job has gained does not
    /// count for [`reserved`](MarketBuilder::reserved).
    ///
    /// ```
    /// use greenroom::market::{Job, Market};
    /// use std::time::Duration;
    ///
    /// greenroom::run(async {
    ///     // A job of priority 0 goes before those of priority 6 that come over a minute later.
    ///     let market = Market::<()>::builder().aging(Duration::from_secs(10)).build().unwrap();
    ///     let job = Job::new(|| 42).priority(6);
    ///     assert_eq!(market.offer(job).await.unwrap().await.unwrap(), 42);
    /// });
    /// ```
    pub fn aging(mut self, step: Duration) -> Self {
        self.rules.aging = Some(step);
        self
    }

    /// Reserves so many of the [workers](MarketBuilder::max_workers) for jobs of this priority and
    /// of higher ones, by default none. The others take any job. A second call replaces the first.
    ///
    /// So of the jobs below this priority at most `max_workers` less `workers` run at the same
    /// time. Jobs of this priority find a worker while those run for long. The priority is the
    /// one that the job was offered with. The jobs of a key still have their order, so an urgent
    /// one may wait for another of its key.
    ///
    /// ```
    /// use greenroom::market::{Job, Market};
    ///
    /// greenroom::run(async {
    ///     let market = Market::<()>::builder().max_workers(2).reserved(1, 1).build().unwrap();
    ///     let (open, opened) = std::sync::mpsc::channel::<()>();
    ///     let long = market.offer(Job::new(move || opened.recv())).await.unwrap();
    ///     let other = market.offer(Job::new(|| 1)).await.unwrap();
    ///     let urgent = market.offer(Job::new(|| 2).priority(1)).await.unwrap();
    ///     assert_eq!(urgent.await.unwrap(), 2);
    ///     assert!(!other.is_finished());
    ///     open.send(()).unwrap();
    ///     assert_eq!(other.await.unwrap(), 1);
    ///     assert!(long.await.unwrap().is_ok());
    /// });
    /// ```
    pub fn reserved(mut self, priority: u32, workers: usize) -> Self {
        self.reserved = Some((priority, workers));
        self
    }

    /// Lets at most so many jobs of each key begin in any time of the length `per`, by default any
    /// number. Jobs without a key have no limit.
    ///
    /// The window slides: a job begins when fewer than `starts` jobs of its key have begun within
    /// the last `per`. Until then it waits on the board, and jobs of other keys go before it. An
    /// attempt of a job that is [tried again](Job::retries) is a start too. The market keeps the
    /// moments of the starts, of each key at most `starts`, while they count.
    ///
    /// ```
    /// use greenroom::market::{Job, Market};
    /// use std::time::Duration;
    ///
    /// greenroom::run(async {
    ///     let market = Market::<&str>::builder().rate(2, Duration::from_millis(20));
    ///     let market = market.capacity_per_key(2).build().unwrap();
    ///     let mut calls = Vec::new();
    ///     for call in 0..3 {
    ///         calls.push(market.offer(Job::new(move || call).key("service")).await.unwrap());
    ///     }
    ///     for (number, call) in calls.into_iter().enumerate() {
    ///         assert_eq!(call.await.unwrap(), number); // the last one 20 ms after the first
    ///     }
    /// });
    /// ```
    #[doc(alias = "throttle")]
    pub fn rate(mut self, starts: usize, per: Duration) -> Self {
        self.rules.rate = Some((starts, per));
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
    /// [`BuildError::Impossible`] if an option is out of range, if no worker is left that is not
    /// [reserved](MarketBuilder::reserved), or if the runtime is over. Without
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
        let zero = |option, reason: &str| Err(impossible(option, reason.into()));
        if self.rules.aging.is_some_and(|step| step.is_zero()) {
            return zero("aging", "is 0 s, but must be longer");
        }
        match self.rules.rate {
            Some((0, _)) => return zero("rate", "is of 0 starts, but must be of at least 1"),
            Some((_, per)) if per.is_zero() => {
                return zero("rate", "is per 0 s, but must be longer");
            }
            _ => {}
        }
        let mut rules = self.rules;
        if let Some((priority, reserved)) = self.reserved.filter(|(_, workers)| *workers > 0) {
            if reserved >= workers {
                let reason = format!("is {reserved} workers, but must be fewer than {workers}");
                return Err(impossible("reserved", reason));
            }
            rules.reserved = Some((priority, workers - reserved));
        }
        let limits = MarketLimits {
            workers,
            jobs: self.capacity,
            idle: self.idle,
            rules,
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

/// Keeps the guard that stops a market until the market has ended, or its runtime shuts down. Lets
/// the moments of the market pass.
async fn guard<K: Send + 'static>(stops: StopOnDrop<K>, mut cx: Context<Infallible>) {
    // Without an address the mailbox would be closed.
    let _open: Address<Infallible> = cx.address();
    let Some(core) = &stops.0 else { return };
    let mut end = EndOf::new(core);
    let mut alarm = Alarm::default();
    poll_fn(|task| {
        let at = core.change(|state, after| state.set_alarm(KeptWaker::new(task.waker()), after));
        if alarm.poll(at, task).is_ready() {
            // The next change lets the moment pass.
            task.waker().wake_by_ref();
        }
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
            .field("capacity_per_key", &self.rules.capacity_per_key)
            .field("aging", &self.rules.aging)
            .field("rate", &self.rules.rate)
            .field("reserved", &self.reserved)
            .field("idle", &self.idle)
            .finish_non_exhaustive()
    }
}

//! The options of a spool. `spawn` checks all of them, then starts the spool.

use std::any::type_name;
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::time::Duration;

use super::handle::Spool;
use super::limits::{SpoolError, SpoolLimits, judge_workers};
use super::manager::{Factory, ObjectSpool};
use super::pool::{Affinity, Pool};
use crate::actor::{ActorBuilder, Handle, Reply};
use crate::error::{AskError, Refusal, SpawnProblem};
use crate::mailbox::Overflow;
use crate::runtime::{Runtime, context};
use crate::time::RetryIntervals;

/// The options of a [`Spool`].
#[must_use = "a builder does nothing until `spawn`"]
pub struct SpoolBuilder<Q, R> {
    factory: Option<Factory<Q, R>>,
    workers: usize,
    capacity: Option<usize>,
    responsiveness: Option<Duration>,
    busy_pass_rate: u32,
    stand_down: Option<Duration>,
    queue_timeout: Option<Duration>,
    overflow: Overflow,
    affinity: Option<Affinity<Q>>,
    retries: u32,
    copy: Option<fn(&Q) -> Q>,
    name: Option<String>,
}

const RESPONSIVENESS_MIN: Duration = Duration::from_millis(500);
const STAND_DOWN_MIN: Duration = Duration::from_millis(100);

impl<Q: Send + 'static, R: Send + 'static> Spool<Q, R> {
    /// Creates the options of a spool whose workers `worker` makes.
    ///
    /// `worker` is called with the number of the worker, from 0, when the spool starts and after
    /// each death. It runs in the runtime of [`SpoolBuilder::spawn`]. A panic of it counts as a
    /// death.
    pub fn builder<T: Send + 'static>(
        mut worker: impl FnMut(usize) -> Handle<(Q, Reply<R>), T> + Send + 'static,
    ) -> SpoolBuilder<Q, R> {
        SpoolBuilder::new(Some(Box::new(move |number| worker(number).address())))
    }

    /// Creates the options of a spool whose workers [join](Spool::join_worker) from outside.
    ///
    /// ```
    /// use greenroom::spool::Spool;
    /// use greenroom::{Context, Reply, spawn};
    ///
    /// async fn doubler(mut cx: Context<(u32, Reply<u32>)>) {
    ///     while let Some((number, reply)) = cx.recv().await {
    ///         reply.send(number * 2);
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let spool = Spool::external().spawn().unwrap();
    ///     assert!(spool.ask(21).await.is_err()); // temporarily unavailable
    ///     spool.join_worker(spawn!(doubler(_)).address());
    ///     assert_eq!(spool.ask(21).await, Ok(42));
    /// });
    /// ```
    pub fn external() -> SpoolBuilder<Q, R> {
        SpoolBuilder::new(None)
    }
}

impl<Q: Send + 'static, R: Send + 'static> SpoolBuilder<Q, R> {
    fn new(factory: Option<Factory<Q, R>>) -> Self {
        SpoolBuilder {
            factory,
            workers: 8,
            capacity: None,
            responsiveness: Some(Duration::from_secs(5)),
            busy_pass_rate: 10,
            stand_down: Some(Duration::from_secs(30)),
            queue_timeout: None,
            overflow: Overflow::Newest,
            affinity: None,
            retries: 0,
            copy: None,
            name: None,
        }
    }

    /// Sets the number of workers: from 1 to 1 048 576, by default 8. All are made at the start.
    #[doc(alias = "object_count")]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Sets how many requests may wait: at least 1. The default, `None`, sets no limit.
    #[doc(alias = "size_of_queue")]
    pub fn capacity(mut self, requests: impl Into<Option<usize>>) -> Self {
        self.capacity = requests.into();
        self
    }

    /// Sets the average response time from which the spool is busy: at least 0.5 s, by default 5 s.
    ///
    /// A worker that does not answer within five times this is given up: the client gets
    /// `TimedOut`, and the worker its next request. `None` switches both off.
    pub fn responsiveness(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.responsiveness = time.into();
        self
    }

    /// Sets how many requests come for each one that a busy spool lets pass: at least 1, by default
    /// 10, so one in ten passes.
    pub fn busy_pass_rate(mut self, requests: u32) -> Self {
        self.busy_pass_rate = requests;
        self
    }

    /// Sets the delay before a dead worker is replaced: at least 100 ms, by default 30 s.
    ///
    /// Each delay differs at random by up to a quarter. With `None` the death of a worker stops the
    /// spool.
    pub fn stand_down(mut self, delay: impl Into<Option<Duration>>) -> Self {
        self.stand_down = delay.into();
        self
    }

    /// Sets how long a request may wait in the queue; by default, without a limit. It is more than
    /// 0.
    ///
    /// A request that waits longer ends with `TimedOut`.
    pub fn queue_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.queue_timeout = limit.into();
        self
    }

    /// Sets which request a full queue refuses: the one that has just arrived, by default, or the
    /// one that has waited longest. [`Overflow::Wait`] is an error.
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// Gives requests of one key to one worker, in order.
    ///
    /// They wait for that worker while others are idle, and for its successor if it dies. A change
    /// of the number of workers gives keys to other workers. A key stays in order even then.
    ///
    /// `key` is called on the thread of the sender; a panic of it reaches the sender.
    ///
    /// ```
    /// use greenroom::spool::Spool;
    /// use greenroom::{Context, Reply, spawn};
    ///
    /// async fn worker(mut cx: Context<(String, Reply<usize>)>, number: usize) {
    ///     while let Some((_, reply)) = cx.recv().await {
    ///         reply.send(number);
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let spool = Spool::builder(|number| spawn!(worker(_, number)))
    ///         .affinity(|word: &String| word.clone())
    ///         .spawn()
    ///         .unwrap();
    ///     let first = spool.ask("oak".to_owned()).await;
    ///     assert_eq!(spool.ask("oak".to_owned()).await, first);
    /// });
    /// ```
    pub fn affinity<K: Hash>(mut self, key: impl Fn(&Q) -> K + Send + Sync + 'static) -> Self {
        let state = RandomState::new();
        self.affinity = Some(Box::new(move |question| state.hash_one(key(question))));
        self
    }

    /// Sets how often a request is tried again, with another worker, if its worker dies.
    ///
    /// By default its client gets the fault. A copy of the question is made before each try.
    pub fn retries(mut self, retries: u32) -> Self
    where
        Q: Clone,
    {
        self.retries = retries;
        self.copy = (retries > 0).then_some(Q::clone);
        self
    }

    /// Names the actor of the spool.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Starts the spool on the current runtime, with all of its workers.
    ///
    /// # Errors
    /// [`SpoolError`] if a parameter is out of range, if no runtime is current, or if it is
    /// shutting down.
    #[track_caller]
    pub fn spawn(self) -> Result<Spool<Q, R>, SpoolError> {
        self.judge()?;
        if Runtime::try_current().is_none() {
            return Err(SpoolError::Spawn(SpawnProblem::NoRuntime));
        }
        let limits = SpoolLimits {
            capacity: self.capacity,
            responsiveness: self.responsiveness,
            busy_pass_rate: self.busy_pass_rate,
            stand_down: self.stand_down.map(RetryIntervals::around),
            queue_timeout: self.queue_timeout,
            refuse_oldest: self.overflow == Overflow::Oldest,
            retries: self.retries,
            has_affinity: self.affinity.is_some(),
            is_external: self.factory.is_none(),
        };
        let workers = if self.factory.is_some() {
            self.workers
        } else {
            0
        };
        let is_traced = context::runtime().is_some_and(|it| it.tracer().is_some());
        let pool = Pool::new(limits, workers, self.affinity, self.copy, is_traced);
        // The workers are made here, so that a spool that was spawned has all of them.
        let mut manager = ObjectSpool::new(pool.clone(), self.factory);
        manager.make_workers();
        let mut builder = ActorBuilder::new(manager, ObjectSpool::run);
        if let Some(name) = self.name {
            builder = builder.name(name);
        }
        let manager = builder.try_spawn();
        let manager = manager.map_err(|error| SpoolError::Spawn(error.problem()))?;
        manager.trace_state("SPOOLING");
        let (of_proxy, of_closed) = (pool.clone(), pool.clone());
        let address = manager.proxy(
            is_traced.then_some(type_name::<Q>()),
            move |(question, client)| of_proxy.submit(question, client),
            move || AskError::Refused(Refusal::from(of_closed.stopped())),
        );
        Ok(Spool { address, pool })
    }

    /// Returns an error if a parameter is out of range.
    fn judge(&self) -> Result<(), SpoolError> {
        let below = |name: &str, value: String, least: &str| {
            Err(SpoolError::Parameters(format!(
                "{}: {name}={value} is less than {least}",
                self.parameters(),
            )))
        };
        judge_workers(self.workers, || self.parameters())?;
        // The first parameter out of range is named, in the order that layer_cake has.
        match (self.capacity, self.responsiveness, self.stand_down) {
            (Some(size), _, _) if size < 1 => below("size", size.to_string(), "1"),
            (_, Some(time), _) if time < RESPONSIVENESS_MIN => {
                below("responsiveness", seconds(Some(time)), "0.5")
            }
            (_, _, Some(delay)) if delay < STAND_DOWN_MIN => {
                below("stand_down", seconds(Some(delay)), "0.1")
            }
            _ if self.busy_pass_rate < 1 => {
                below("busy_pass_rate", self.busy_pass_rate.to_string(), "1")
            }
            _ if self.overflow == Overflow::Wait => Err(SpoolError::Parameters(format!(
                "{}: overflow=Wait, but a spool refuses what it has no room for",
                self.parameters(),
            ))),
            _ if self.queue_timeout == Some(Duration::ZERO) => {
                Err(SpoolError::Parameters(format!(
                    "{}: queue_timeout=0.0 is not more than 0",
                    self.parameters(),
                )))
            }
            _ => Ok(()),
        }
    }

    /// Returns the parameters as errors show them. The words and parentheses are those of document
    /// 2.
    fn parameters(&self) -> String {
        let size = self.capacity;
        format!(
            "unexpected parameters (count={}, size={}, responsiveness={}), stand_down={})",
            self.workers,
            size.map_or("None".to_owned(), |size| size.to_string()),
            seconds(self.responsiveness),
            seconds(self.stand_down),
        )
    }
}

/// Returns a time in seconds, as errors show it.
fn seconds(time: Option<Duration>) -> String {
    time.map_or("None".to_owned(), |time| {
        format!("{:?}", time.as_secs_f64())
    })
}

impl<Q, R> fmt::Debug for SpoolBuilder<Q, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpoolBuilder")
            .field("name", &self.name)
            .field("workers", &self.workers)
            .field("capacity", &self.capacity)
            .field("responsiveness", &self.responsiveness)
            .field("busy_pass_rate", &self.busy_pass_rate)
            .field("stand_down", &self.stand_down)
            .finish_non_exhaustive()
    }
}

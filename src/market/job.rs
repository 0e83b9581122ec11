//! A job that is to be offered, and the right to the result of one that was accepted.
//!
//! A job holds its work, its key and its options until a market accepts it. Then the market has the
//! work, and the handle knows where: by the market and a ticket.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::board::JobTicket;
use super::cell::{AwaitedJob, RetryPlan};
use super::error::{JobError, OfferError, TryOfferError};
use crate::contain::Panic;
use crate::runtime::context;
use crate::sync::LEFT_BEHIND;
use crate::time::RetryIntervals;

/// A closure for a market, with the key that it shares with other jobs, and its priority.
///
/// `K` is the type of the market's keys. A job without a key excludes no other job.
#[must_use = "a job does nothing until it is offered"]
pub struct Job<K, F> {
    pub(super) work: F,
    pub(super) key: Option<K>,
    pub(super) priority: u32,
    pub(super) delay: Duration,
    pub(super) retry: Option<Box<RetryPlan>>,
}

impl<K, F> Job<K, F> {
    /// Creates a job of priority 0, without a key.
    // Without a bound, so that a closure that can be called again is one for `retries`, too.
    pub fn new(work: F) -> Self {
        Job {
            work,
            key: None,
            priority: 0,
            delay: Duration::ZERO,
            retry: None,
        }
    }

    /// Sets the key. Jobs of one key never run at the same time.
    #[doc(alias = "player")]
    pub fn key(mut self, key: K) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets the priority, by default 0. A job of a higher one goes first, and of equals the oldest.
    ///
    /// A job waits for as long as there are others of higher priorities, unless its market has an
    /// [`aging`](super::MarketBuilder::aging). One whose key is in use lets others go first.
    pub fn priority(mut self, priority: u32) -> Self {
        self.priority = priority;
        self
    }

    /// Sets a delay, by default none. The job does not begin earlier than this time after the
    /// market accepts it. It may begin later: then it waits as any other job.
    ///
    /// A delayed job is on the board: it takes room there and counts for its key. It does not
    /// exclude other jobs of its key, nor keep a worker. When it is due, it goes before jobs of its
    /// priority that were offered later. A [`drain`](super::Market::drain) waits for it, and a
    /// [`stop`](super::Market::stop) discards it. In a simulation the time is virtual.
    ///
    /// ```
    /// use greenroom::market::{Job, Market};
    /// use std::time::{Duration, Instant};
    ///
    /// greenroom::run(async {
    ///     let market = Market::<()>::builder().build().unwrap();
    ///     let begin = Instant::now();
    ///     let job = Job::new(move || begin.elapsed()).after(Duration::from_millis(20));
    ///     let begun = market.offer(job).await.unwrap().await.unwrap();
    ///     assert!(begun >= Duration::from_millis(20));
    /// });
    /// ```
    #[doc(alias = "delay")]
    #[doc(alias = "schedule")]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Tries the job again after an attempt that fails: one that panics or returns `Err`.
    ///
    /// Between two attempts it waits for the next of these intervals. When there is none left, the
    /// outcome of the last attempt is that of the job. Without a
    /// [step limit](RetryIntervals::with_step_limit) the job is tried until it succeeds. The
    /// closure is called again as the failed attempt left it, also after a panic.
    ///
    /// A job that waits for its next attempt is on the board as a [delayed](Job::after) one: others
    /// of its key may run meanwhile, and the key is busy for
    /// [`capacity_per_key`](super::MarketBuilder::capacity_per_key). It keeps its age and its
    /// priority. Since it was accepted once, it goes back also to a full board: there may be
    /// [`max_workers`](super::MarketBuilder::max_workers) more jobs than the
    /// [`capacity`](super::MarketBuilder::capacity) then. Each attempt is a start for the
    /// [`rate`](super::MarketBuilder::rate).
    ///
    /// A job that was cancelled during an attempt that fails is not tried again, and ends with
    /// [`JobError::Cancelled`]. If the market was stopped, it ends with [`JobError::Discarded`].
    ///
    /// An error that is not the last one is dropped. A panic that is not the last one reaches
    /// [`on_fault`](crate::Builder::on_fault).
    ///
    /// ```
    /// use greenroom::market::{Job, Market};
    /// use greenroom::time::RetryIntervals;
    /// use std::time::Duration;
    ///
    /// greenroom::run(async {
    ///     let market = Market::<()>::builder().build().unwrap();
    ///     let mut attempts = 0;
    ///     let work = move || {
    ///         attempts += 1;
    ///         if attempts < 3 { Err("not yet") } else { Ok(attempts) }
    ///     };
    ///     let intervals = RetryIntervals::every(Duration::from_millis(1));
    ///     let job = market.offer(Job::new(work).retries(intervals)).await.unwrap();
    ///     assert_eq!(job.await.unwrap(), Ok(3));
    ///     assert_eq!((market.status().retried, market.status().failed), (2, 0));
    /// });
    /// ```
    pub fn retries<T, E>(mut self, intervals: RetryIntervals) -> Self
    where
        F: FnMut() -> Result<T, E> + 'static,
        T: 'static,
        E: 'static,
    {
        self.retry = Some(Box::new(RetryPlan {
            intervals,
            failures: 0,
            call: call::<F, T, E>,
        }));
        self
    }
}

/// Calls work, an `F` or a `Box<F>`, and puts its result into an `Option`. Returns whether it is an
/// error.
fn call<F, T, E>(work: &mut dyn Any, result: &mut dyn Any) -> bool
where
    F: FnMut() -> Result<T, E> + 'static,
    T: 'static,
    E: 'static,
{
    let returned = match work.is::<F>() {
        true => work.downcast_mut::<F>().map(|work| work()),
        false => work.downcast_mut::<Box<F>>().map(|work| work()),
    };
    let has_failed = matches!(returned, Some(Err(_)));
    let result = result.downcast_mut::<Option<Result<T, E>>>();
    *result.expect("the result is that of the work") = returned;
    has_failed
}

impl<K, F> Job<K, F> {
    /// Boxes the work, which is large. Without a function between, which would copy it once more.
    pub(super) fn boxed(self) -> Job<K, Box<F>> {
        Job {
            work: Box::new(self.work),
            key: self.key,
            priority: self.priority,
            delay: self.delay,
            retry: self.retry,
        }
    }
}

impl<K, F> Job<K, Box<F>> {
    /// Undoes [`boxed`](Job::boxed).
    pub(super) fn unbox(self) -> Job<K, F> {
        Job {
            work: *self.work,
            key: self.key,
            priority: self.priority,
            delay: self.delay,
            retry: self.retry,
        }
    }
}

impl<K: fmt::Debug, F> fmt::Debug for Job<K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("key", &self.key)
            .field("priority", &self.priority)
            .field("delay", &self.delay)
            .field("retries", &self.retry.as_ref().map(|it| &it.intervals))
            .finish_non_exhaustive()
    }
}

impl<K, F> OfferError<Job<K, Box<F>>> {
    /// Returns the error of a job whose work was boxed, as an output.
    // Out of line: a job that was accepted needs no stack for the error.
    #[cold]
    #[inline(never)]
    pub(super) fn unbox<R>(self) -> Poll<Result<R, OfferError<Job<K, F>>>> {
        Poll::Ready(Err(match self {
            OfferError::Stopping(job) => OfferError::Stopping(job.unbox()),
            OfferError::KeyBusy(job) => OfferError::KeyBusy(job.unbox()),
        }))
    }
}

impl<K, F> TryOfferError<Job<K, Box<F>>> {
    /// Returns the error of a job whose work was boxed.
    #[cold]
    #[inline(never)]
    pub(super) fn unbox<R>(self) -> Result<R, TryOfferError<Job<K, F>>> {
        Err(match self {
            TryOfferError::Full(job) => TryOfferError::Full(job.unbox()),
            TryOfferError::Stopping(job) => TryOfferError::Stopping(job.unbox()),
            TryOfferError::KeyBusy(job) => TryOfferError::KeyBusy(job.unbox()),
        })
    }
}

/// A market as the handles of its jobs know it.
pub(super) trait JobMarket: Send + Sync {
    /// Takes a job off the board. Returns whether it was there; otherwise tells the job.
    fn cancel(self: Arc<Self>, ticket: JobTicket) -> bool;

    /// Returns whether this is the process that has the market's threads.
    fn is_here(&self) -> bool;

    /// Reports a panic that is not awaited.
    fn report(&self, panic: Panic);
}

/// The result of an accepted job, as a future.
///
/// Dropping it lets the job go on. If the job then panics, the panic reaches
/// [`on_fault`](crate::Builder::on_fault).
///
/// # Errors
/// [`JobError`] says why there is no result.
///
/// # Panics
/// When it is polled after it has returned the result. In a child of `fork` all methods panic, and
/// a drop does nothing.
///
/// # Cancel safety
/// Cancel safe: the result stays here until it is returned. So a task may wait for a result and for
/// the wish to cancel the job at the same time:
///
/// ```
/// use futures::future::{Either, select};
/// use greenroom::market::{Job, JobError, JobHandle, Market};
/// use greenroom::{Answer, Reply};
///
/// async fn unless(mut job: JobHandle<u32>, cancelled: Answer<()>) -> Result<u32, JobError> {
///     if let Either::Left((result, _)) = select(&mut job, cancelled).await {
///         return result;
///     }
///     job.cancel();
///     job.await
/// }
///
/// greenroom::run(async {
///     let market = Market::<()>::builder().build().unwrap();
///     let job = market.offer(Job::new(|| 42)).await.unwrap();
///     let (cancel, cancelled) = Reply::pair();
///     let result = greenroom::spawn(unless(job, cancelled));
///     cancel.send(());
///     assert!(matches!(result.await, Ok(42) | Err(JobError::Cancelled)));
/// });
/// ```
#[must_use = "a result that is not awaited is dropped; `drop` it to say so"]
pub struct JobHandle<T> {
    job: Arc<dyn AwaitedJob<T>>,
    market: Arc<dyn JobMarket>,
    ticket: JobTicket,
    is_over: bool,
}

impl<T> JobHandle<T> {
    pub(super) fn new(
        job: Arc<dyn AwaitedJob<T>>,
        market: Arc<dyn JobMarket>,
        ticket: JobTicket,
    ) -> Self {
        JobHandle {
            job,
            market,
            ticket,
            is_over: false,
        }
    }

    /// Cancels the job, unless it runs or has ended. Returns whether it waited, also for its next
    /// [attempt](Job::retries).
    ///
    /// The result is [`JobError::Cancelled`] then, and the closure is dropped before this returns.
    /// A job that runs goes on, and [`is_cancelled`](super::is_cancelled) returns true in it. It is
    /// not tried again.
    pub fn cancel(&self) -> bool {
        !self.is_finished() && self.market.clone().cancel(self.ticket)
    }

    /// Returns whether the job has ended, in whichever way.
    pub fn is_finished(&self) -> bool {
        // In a child of `fork` a lock may stay locked.
        assert!(self.market.is_here(), "{LEFT_BEHIND}");
        context::apply_effects();
        self.is_over || self.job.is_over()
    }
}

impl<T> Future for JobHandle<T> {
    type Output = Result<T, JobError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(
            !self.is_over,
            "a result was polled after it had been returned"
        );
        assert!(self.market.is_here(), "{LEFT_BEHIND}");
        context::apply_effects();
        let polled = self.job.poll(cx);
        self.is_over = polled.is_ready();
        polled
    }
}

impl<T> Unpin for JobHandle<T> {}

impl<T> Drop for JobHandle<T> {
    fn drop(&mut self) {
        // In a child of `fork` a lock may stay locked.
        if !self.market.is_here() {
            return;
        }
        if let Some(panic) = self.job.abandon() {
            self.market.report(panic);
        }
    }
}

impl<T> fmt::Debug for JobHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_finished = self.market.is_here().then(|| self.is_finished());
        f.debug_struct("JobHandle")
            .field("is_finished", &is_finished)
            .finish_non_exhaustive()
    }
}

//! Markets, as programs hold them, and the wait for their end.
//!
//! The last handle stops its market. While there is one, the pool tells the market when a thread
//! does not start.

use std::fmt;
use std::future::{Future, poll_fn};
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use futures_util::future::Either;

use super::core::MarketCore;
use super::error::{OfferError, TryOfferError};
use super::job::{Job, JobHandle};
use super::offer::Offered;
use super::state::MarketPhase;
use super::status::MarketStatus;
use super::worker;
use crate::contain::{KeptWaker, contain};
use crate::park;
use crate::runtime::{Runtime, forget_borrower, may_wait, register_borrower};
use crate::task::is_large;

/// A board of jobs and the workers that take them.
///
/// A clone is the same market. The jobs run on the threads of [`unblock`](crate::unblock()), so
/// they may block. Two jobs of one key, of type `K`, never run at the same time.
///
/// Dropping the last clone stops the market, and waits until the jobs that run have ended. On a
/// worker of a runtime it gives the worker away first, as
/// [`block_on`](crate::Runtime::block_on) does. It does not wait on a worker of the market, on a
/// pinned thread, on a [`Stage`](crate::Stage) or, with the feature `tokio`, on a thread that is only
/// in a tokio runtime. Nor does it if a runtime that is over drops the task that has it. Use
/// [`stop`](Market::stop) and [`stopped`](Market::stopped) there.
///
/// `Hash` and drops of keys, jobs, results and wakers may panic, and may use the market. `Eq` of
/// keys may panic, but runs under the lock of the market: calls to the market would wait for
/// themselves there.
///
/// In a child of `fork` all methods panic, and a drop does nothing.
///
/// ```
/// use greenroom::market::{Job, Market};
///
/// greenroom::run(async {
///     let market = Market::<&str>::builder().max_workers(4).build().unwrap();
///     let job = Job::new(|| 6 * 7).key("sums").priority(1);
///     let job = market.offer(job).await.unwrap();
///     assert_eq!(job.await.unwrap(), 42);
///     market.drain().await;
/// });
/// ```
pub struct Market<K: Send + 'static = ()>(Arc<MarketOwner<K>>);

/// Is dropped with the last handle.
struct MarketOwner<K: Send + 'static>(Arc<MarketCore<K>>);

impl<K: Hash + Eq + Clone + Send + 'static> Market<K> {
    /// Offers a job. Waits for room while the board is full.
    ///
    /// Producers are served in the order in which they began to wait. The key is judged when there
    /// is room.
    ///
    /// # Errors
    /// [`OfferError`] returns the job and says why it was not accepted.
    ///
    /// A future that was polled keeps its turn in the line until it is dropped. No other
    /// producer overtakes it, even if it is not polled any more.
    ///
    /// # Cancel safety
    /// If the future is dropped, its turn in the line and the job are lost.
    #[doc(alias = "Add_Job")]
    pub fn offer<T, F>(
        &self,
        job: Job<K, F>,
    ) -> impl Future<Output = Result<JobHandle<T>, OfferError<Job<K, F>>>> + Send + use<T, F, K>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let core = &self.0.0;
        // Here and not in the future, which would be as large as the job.
        if const { is_large::<F>() } {
            let mut offered = Offered::new(core, job.boxed());
            return Either::Left(poll_fn(move |cx| {
                let added = ready!(offered.poll(cx));
                match offered.finish(added) {
                    Ok(handle) => Poll::Ready(Ok(handle)),
                    Err(error) => without_full(error).unbox(),
                }
            }));
        }
        let mut offered = Offered::new(core, job);
        Either::Right(poll_fn(move |cx| {
            let added = ready!(offered.poll(cx));
            Poll::Ready(offered.finish(added).map_err(without_full))
        }))
    }

    /// Offers a job if there is room now, and no other producer waits.
    ///
    /// # Errors
    /// [`TryOfferError`] returns the job and says why it was not accepted.
    #[doc(alias = "Add_Job")]
    pub fn try_offer<T, F>(&self, job: Job<K, F>) -> Result<JobHandle<T>, TryOfferError<Job<K, F>>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let core = &self.0.0;
        if const { is_large::<F>() } {
            return Offered::new(core, job.boxed())
                .now()
                .or_else(TryOfferError::unbox);
        }
        Offered::new(core, job).now()
    }

    /// Offers a job, and blocks the thread while the board is full.
    ///
    /// A job that offers to its own market in this way can deadlock: if all workers wait for room,
    /// no job leaves the board.
    ///
    /// # Errors
    /// [`OfferError`] returns the job and says why it was not accepted.
    ///
    /// # Panics
    /// On a thread on which [`block_on`](crate::Runtime::block_on) panics.
    #[doc(alias = "Add_Job")]
    pub fn offer_blocking<T, F>(
        &self,
        job: Job<K, F>,
    ) -> Result<JobHandle<T>, OfferError<Job<K, F>>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        wait_for(&self.0.0, self.offer(job))
    }

    /// Stops the market. It cannot be undone.
    ///
    /// Jobs that wait end with [`Discarded`](super::JobError::Discarded), and producers that wait
    /// get their jobs back. Jobs that run go on to their end.
    #[doc(alias = "Stop")]
    pub fn stop(&self) {
        self.0.0.close(MarketPhase::Stopped);
    }

    /// Stops the market as [`stop`](Market::stop) does, and cancels the jobs that run:
    /// [`is_cancelled`](super::is_cancelled) returns true in them from now on. Nothing interrupts
    /// them, so a job that does not look at that runs to its end.
    ///
    /// ```
    /// use greenroom::market::{self, Job, Market};
    ///
    /// greenroom::run(async {
    ///     let market = Market::<()>::builder().build().unwrap();
    ///     let (begins, begun) = std::sync::mpsc::channel();
    ///     let job = market.offer(Job::new(move || {
    ///         begins.send(()).unwrap();
    ///         while !market::is_cancelled() {
    ///             std::thread::yield_now();
    ///         }
    ///     }));
    ///     let job = job.await.unwrap();
    ///     begun.recv().unwrap();
    ///     market.stop_now();
    ///     market.stopped().await;
    ///     assert!(job.is_finished());
    /// });
    /// ```
    pub fn stop_now(&self) {
        self.0.0.stop_now();
    }

    /// Accepts no more jobs, and waits until those that were accepted have ended, also those that
    /// are [delayed](Job::after) or [tried again](Job::retries).
    ///
    /// The future does not keep the market: if the last clone is dropped meanwhile, jobs that wait
    /// are discarded.
    ///
    /// # Cancel safety
    /// The market goes on draining when the future is dropped.
    pub fn drain(&self) -> impl Future<Output = ()> + Send + use<K> {
        let core = self.0.0.clone();
        async move {
            core.close(MarketPhase::Draining);
            EndOf::new(&core).await;
        }
    }

    /// Waits until the market was stopped or drained, and its last job has ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub fn stopped(&self) -> impl Future<Output = ()> + Send + use<K> {
        let core = self.0.0.clone();
        async move { EndOf::new(&core).await }
    }

    /// Returns the state of the market. It changes nothing.
    #[doc(alias = "Operating")]
    pub fn status(&self) -> MarketStatus {
        self.0.0.status()
    }
}

impl<K: Send + 'static> Market<K> {
    pub(super) fn new(core: Arc<MarketCore<K>>) -> Self {
        register_borrower(core.runtime.as_ref(), &core);
        Market(Arc::new(MarketOwner(core)))
    }
}

/// Waits for a future on this thread.
#[track_caller]
pub(super) fn wait_for<K, F: Future>(core: &Arc<MarketCore<K>>, future: F) -> F::Output {
    let here = || Runtime::try_current().map(|runtime| runtime.inner().clone());
    // A simulation cannot wait for threads that are not of it.
    let other = || here().filter(|runtime| !runtime.is_simulated());
    if let Some(runtime) = core.runtime.clone().or_else(other) {
        return Runtime::not_counting(runtime).block_on(future);
    }
    let parker = park::own();
    let waker = Waker::from(parker.clone());
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => drop(parker.park(None)),
        }
    }
}

fn without_full<J>(error: TryOfferError<J>) -> OfferError<J> {
    match error {
        TryOfferError::KeyBusy(job) => OfferError::KeyBusy(job),
        // A job that waits for room is not refused for want of it.
        TryOfferError::Stopping(job) | TryOfferError::Full(job) => OfferError::Stopping(job),
    }
}

impl<K: Send + 'static> Drop for MarketOwner<K> {
    fn drop(&mut self) {
        let core = &self.0;
        if !core.is_here() {
            return;
        }
        core.close(MarketPhase::Stopped);
        forget_borrower(core.runtime.as_ref(), core);
        let current = Runtime::try_current();
        let is_over = current.is_some_and(|runtime| runtime.inner().is_over());
        let may_wait = !is_over && !worker::is_inside(core.address()) && may_wait();
        if may_wait && !core.is_still() {
            // Without a spare thread the worker cannot be given away.
            contain(|| wait_for(core, EndOf::new(core)));
        }
    }
}

impl<K: Send + 'static> Clone for Market<K> {
    fn clone(&self) -> Self {
        Market(self.0.clone())
    }
}

impl<K: Send + 'static> fmt::Debug for Market<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = &self.0.0;
        let status = core.is_here().then(|| core.status());
        f.debug_struct("Market")
            .field("status", &status)
            .finish_non_exhaustive()
    }
}

/// Completes when a market was stopped or drained, and its last worker has left.
pub(super) struct EndOf<K: Send + 'static> {
    core: Arc<MarketCore<K>>,
    /// The index of its waker.
    index: Option<usize>,
}

impl<K: Send + 'static> EndOf<K> {
    pub(super) fn new(core: &Arc<MarketCore<K>>) -> Self {
        EndOf {
            core: core.clone(),
            index: None,
        }
    }
}

impl<K: Send + 'static> Future for EndOf<K> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let waker = KeptWaker::new(cx.waker());
        let own = &mut *self;
        own.core.change(|state, after| {
            // At the end all wakers have left the slab, so the index is of no use.
            if state.is_over() {
                after.stale.push(waker);
                own.index = None;
                return Poll::Ready(());
            }
            match own.index {
                Some(index) => after
                    .stale
                    .push(std::mem::replace(&mut state.enders[index], waker)),
                None => own.index = Some(state.enders.insert(waker)),
            }
            Poll::Pending
        })
    }
}

impl<K: Send + 'static> Drop for EndOf<K> {
    fn drop(&mut self) {
        // At the end all wakers leave.
        if let Some(index) = self.index.filter(|_| self.core.is_here()) {
            self.core
                .change(|state, after| after.stale.extend(state.enders.try_remove(index)));
        }
    }
}

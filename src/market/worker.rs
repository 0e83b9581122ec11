//! A worker as its market and its job see it.
//!
//! Its market is known by an address, which is compared and never followed.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use crate::park::Parker;
use crate::sync::atomic::{AtomicBool, Ordering};

pub(super) struct MarketWorker {
    parker: Parker,
    /// Its job was cancelled.
    is_cancelled: AtomicBool,
    /// The address of its market.
    market: usize,
}

impl MarketWorker {
    /// Creates a worker of the market at this address.
    pub(super) fn new(market: usize) -> Arc<Self> {
        Arc::new(MarketWorker {
            parker: Parker::new(),
            is_cancelled: AtomicBool::new(false),
            market,
        })
    }

    /// Waits until the worker is woken, at most for this time. Returns whether it was woken.
    pub(super) fn wait(&self, time: Option<Duration>) -> bool {
        self.parker.park_eagerly(time)
    }

    /// Runs what the worker does on the calling thread.
    pub(super) fn inside(self: &Arc<Self>, serve: impl FnOnce()) {
        let outer = CURRENT.try_with(|current| current.replace(Some(self.clone())));
        serve();
        let outer = outer.ok().flatten();
        drop(CURRENT.try_with(|current| current.replace(outer)));
    }

    /// Wakes a worker that was taken from the idle ones.
    pub(super) fn wake(&self) {
        self.parker.unpark();
    }

    /// Lets the time pass for which it waits. No other time passes in a model.
    #[cfg(all(test, greenroom_loom))]
    pub(super) fn let_time_pass(&self, longest: Duration) {
        self.parker.let_time_pass(1, longest);
    }

    /// Forgets that a job was cancelled.
    pub(super) fn renew(&self) {
        // Relaxed: only the flag matters.
        self.is_cancelled.store(false, Ordering::Relaxed);
    }

    /// Returns whether its job was cancelled.
    pub(super) fn is_cancelled(&self) -> bool {
        // Relaxed: only the flag matters.
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// Tells the job that it was cancelled.
    pub(super) fn cancel(&self) {
        // Relaxed: only the flag matters.
        self.is_cancelled.store(true, Ordering::Relaxed);
    }
}

crate::sync::thread_local! {
    /// The worker that has this thread.
    static CURRENT: RefCell<Option<Arc<MarketWorker>>> = const { RefCell::new(None) };
}

/// Returns whether the job that runs on this thread was [cancelled](super::JobHandle::cancel) after
/// its begin. Returns false outside the jobs of markets.
///
/// A long job may look at this now and then, and return early.
///
/// ```
/// use greenroom::market::{self, Job, Market};
///
/// greenroom::run(async {
///     let market = Market::<()>::builder().build().unwrap();
///     let (begins, begun) = std::sync::mpsc::channel();
///     let job = Job::new(move || {
///         begins.send(()).unwrap();
///         while !market::is_cancelled() {
///             std::thread::yield_now();
///         }
///         "stopped early"
///     });
///     let job = market.offer(job).await.unwrap();
///     begun.recv().unwrap();
///     assert!(!job.cancel(), "it has begun");
///     assert_eq!(job.await.unwrap(), "stopped early");
/// });
/// ```
pub fn is_cancelled() -> bool {
    with(MarketWorker::is_cancelled).unwrap_or(false)
}

fn with<R>(look: impl FnOnce(&MarketWorker) -> R) -> Option<R> {
    let current = CURRENT.try_with(|current| current.borrow().clone());
    current.ok().flatten().map(|worker| look(&worker))
}

/// Returns whether a worker of the market at this address runs the calling code.
pub(super) fn is_inside(market: usize) -> bool {
    with(|worker| worker.market == market).unwrap_or(false)
}

//! What a worker does besides running tasks, as its policy sees it.

use std::time::Duration;

use super::counters::{Counted, Counters};
use super::driven::Driven;
use super::owner::Owner;
use crate::instant::Instant;

/// The duties of a worker other than running tasks: timers, shutdown and quiescence.
///
/// A [`Policy`](super::policy::Policy) receives them in
/// [`dequeue`](super::policy::Policy::dequeue). A policy that returns `None` when its queue is
/// empty can ignore them. A policy that parks its workers must not park while
/// [`must_return`](Duties::must_return) is true, nor for longer than
/// [`until_next`](Duties::until_next).
///
/// # Examples
///
/// A policy with one queue, whose workers wait on a condition variable:
///
/// ```
/// use std::collections::VecDeque;
/// use std::sync::{Condvar, Mutex};
/// use std::time::Duration;
///
/// use greenroom::Runtime;
/// use greenroom::policy::{Duties, Policy, Runnable};
///
/// #[derive(Default)]
/// struct Shared {
///     queue: Mutex<VecDeque<Runnable>>,
///     changed: Condvar,
/// }
///
/// impl Policy for Shared {
///     type Worker = ();
///
///     fn worker(&self, _index: usize) {}
///
///     fn central_enqueue(&self, runnable: Runnable) {
///         self.queue.lock().unwrap().push_back(runnable);
///         self.changed.notify_one();
///     }
///
///     fn dequeue(&self, _worker: &(), duties: &Duties<'_>) -> Option<Runnable> {
///         let mut queue = self.queue.lock().unwrap();
///         loop {
///             if let Some(runnable) = queue.pop_front() {
///                 return Some(runnable);
///             }
///             let wait = duties.until_next();
///             if duties.must_return() || wait == Some(Duration::ZERO) {
///                 return None;
///             }
///             duties.parks();
///             queue = match wait {
///                 None => self.changed.wait(queue).unwrap(),
///                 Some(wait) => self.changed.wait_timeout(queue, wait).unwrap().0,
///             };
///         }
///     }
///
///     fn interrupt(&self) {
///         // A worker that read its duties before they changed waits once the lock is free.
///         drop(self.queue.lock().unwrap());
///         self.changed.notify_all();
///     }
/// }
///
/// let runtime = Runtime::builder().workers(2).policy(Shared::default()).build()?;
/// assert_eq!(runtime.block_on(async { greenroom::spawn(async { 40 + 2 }).await }), 42);
/// # Ok::<(), greenroom::BuildError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Duties<'a> {
    owner: &'a dyn Owner,
    counters: &'a [Counters],
    worker: usize,
    /// The thread collects the remaining runnables of a worker, and does not wait.
    last: bool,
    /// Where the worker waits, if a driver polls it: in the driver and not in the policy.
    driven: Option<&'a Driven>,
}

impl<'a> Duties<'a> {
    pub(super) fn new(owner: &'a dyn Owner, counters: &'a [Counters], worker: usize) -> Self {
        Duties {
            owner,
            counters,
            worker,
            last: false,
            driven: None,
        }
    }

    /// Returns the duties of a worker that waits in a driver.
    pub(super) fn driven(self, driven: Option<&'a Driven>) -> Self {
        Duties { driven, ..self }
    }

    /// Returns where the worker waits, if a driver polls it.
    pub(super) fn driver(&self) -> Option<&'a Driven> {
        self.driven
    }

    /// Returns the duties of a thread that collects the remaining runnables, and does not wait.
    pub(super) fn last(self) -> Self {
        Duties { last: true, ..self }
    }

    /// Returns whether `dequeue` must return at once, with a runnable or `None`, and must not park.
    pub fn must_return(&self) -> bool {
        self.driven.is_some() || self.must_rise()
    }

    /// Returns whether the worker has gone to sleep and waits in its driver.
    pub(super) fn is_waiting(&self) -> bool {
        self.driven.is_some_and(|driven| driven.waits().is_some())
    }

    /// Returns whether the worker has something to do besides running tasks.
    pub(super) fn must_rise(&self) -> bool {
        self.last || self.owner.must_see_to(self.worker)
    }

    /// Returns how long `dequeue` may park at most: the time until the next deadline, zero if that
    /// has passed. `None` means without a limit.
    pub fn until_next(&self) -> Option<Duration> {
        let deadline = self.deadline()?;
        Some(deadline.duration_since(Instant::now()))
    }

    /// Returns the earliest deadline.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.owner.deadline()
    }

    /// Counts in [`Runtime::stats`](crate::Runtime::stats) that this worker parks, for policies
    /// that park by themselves.
    ///
    /// The wake-up is counted when `dequeue` returns, or at the next call.
    pub fn parks(&self) {
        self.count(Counted::Park);
    }

    /// Counts that this worker is awake again, if it had parked.
    pub(super) fn wakes_up(&self) {
        self.counters[self.worker].wake_up();
    }

    pub(super) fn count(&self, counted: Counted) {
        self.counters[self.worker].count(counted);
    }

    /// Returns how many turns a worker has begun.
    pub(super) fn turns(&self, worker: usize) -> u64 {
        self.counters[worker].runs()
    }

    /// Notes that this worker sleeps, which may complete quiescence.
    pub(super) fn lies_down(&self) {
        self.owner.worker_sleeps();
    }

    /// Returns whether another thread has taken over this worker, so that this one must not wait.
    pub(super) fn is_displaced(&self) -> bool {
        self.owner.is_displaced()
    }
}

impl std::fmt::Debug for Duties<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Duties")
            .field("must_return", &self.must_return())
            .field("until_next", &self.until_next())
            .finish()
    }
}

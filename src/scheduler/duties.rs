//! What a worker does besides running tasks, as its policy sees it, and where it waits in a driver.
//!
//! The duties come from the owner of the scheduler, a runtime. A worker may wait inside a foreign
//! reactor, where it is a future, instead of parking.
//!
//! # Invariants
//! - DRIVEN-1: a worker that has gone to sleep remains a sleeper until
//!   [`resume`](super::WorkerLocal::resume) reports that it is awake. It takes no entry meanwhile,
//!   since another thread may be about to wake it for one.

use std::cell::Cell;
use std::task::Waker;
use std::time::Duration;

use super::counters::Counters;
use crate::contain::KeptWaker;
use crate::instant::Instant;
use crate::task::Runnable;

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
    owner: &'a dyn SchedulerOwner,
    counters: &'a [Counters],
    worker: usize,
    /// The thread collects the remaining runnables of a worker, and does not wait.
    last: bool,
    /// Where the worker waits, if a driver polls it: in the driver and not in the policy.
    driven: Option<&'a DriverWait>,
}

impl<'a> Duties<'a> {
    pub(super) fn new(
        owner: &'a dyn SchedulerOwner,
        counters: &'a [Counters],
        worker: usize,
    ) -> Self {
        Duties {
            owner,
            counters,
            worker,
            last: false,
            driven: None,
        }
    }

    /// Returns the duties of a worker that waits in a driver.
    pub(super) fn driven(self, driven: Option<&'a DriverWait>) -> Self {
        Duties { driven, ..self }
    }

    /// Returns where the worker waits, if a driver polls it.
    pub(super) fn driver(&self) -> Option<&'a DriverWait> {
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
        self.driven.is_some_and(DriverWait::is_sleeping)
    }

    /// Returns whether the worker has something to do besides running tasks.
    pub(super) fn must_rise(&self) -> bool {
        self.last || self.owner.must_see_to(self.worker)
    }

    /// Returns how long `dequeue` may park at most: the time until the next deadline, or until the
    /// runtime looks for [waits that never end](crate::Builder::endless_waits). It is zero if that
    /// has passed. `None` means without a limit.
    pub fn until_next(&self) -> Option<Duration> {
        let deadline = self.deadline();
        let wait = deadline.map(|deadline| deadline.duration_since(Instant::now()));
        wait.or_else(|| self.until_silence())
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
        self.own_counters().count_park();
    }

    /// Counts that this worker is awake again, if it had parked.
    pub(super) fn wakes_up(&self) {
        self.own_counters().wake_up();
    }

    /// Returns the counters of this worker.
    pub(super) fn own_counters(&self) -> &'a Counters {
        &self.counters[self.worker]
    }

    /// Returns how many turns a worker has begun.
    pub(super) fn turns(&self, worker: usize) -> u64 {
        self.counters[worker].runs()
    }

    /// Notes that this worker sleeps, which may complete quiescence.
    pub(super) fn lies_down(&self) {
        self.owner.worker_sleeps();
    }

    /// Returns how long this worker parks before it is to look whether it is silent.
    pub(super) fn until_silence(&self) -> Option<Duration> {
        self.owner.until_silence()
    }

    /// Looks for waits that never end.
    pub(super) fn find_endless_waits(&self) {
        self.owner.find_endless_waits();
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

/// The owner of a scheduler, as its policies see it.
///
/// The loop of a worker needs more: see [`Employer`](super::worker::Employer).
pub(crate) trait SchedulerOwner: Send + Sync {
    /// Returns whether this worker has something to do besides running tasks.
    fn must_see_to(&self, worker: usize) -> bool;

    /// Returns the earliest deadline.
    fn deadline(&self) -> Option<Instant>;

    /// Returns whether the shutdown has begun.
    fn is_closing(&self) -> bool;

    /// Returns whether the current turn on this thread has given the worker to another thread.
    fn is_displaced(&self) -> bool;

    /// Notes that a worker sleeps, which may complete quiescence.
    fn worker_sleeps(&self);

    /// Returns how long a worker that sleeps waits before it is to look whether it
    /// [looks for endless waits](SchedulerOwner::find_endless_waits), if nothing else runs.
    fn until_silence(&self) -> Option<Duration>;

    /// Looks for waits that never end, since nothing has run for that time.
    fn find_endless_waits(&self);

    /// Takes a runnable in a runtime without workers; `again`: it was woken during its own turn.
    fn push_elsewhere(&self, runnable: Runnable, again: bool);
}

/// The waker of a driven worker, and how long it may wait.
pub(crate) struct DriverWait {
    waker: Cell<KeptWaker>,
    /// The time that the worker was to wait has passed.
    is_over: Cell<bool>,
    /// The worker sleeps.
    is_sleeping: Cell<bool>,
    /// How long it may sleep at most. `None` means until it is woken.
    wait: Cell<Option<Duration>>,
}

impl DriverWait {
    pub(crate) fn new() -> Self {
        DriverWait {
            waker: Cell::new(KeptWaker::noop()),
            is_over: Cell::new(false),
            is_sleeping: Cell::new(false),
            wait: Cell::new(None),
        }
    }

    /// Begins a poll of the worker; `is_over` says that its wait has passed.
    pub(crate) fn begin_poll(&self, waker: &Waker, is_over: bool) {
        // The waker is out of the cell while its functions are called.
        let mut own = self.waker.replace(KeptWaker::noop());
        own.renew(waker);
        self.waker.set(own);
        self.is_over.set(is_over);
    }

    /// Returns whether the worker sleeps, and so waits in its driver.
    pub(crate) fn is_sleeping(&self) -> bool {
        self.is_sleeping.get()
    }

    /// Returns how long the worker may sleep at most; `None` if it is awake, or without a limit.
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.wait.get()
    }

    /// Notes that the worker sleeps, for this long at most.
    pub(super) fn sleep(&self, wait: Option<Duration>) {
        self.is_sleeping.set(true);
        self.wait.set(wait);
    }

    /// Notes that the worker is awake.
    pub(super) fn wake(&self) {
        self.is_sleeping.set(false);
        self.wait.set(None);
    }

    /// Returns a waker of this poll.
    pub(super) fn waker(&self) -> KeptWaker {
        let own = self.waker.replace(KeptWaker::noop());
        let another = own.clone();
        self.waker.set(own);
        another
    }

    /// Returns whether the wait has passed, and clears that.
    pub(super) fn take_over(&self) -> bool {
        self.is_over.take()
    }
}

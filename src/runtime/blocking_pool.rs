//! The pool of threads for blocking calls: its queue of jobs and its threads.
//!
//! At most one thread at a time is on its way to the jobs: it was woken, or is being started, and
//! has not looked for a job yet. A thread that takes a job and sees more brings the next one. So a
//! burst of short jobs brings few threads, and jobs that wait for each other all get one.
//!
//! The thread that has waited least goes first. Each is woken for itself: for jobs, or to be a
//! worker whose thread waits in `block_on`. The former worker joins the pool when its
//! turn ends. A thread that has waited for long ends, unless it has waited longest of all.
//!
//! If the system does not start a thread, jobs may wait for those that there are. These may wait for
//! the jobs, so a start is tried again after some time.
//!
//! # Invariants
//! - POOL-1: a thread in `idle` is woken by the thread that has taken it from there, and by no
//!   other one. So a thread whose time is over ends only if it is still in `idle`.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::start_retry::StartRetry;
use crate::contain::drop_refused;
use crate::error::BuildError;
use crate::instant::Instant;
use crate::lock::SpinLock;
use crate::park::Parker;
use crate::sync::{Mutex, MutexGuard, mutant};
use crate::task::Runnable;

/// How many threads a pool may have, and how long they wait for jobs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockingLimits {
    /// The largest number of threads. Further jobs wait.
    pub(crate) threads: usize,
    /// How long a thread waits for a job before it ends. One waits without end.
    pub(crate) idle: Duration,
}

impl BlockingLimits {
    /// Returns an error if the limits are impossible.
    pub(super) fn judge(&self) -> Result<(), BuildError> {
        if self.threads > 0 {
            return Ok(());
        }
        Err(BuildError::Impossible {
            option: "max_blocking_workers",
            reason: "is 0, but must be at least 1".into(),
        })
    }
}

impl Default for BlockingLimits {
    /// Returns limits of 512 threads, far more than disks can serve at once and far fewer than a
    /// process may have, and of 10 s.
    fn default() -> Self {
        BlockingLimits {
            threads: 512,
            idle: Duration::from_secs(10),
        }
    }
}

/// The work of a thread of a pool.
pub(super) trait Turns {
    /// Continues as the worker with this index. Returns whether the thread comes back to the pool.
    fn run_worker(&self, index: usize) -> bool;

    fn run(&self, job: Runnable);

    /// Starts one more thread of the pool.
    fn start(&self) -> io::Result<()>;

    /// Calls [`BlockingPool::bring_again`] after this time.
    fn start_later(&self, delay: Duration);

    /// Notes that the thread runs nothing any more.
    fn leave(&self);
}

/// What uses a pool and must not wait without end for a thread that the system has not started.
pub(crate) trait Borrower: Send + Sync {
    /// Notes that a thread did not start, so that calls wait until another thread of the pool ends
    /// its job. What runs there may wait for them.
    fn is_kept_waiting(self: Arc<Self>);
}

pub(crate) struct BlockingPool {
    thread_name: String,
    limits: BlockingLimits,
    state: Mutex<Jobs>,
}

#[derive(Default)]
struct Jobs {
    jobs: VecDeque<PoolEntry>,
    /// The number of threads: without those that are workers, with those that were.
    threads: usize,
    /// How many of `threads` were a worker, have given it away and have not joined the pool yet.
    displaced: usize,
    /// The threads that wait and were not woken. The last one has waited least.
    idle: Vec<Arc<Idle>>,
    /// A thread was woken or is being started for jobs, and has not looked for one yet.
    is_coming: bool,
    over: bool,
    /// How many threads were started, and how many starts have failed.
    started: u64,
    failed_starts: u64,
    retry: StartRetry,
    /// By their addresses.
    borrowers: BTreeMap<usize, Weak<dyn Borrower>>,
}

/// A job in the queue, and since when it waits.
struct PoolEntry {
    job: Runnable,
    since: Instant,
}

/// A thread of the pool, as it waits.
struct Idle {
    parker: Parker,
    /// The index of the worker that it is to be, if it was woken for that.
    worker: SpinLock<Option<usize>>,
}

impl Idle {
    /// Wakes a thread that was taken from the idle ones.
    fn wake(&self, worker: Option<usize>) {
        self.worker.with(|own| *own = worker);
        self.parker.unpark();
    }
}

/// What a thread does after it has waited.
enum IdleEnd {
    /// It continues as this worker.
    Worker(usize),
    Jobs,
    /// It ends.
    Late,
}

impl BlockingPool {
    pub(crate) fn new(thread_name: String, limits: BlockingLimits) -> Self {
        BlockingPool {
            thread_name,
            limits,
            state: Mutex::new(Jobs::default()),
        }
    }

    /// Returns the name of the pool's threads.
    pub(super) fn thread_name(&self) -> String {
        format!("{}-blocking", self.thread_name)
    }

    /// Queues a job.
    ///
    /// # Errors
    /// [`NoThread`] with the jobs that the caller must run if the pool has no thread. Otherwise the
    /// job stays in the queue.
    pub(super) fn push(
        &self,
        job: Runnable,
        start: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), NoThread> {
        let mut state = self.state.lock();
        if state.over {
            drop(state);
            drop_refused(job);
            return Ok(());
        }
        let since = Instant::now();
        state.jobs.push_back(PoolEntry { job, since });
        self.bring(state, start)
    }

    /// Tries again to bring one more thread to the jobs.
    ///
    /// # Errors
    /// As [`push`](BlockingPool::push).
    pub(super) fn bring_more(
        &self,
        start: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), NoThread> {
        self.bring(self.state.lock(), start)
    }

    /// Does the same when the time after a failed start is over.
    pub(super) fn bring_again(
        &self,
        start: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), NoThread> {
        let mut state = self.state.lock();
        state.retry.fire();
        self.bring(state, start)
    }

    /// Notes that `bring_again` will not be called, so that the next failed start asks for it.
    #[cold]
    pub(super) fn forget_retry(&self) {
        self.state.lock().retry.fire();
    }

    /// Brings one more thread to the jobs if there are jobs and no thread is on its way.
    fn bring(
        &self,
        mut state: MutexGuard<'_, Jobs>,
        start: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), NoThread> {
        if state.is_coming || state.jobs.is_empty() {
            return Ok(());
        }
        if let Some(thread) = state.idle.pop() {
            state.is_coming = true;
            drop(state);
            thread.wake(None);
            return Ok(());
        }
        if state.own() >= self.limits.threads {
            return Ok(());
        }
        // Counted before it is started.
        state.is_coming = true;
        state.threads += 1;
        state.started += 1;
        drop(state);
        start().map_err(|error| {
            let failed = self.start_failed(error, 0);
            if failed.jobs.is_empty() {
                self.notify_borrowers();
            }
            failed
        })
    }

    /// Notifies the borrower at this address from now on, or no borrower there any more, when calls
    /// wait for a thread that did not start.
    pub(super) fn register(&self, address: usize, borrower: Option<Weak<dyn Borrower>>) {
        let borrowers = &mut self.state.lock().borrowers;
        match borrower {
            Some(borrower) => borrowers.insert(address, borrower),
            None => borrowers.remove(&address),
        };
    }

    #[cold]
    fn notify_borrowers(&self) {
        let borrowers = self.state.lock().borrowers.clone();
        for borrower in borrowers.values().filter_map(Weak::upgrade) {
            borrower.is_kept_waiting();
        }
    }

    /// Makes another thread continue as worker `index`. The caller, which was that worker, counts
    /// as a thread of the pool from then on. Returns false if no thread continues, because the pool
    /// is closed.
    ///
    /// The largest number of threads does not apply here: waiting for a free one could deadlock.
    pub(super) fn lend(
        &self,
        index: usize,
        start: impl FnOnce() -> io::Result<()>,
    ) -> Result<bool, NoThread> {
        let mut state = self.state.lock();
        if state.over {
            return Ok(false);
        }
        state.displaced += 1;
        if let Some(thread) = state.idle.pop() {
            drop(state);
            thread.wake(Some(index));
            return Ok(true);
        }
        state.threads += 1;
        state.started += 1;
        drop(state);
        start().map_err(|error| self.start_failed(error, 1))?;
        Ok(true)
    }

    /// Notes that a thread did not start: for jobs, or to replace one that is `displaced`.
    #[cold]
    fn start_failed(&self, error: io::Error, displaced: usize) -> NoThread {
        let mut state = self.state.lock();
        state.threads -= 1;
        state.started -= 1;
        state.failed_starts += 1;
        state.displaced -= displaced;
        state.is_coming &= displaced > 0;
        // If threads remain, they run the jobs. If several starts fail at once, the last caller
        // that fails takes all jobs.
        let jobs = match state.own() {
            0 => std::mem::take(&mut state.jobs),
            _ => VecDeque::new(),
        };
        let jobs = jobs.into_iter().map(|waiting| waiting.job).collect();
        let is_wanted = displaced == 0 && !state.jobs.is_empty();
        let again = is_wanted.then(|| state.retry.arm()).flatten();
        NoThread { error, jobs, again }
    }

    /// Runs the loop of a thread, whose work is `turns`. It ends when the pool is closed, or after
    /// a long wait. It also ends when the thread has become a worker of a runtime that is over,
    /// since it then no longer belongs to the pool. `for_jobs`: the thread was started for jobs.
    pub(super) fn serve(&self, turns: &impl Turns, mut for_jobs: bool) {
        let own = Arc::new(Idle {
            parker: Parker::new(),
            worker: SpinLock::new(None),
        });
        let mut state = self.state.lock();
        state.retry.has_succeeded();
        loop {
            if std::mem::take(&mut for_jobs) {
                state.is_coming = false;
            }
            if let Some(PoolEntry { job, .. }) = state.jobs.pop_front() {
                if mutant("a_thread_with_a_job_brings_no_other") {
                    drop(state);
                } else {
                    // If none starts, this thread runs the other jobs later, unless a later one does.
                    let brought = self.bring(state, || turns.start());
                    if let Some(delay) = brought.err().and_then(|none| none.again) {
                        turns.start_later(delay);
                    }
                }
                turns.run(job);
                state = self.state.lock();
                continue;
            }
            if state.over || state.own() > self.limits.threads {
                break;
            }
            let woken;
            (state, woken) = self.wait(state, &own);
            match woken {
                IdleEnd::Late => break,
                IdleEnd::Jobs => for_jobs = true,
                IdleEnd::Worker(_)
                    if state.over && mutant("a_worker_is_lost_when_the_pool_is_over") =>
                {
                    break;
                }
                // (WORKER-2) Before any job, and also when the pool is closed.
                IdleEnd::Worker(index) => {
                    drop(state);
                    if !turns.run_worker(index) {
                        return;
                    }
                    state = self.state.lock();
                    state.displaced -= 1;
                }
            }
        }
        turns.leave();
        state.threads -= 1;
    }

    /// Waits until the thread is woken, or its time is over.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, Jobs>,
        own: &Arc<Idle>,
    ) -> (MutexGuard<'a, Jobs>, IdleEnd) {
        if state.jobs.capacity() > JOBS_KEPT {
            state.jobs = VecDeque::new();
        }
        // The thread that has waited longest stays.
        let time = (!state.idle.is_empty()).then_some(self.limits.idle);
        state.idle.push(own.clone());
        drop(state);
        let mut was_woken = own.parker.park_eagerly(time);
        if !was_woken {
            let mut state = self.state.lock();
            let at = state.idle.iter().position(|idle| Arc::ptr_eq(idle, own));
            if let Some(at) = at {
                state.idle.remove(at);
                return (state, IdleEnd::Late);
            }
            if mutant("a_thread_that_was_woken_late_ends") {
                return (state, IdleEnd::Late);
            }
            drop(state);
        }
        // (POOL-1) It was taken from the idle ones, so it is woken.
        while !was_woken {
            was_woken = own.parker.park(None);
        }
        let woken = own.worker.with(Option::take);
        let woken = woken.map_or(IdleEnd::Jobs, IdleEnd::Worker);
        (self.state.lock(), woken)
    }

    /// Counts a thread that was a worker as one that takes jobs from now on.
    pub(super) fn join(&self) {
        self.state.lock().displaced -= 1;
    }

    /// Ends the idle threads. The busy ones end with their jobs. Returns the jobs that have not begun,
    /// to be dropped.
    pub(crate) fn close(&self) -> impl Iterator<Item = Runnable> + use<> {
        let mut state = self.state.lock();
        state.over = true;
        let jobs = std::mem::take(&mut state.jobs);
        let idle = std::mem::take(&mut state.idle);
        drop(state);
        // Each finds that the pool is over.
        idle.iter().for_each(|thread| thread.wake(None));
        jobs.into_iter().map(|waiting| waiting.job)
    }

    pub(super) fn stats(&self) -> BlockingStats {
        let state = self.state.lock();
        BlockingStats {
            threads: state.threads,
            idle: state.idle.len(),
            queued: state.jobs.len(),
            longest_wait: state.jobs.front().map(|first| first.since.elapsed()),
            started: state.started,
            failed_starts: state.failed_starts,
        }
    }

    /// Returns the number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.state.lock().threads
    }

    /// Counts a thread that a model starts itself.
    #[cfg(all(test, greenroom_loom))]
    pub(crate) fn expect_thread(&self) {
        self.state.lock().threads += 1;
    }

    #[cfg(all(test, greenroom_loom))]
    pub(crate) fn idle(&self) -> usize {
        self.state.lock().idle.len()
    }

    /// Ends the wait of all idle threads that wait for a time.
    #[cfg(all(test, greenroom_loom))]
    pub(crate) fn let_time_pass(&self) {
        let idle = self.state.lock().idle.clone();
        let time = self.limits.idle;
        idle.iter().for_each(|it| it.parker.let_time_pass(1, time));
    }
}

/// The largest room in the queue that is kept while it is empty.
const JOBS_KEPT: usize = 256;

impl Jobs {
    /// Returns the number of threads that take jobs.
    fn own(&self) -> usize {
        self.threads - self.displaced
    }
}

/// The state of the threads for [blocking calls](crate::unblock()), in the [`Stats`](crate::Stats)
/// of their runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockingStats {
    /// The number of threads, with those that have replaced a worker whose thread waits in
    /// [`block_on`](crate::Runtime::block_on).
    pub threads: usize,
    /// How many of `threads` wait for a job.
    pub idle: usize,
    /// The number of jobs that wait for a thread.
    pub queued: usize,
    /// How long the first job in the queue waits already; `None` without one.
    pub longest_wait: Option<Duration>,
    /// The number of threads that were ever started.
    pub started: u64,
    /// How often the system has not started a thread. Jobs then wait for another thread, or for the
    /// next try, or run on the thread that has spawned them if there is no thread.
    pub failed_starts: u64,
}

#[cfg(all(test, not(greenroom_loom)))]
mod tests;

/// No thread could be started.
pub(crate) struct NoThread {
    pub(crate) error: io::Error,
    /// The jobs that the caller must run, because no thread is left to run them.
    pub(crate) jobs: VecDeque<Runnable>,
    /// After which time the caller must call [`BlockingPool::bring_again`].
    pub(super) again: Option<Duration>,
}

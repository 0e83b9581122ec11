//! The pool of threads for blocking calls: its queue of jobs and its threads.
//!
//! A thread is started only when a job finds no idle thread. It then stays in the pool, and parks
//! until there is another job; it never wakes on a timeout. A thread of the pool may also take over
//! the place of a worker whose thread waits in `block_on`. The former worker joins the pool when
//! its turn ends.

use std::collections::VecDeque;
use std::io;

use crate::contain::drop_refused;
use crate::instant::Instant;
use crate::sync::{Condvar, Mutex, MutexGuard, mutant};
use crate::task::Runnable;

/// The largest number of threads of one pool: far more than disks can serve at once, far fewer than
/// a process may have. Further jobs wait.
const THREADS_MAX: usize = 512;

/// The work of a thread of a pool.
pub(super) trait Turns {
    /// Continues as the worker with this index. Returns whether the thread comes back to the pool.
    fn hold_place(&self, index: usize) -> bool;

    fn run(&self, job: Runnable);

    /// Notes that the thread runs nothing any more.
    fn leave(&self);
}

pub(crate) struct BlockingPool {
    thread_name: String,
    state: Mutex<Jobs>,
    /// Signalled when there is a job or a place, or the pool is closed.
    changed: Condvar,
    /// Signalled when a thread has ended.
    ended: Condvar,
}

#[derive(Default)]
struct Jobs {
    jobs: VecDeque<Runnable>,
    /// The places of workers whose threads wait in `block_on`. Each is covered by an idle thread.
    places: Vec<usize>,
    /// The number of threads: without those that are workers, with those that were.
    threads: usize,
    /// How many of `threads` have given away a worker's place and have not joined the pool yet.
    displaced: usize,
    /// The number of waiting threads, including those that were notified and have not taken a job
    /// yet.
    idle: usize,
    over: bool,
}

impl BlockingPool {
    pub(crate) fn new(thread_name: String) -> Self {
        BlockingPool {
            thread_name,
            state: Mutex::new(Jobs::default()),
            changed: Condvar::new(),
            ended: Condvar::new(),
        }
    }

    /// Returns the name of the pool's threads.
    pub(super) fn thread_name(&self) -> String {
        format!("{}-blocking", self.thread_name)
    }

    /// Queues a job. Returns the jobs that the caller must run, because the pool has no thread.
    pub(super) fn push(
        &self,
        job: Runnable,
        start: impl FnOnce() -> io::Result<()>,
    ) -> VecDeque<Runnable> {
        let mut state = self.state.lock();
        if state.over {
            drop(state);
            drop_refused(job);
            return VecDeque::new();
        }
        state.jobs.push_back(job);
        if state.idle >= state.wanted() {
            drop(state);
            self.changed.notify_one();
            return VecDeque::new();
        }
        if state.own() >= THREADS_MAX {
            return VecDeque::new();
        }
        match self.grow(state, 0, start) {
            Ok(()) => VecDeque::new(),
            Err(NoThread { jobs, .. }) => jobs,
        }
    }

    /// Makes another thread continue as worker `index`. The caller, which was that worker, counts
    /// as a thread of the pool from then on. Returns false if no thread continues, because the pool
    /// is closed.
    ///
    /// [`THREADS_MAX`] does not apply here: waiting for a free thread could deadlock.
    pub(super) fn lend(
        &self,
        index: usize,
        start: impl FnOnce() -> io::Result<()>,
    ) -> Result<bool, NoThread> {
        let mut state = self.state.lock();
        if state.over {
            return Ok(false);
        }
        if state.idle > state.wanted() {
            state.displaced += 1;
            state.places.push(index);
            drop(state);
            self.changed.notify_one();
            return Ok(true);
        }
        self.grow(state, 1, start)?;
        Ok(true)
    }

    /// Starts one more thread, for a job or to replace one that is `displaced`.
    fn grow(
        &self,
        mut state: MutexGuard<'_, Jobs>,
        displaced: usize,
        start: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), NoThread> {
        state.threads += 1;
        state.displaced += displaced;
        drop(state);
        let Err(error) = start() else {
            return Ok(());
        };
        let mut state = self.state.lock();
        state.threads -= 1;
        state.displaced -= displaced;
        self.ended.notify_all();
        // If threads remain, they run the jobs. If several starts fail at once, the last caller
        // that fails takes all jobs.
        let jobs = if state.own() == 0 {
            std::mem::take(&mut state.jobs)
        } else {
            VecDeque::new()
        };
        Err(NoThread { error, jobs })
    }

    /// Runs the loop of a thread, whose work is `turns`. It ends when the pool is closed. It also
    /// ends when the thread has become a worker of a runtime that is over, since it then no longer
    /// belongs to the pool.
    pub(super) fn serve(&self, turns: &impl Turns) {
        let mut state = self.state.lock();
        loop {
            if state.over && mutant("a_place_is_lost_when_the_pool_is_over") {
                break;
            }
            // (PLACE-2) Before any job, and also when the pool is closed.
            if let Some(index) = state.places.pop() {
                drop(state);
                if !turns.hold_place(index) {
                    return;
                }
                state = self.state.lock();
                state.displaced -= 1;
            } else if let Some(job) = state.jobs.pop_front() {
                drop(state);
                turns.run(job);
                state = self.state.lock();
            } else if state.over || state.own() > THREADS_MAX {
                break;
            } else {
                state.idle += 1;
                state = self.changed.wait(state, None);
                state.idle -= 1;
            }
        }
        turns.leave();
        state.threads -= 1;
        drop(state);
        self.ended.notify_all();
    }

    /// Counts a thread that was a worker as one that takes jobs from now on.
    pub(super) fn come(&self) {
        self.state.lock().displaced -= 1;
    }

    /// Drops the jobs that have not begun and ends the idle threads. Waits for the busy threads
    /// until `deadline`, and returns how many are left then.
    pub(crate) fn close(&self, deadline: Option<Instant>) -> usize {
        let mut state = self.state.lock();
        state.over = true;
        let jobs = std::mem::take(&mut state.jobs);
        drop(state);
        self.changed.notify_all();
        drop(jobs);
        let mut state = self.state.lock();
        while state.threads > 0 {
            let wait = deadline.map(|deadline| deadline.duration_since(Instant::now()));
            if wait.is_some_and(|wait| wait.is_zero()) {
                break;
            }
            state = self.ended.wait(state, wait);
        }
        state.threads
    }

    /// Counts a thread that a model starts itself.
    #[cfg(all(test, greenroom_loom))]
    pub(crate) fn expect_thread(&self) {
        self.state.lock().threads += 1;
    }

    #[cfg(all(test, greenroom_loom))]
    pub(crate) fn idle(&self) -> usize {
        self.state.lock().idle
    }
}

impl Jobs {
    /// Returns the number of threads that take jobs.
    fn own(&self) -> usize {
        self.threads - self.displaced
    }

    /// Returns the number of idle threads that are, or will be, notified.
    fn wanted(&self) -> usize {
        self.jobs.len() + self.places.len()
    }
}

/// No thread could be started.
pub(crate) struct NoThread {
    pub(crate) error: io::Error,
    /// The jobs that the caller must run, because no thread is left to run them.
    pub(crate) jobs: VecDeque<Runnable>,
}

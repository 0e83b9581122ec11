//! The jobs of a pool for blocking calls, and who comes to them.
//!
//! A thread is started only when a job finds none idle, and stays, parked, for the next one. It does not wake by
//! itself. One may also go on as a worker whose thread waits in `block_on`; that one comes here instead when it is
//! given back.

use std::collections::VecDeque;
use std::io;

use crate::contain::drop_refused;
use crate::instant::Instant;
use crate::sync::{Condvar, Mutex, MutexGuard, mutant};
use crate::task::Runnable;

/// The most threads of one pool: far above what disks can serve at once, far below what a process
/// may have. Jobs beyond it wait.
const THREADS_MAX: usize = 512;

/// What a thread of a pool runs.
pub(super) trait Turns {
    /// Goes on as the worker of this index; returns whether the thread comes back to the pool.
    fn hold_place(&self, index: usize) -> bool;

    fn run(&self, job: Runnable);

    /// Notes that the thread runs nothing any more.
    fn leave(&self);
}

pub(crate) struct BlockingPool {
    thread_name: String,
    state: Mutex<Jobs>,
    /// There is a job, or the pool is over.
    changed: Condvar,
    /// A thread has ended.
    ended: Condvar,
}

#[derive(Default)]
struct Jobs {
    jobs: VecDeque<Runnable>,
    /// Workers whose thread waits in `block_on`: for each there is an idle thread to take over.
    places: Vec<usize>,
    /// How many threads there are, without those that are workers, with those that were.
    threads: usize,
    /// How many of them have given a worker's place away and have not come here yet.
    displaced: usize,
    /// Threads that wait for a job, also those that were told of one and have not taken it.
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

    /// Returns what its threads are called.
    pub(super) fn thread_name(&self) -> String {
        format!("{}-blocking", self.thread_name)
    }

    /// Takes a job; gives those that the caller must run, since there is no thread to be had.
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

    /// Has another thread go on as worker `index`; the caller, which was it until now, is one of
    /// the pool's from then on. False if nobody goes on, since the pool is over.
    ///
    /// [`THREADS_MAX`] does not hold here: whoever would wait for a place might wait for ever.
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

    /// Starts one thread more, for a job, or in the place of one that is `displaced`.
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
        // Others will come to the jobs, or find that they cannot be started either: the last one of
        // these runs the jobs of all.
        let jobs = if state.own() == 0 {
            std::mem::take(&mut state.jobs)
        } else {
            VecDeque::new()
        };
        Err(NoThread { error, jobs })
    }

    /// The body of a thread, which hosts `turns`. Ends when the pool is over, or when the thread has become a worker
    /// of a runtime that is over: then it is none of the pool's.
    pub(super) fn serve(&self, turns: &impl Turns) {
        let mut state = self.state.lock();
        loop {
            if state.over && mutant("a_place_is_lost_when_the_pool_is_over") {
                break;
            }
            // (PLACE-2) First, and also when the pool is over.
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

    /// Counts a thread that was a worker and comes to the jobs from now on.
    pub(super) fn come(&self) {
        self.state.lock().displaced -= 1;
    }

    /// Drops the jobs that have not begun and ends the threads; waits for those that are busy
    /// until `deadline`, and says how many are left then.
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
    /// How many threads there are that come to the jobs.
    fn own(&self) -> usize {
        self.threads - self.displaced
    }

    /// How many idle threads are, or will be, told of something.
    fn wanted(&self) -> usize {
        self.jobs.len() + self.places.len()
    }
}

/// No thread was started.
pub(crate) struct NoThread {
    pub(crate) error: io::Error,
    /// What the caller must run, since there is nobody else.
    pub(crate) jobs: VecDeque<Runnable>,
}

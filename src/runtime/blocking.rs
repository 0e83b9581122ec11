//! Threads for calls that block: as many as there are calls under way, up to a limit.
//!
//! A thread is started only when a job finds none idle, and stays, parked, for the next one. It
//! does not wake by itself.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::thread::{JoinHandle, ThreadId};

use super::current::{self, Place, Role};
use super::inner::Inner;
use crate::contain::contain;
use crate::error::Unjoined;
use crate::instant::Instant;
use crate::sync::{Condvar, Mutex};
use crate::task::{Home, Runnable, Task, Ticket, spawn};

/// The most threads of one pool: far above what disks can serve at once, far below what a process
/// may have. Jobs beyond it wait.
const THREADS_MAX: usize = 512;

/// Runs `job` on a thread that may block, and gives its value.
///
/// The threads are the current runtime's, or, outside any, the process's. Awaiting resumes a panic
/// of `job`. Dropping the task before the job has begun cancels it; once begun, it runs to its end.
///
/// If no thread can be started and there is none, the job runs on the calling thread.
///
/// ```
/// greenroom::run(async {
///     let read = greenroom::unblock(|| std::fs::read_to_string("Cargo.toml"));
///     assert!(read.await.unwrap().contains("greenroom"));
/// });
/// ```
///
/// # Cancel safety
/// Nothing is lost but the value.
pub fn unblock<T, F>(job: F) -> Task<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    spawn(
        BlockingHome {
            runtime: current::runtime(),
        },
        async move { job() },
    )
}

pub(crate) struct Blocking {
    thread_name: String,
    state: Mutex<State>,
    /// There is a job, or the pool is over.
    changed: Condvar,
    /// A thread has ended.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Runnable>,
    threads: usize,
    handles: Vec<JoinHandle<()>>,
    /// The threads that have ended.
    out: Vec<ThreadId>,
    /// Threads that wait for a job, also those that were told of one and have not taken it.
    idle: usize,
    over: bool,
}

impl Blocking {
    pub(super) fn new(thread_name: String) -> Self {
        Blocking {
            thread_name,
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
            ended: Condvar::new(),
        }
    }

    /// The pool of the process, for those outside any runtime.
    fn of_process() -> &'static Blocking {
        static POOL: OnceLock<Blocking> = OnceLock::new();
        POOL.get_or_init(|| Blocking::new("greenroom".into()))
    }

    /// Takes a job; gives those that the caller must run, since there is no thread to be had.
    fn push(
        &self,
        job: Runnable,
        start: impl FnOnce() -> Option<JoinHandle<()>>,
    ) -> VecDeque<Runnable> {
        let mut state = self.state.lock();
        if state.over {
            drop(state);
            drop(job);
            return VecDeque::new();
        }
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() {
            drop(state);
            self.changed.notify_one();
            return VecDeque::new();
        }
        if state.threads >= THREADS_MAX {
            return VecDeque::new();
        }
        state.threads += 1;
        drop(state);
        let started = start();
        let mut state = self.state.lock();
        if let Some(handle) = started {
            state.handles.push(handle);
            return VecDeque::new();
        }
        state.threads -= 1;
        self.ended.notify_all();
        // Others will come to it, or find that they cannot be started either: the last one of
        // these runs the jobs of all.
        if state.threads == 0 {
            std::mem::take(&mut state.jobs)
        } else {
            VecDeque::new()
        }
    }

    /// The body of a thread.
    fn serve(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                contain(|| job.run());
                state = self.state.lock();
            } else if state.over {
                break;
            } else {
                state.idle += 1;
                state = self.changed.wait(state, None);
                state.idle -= 1;
            }
        }
        state.threads -= 1;
        state.out.push(std::thread::current().id());
        drop(state);
        self.ended.notify_all();
    }

    /// Drops the jobs that have not begun and ends the threads; waits for those that are busy
    /// until `deadline`, and says how many are left then.
    pub(super) fn close(&self, deadline: Option<Instant>) -> usize {
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
        let left_behind = state.threads;
        let (handles, out) = (
            std::mem::take(&mut state.handles),
            std::mem::take(&mut state.out),
        );
        drop(state);
        for handle in handles
            .into_iter()
            .filter(|handle| out.contains(&handle.thread().id()))
        {
            let _ = handle.join();
        }
        left_behind
    }
}

/// Where blocking jobs live: the pool of a runtime, or of the process.
#[derive(Clone)]
struct BlockingHome {
    runtime: Option<Arc<Inner>>,
}

impl BlockingHome {
    fn pool(&self) -> &Blocking {
        self.runtime
            .as_ref()
            .map_or_else(|| Blocking::of_process(), |runtime| &runtime.blocking)
    }

    fn start(&self) -> Option<JoinHandle<()>> {
        let home = self.clone();
        let name = format!("{}-blocking", home.pool().thread_name);
        let body = move || match &home.runtime {
            Some(runtime) => {
                let place = Place::new(runtime, Role::Blocking);
                let _entered = place.enter();
                home.pool().serve();
            }
            None => home.pool().serve(),
        };
        std::thread::Builder::new().name(name).spawn(body).ok()
    }
}

impl Home for BlockingHome {
    fn schedule(&self, runnable: Runnable, _again: bool) {
        for job in self.pool().push(runnable, || self.start()) {
            contain(|| job.run());
        }
    }

    fn report(&self, unjoined: &Unjoined<'_>) {
        match &self.runtime {
            Some(runtime) => runtime.report(unjoined),
            None => super::builder::print_fault(unjoined),
        }
    }

    // A job is one poll long, so it never goes pending.

    fn track(&self, _waker: &Waker) -> Option<Ticket> {
        None
    }

    fn untrack(&self, _ticket: Ticket) {}
}

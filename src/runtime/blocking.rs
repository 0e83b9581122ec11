//! Threads for calls that block: as many as there are calls under way, up to a limit.
//!
//! A thread is started only when a job finds none idle, and stays, parked, for the next one. It
//! does not wake by itself. One may also go on as a worker whose thread waits in `block_on`; that
//! one comes here instead when it is given back.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::Waker;

use super::crew::Crew;
use super::current::{self, Place, Role};
use super::inner::Inner;
use super::simulation::RunsOn;
use super::worker::{Left, hold_place, work};
use crate::contain::{contain, drop_refused};
use crate::error::UnhandledFault;
use crate::instant::Instant;
use crate::sync::{Condvar, Mutex, MutexGuard, PerProcess, Process, mutant};
use crate::task::{Executor, LiveIndex, Runnable, Task, spawn};

/// The most threads of one pool: far above what disks can serve at once, far below what a process
/// may have. Jobs beyond it wait.
const THREADS_MAX: usize = 512;

/// Runs `job` on a thread that may block, and gives its value.
///
/// The threads are the current runtime's, or, outside any, the process's. Awaiting resumes a panic
/// of `job`. Dropping the task before the job has begun cancels it; once begun, it runs to its end.
///
/// There are 512 of these threads at most. When each of them has a job, further jobs wait in a line until one
/// is free. So jobs should not wait for other jobs: if all threads have jobs that wait for some in the
/// line, they wait for ever. A task that awaits them takes no thread.
///
/// If no thread can be started and there is none, the job runs on the calling thread.
///
/// # Panics
/// In a child of a `fork`, if the current runtime is the parent's.
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
#[track_caller]
pub fn unblock<T, F>(job: F) -> Task<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let runtime = current::runtime();
    if let Some(runtime) = &runtime {
        runtime.check_process();
    }
    spawn(BlockingExecutor::of(runtime), async move { job() })
}

pub(crate) struct Blocking {
    thread_name: String,
    /// The threads, and the workers, to be joined at the end.
    pub(crate) crew: Arc<Crew>,
    state: Mutex<State>,
    /// There is a job, or the pool is over.
    changed: Condvar,
    /// A thread has ended.
    ended: Condvar,
}

#[derive(Default)]
struct State {
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

impl Blocking {
    pub(super) fn new(thread_name: String) -> Self {
        Blocking {
            thread_name,
            crew: Crew::new(),
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
            ended: Condvar::new(),
        }
    }

    /// The pool of the process, for those outside any runtime.
    fn of_process() -> &'static Blocking {
        static POOL: PerProcess<Blocking> = PerProcess::new();
        POOL.get_or_init(|| Blocking::new("greenroom".into()))
    }

    /// Takes a job; gives those that the caller must run, since there is no thread to be had.
    fn push(&self, job: Runnable, start: impl FnOnce() -> io::Result<()>) -> VecDeque<Runnable> {
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
    pub(super) fn lend(&self, runtime: &Arc<Inner>, index: usize) -> Result<bool, NoThread> {
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
        let runtime = Some(runtime.clone());
        self.grow(state, 1, || {
            BlockingExecutor::of(runtime).start(Some(index))
        })?;
        Ok(true)
    }

    /// Starts one thread more, for a job, or in the place of one that is `displaced`.
    fn grow(
        &self,
        mut state: MutexGuard<'_, State>,
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

    /// The body of a thread.
    fn serve(&self, runtime: Option<&Arc<Inner>>) {
        let process = Process::current();
        let mut state = self.state.lock();
        loop {
            if state.over && mutant("a_place_is_lost_when_the_pool_is_over") {
                break;
            }
            // (H2 in nested.rs) First, and also when the pool is over.
            if let Some((runtime, index)) = runtime.zip(state.places.pop()) {
                drop(state);
                if hold_place(runtime, index) == Left::Over {
                    // As a worker it was none of ours.
                    return;
                }
                runtime.fall_apart();
                state = self.state.lock();
                state.displaced -= 1;
            } else if let Some(job) = state.jobs.pop_front() {
                drop(state);
                run(runtime, job);
                process.end_copy();
                state = self.state.lock();
            } else if state.over || state.own() > THREADS_MAX {
                break;
            } else {
                state.idle += 1;
                state = self.changed.wait(state, None);
                state.idle -= 1;
            }
        }
        self.crew.leave();
        state.threads -= 1;
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
        state.threads
    }

    /// Counts a thread that a model starts itself.
    #[cfg(all(test, greenroom_loom))]
    pub(super) fn expect_thread(&self) {
        self.state.lock().threads += 1;
    }

    #[cfg(all(test, greenroom_loom))]
    pub(super) fn idle(&self) -> usize {
        self.state.lock().idle
    }
}

impl State {
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
pub(super) struct NoThread {
    pub(super) error: io::Error,
    /// What the caller must run, since there is nobody else.
    pub(super) jobs: VecDeque<Runnable>,
}

/// Runs a job, which keeps the runtime alive until its end.
pub(super) fn run(runtime: Option<&Arc<Inner>>, job: Runnable) {
    contain(|| job.run());
    runtime.inspect(|runtime| runtime.fall());
}

/// Makes the calling thread, which was a worker, one of the pool's, until that is over.
pub(super) fn come(runtime: &Arc<Inner>) {
    runtime.fall_apart();
    runtime.blocking.state.lock().displaced -= 1;
    serve(runtime);
}

/// The body of a thread of a runtime's pool.
pub(super) fn serve(runtime: &Arc<Inner>) {
    let place = Place::new(runtime, Role::Blocking);
    let _entered = place.enter();
    runtime.blocking.serve(Some(runtime));
}

/// Where blocking jobs live: the pool of a runtime, or of the process.
#[derive(Clone)]
struct BlockingExecutor {
    runtime: Option<Arc<Inner>>,
    /// The one that has its threads.
    process: Process,
}

impl BlockingExecutor {
    fn of(runtime: Option<Arc<Inner>>) -> Self {
        BlockingExecutor {
            process: Process::current(),
            runtime,
        }
    }

    fn pool(&self) -> &Blocking {
        self.runtime
            .as_ref()
            .map_or_else(|| Blocking::of_process(), |runtime| &runtime.blocking)
    }

    /// Starts a thread, which is first the worker of this index.
    fn start(&self, worker: Option<usize>) -> io::Result<()> {
        let (runtime, pool) = (self.runtime.clone(), self.pool());
        let name = format!("{}-blocking", pool.thread_name);
        let body = move || match (runtime, worker) {
            (Some(runtime), Some(index)) => work(&runtime, index),
            (Some(runtime), None) => serve(&runtime),
            (None, _) => Blocking::of_process().serve(None),
        };
        pool.crew.start(name, body)
    }
}

impl Executor for BlockingExecutor {
    fn process(&self) -> Process {
        self.process
    }

    fn schedule(&self, runnable: Runnable, _again: bool) {
        let runtime = self.runtime.as_ref();
        if let Some(runtime) = runtime
            && let Some(simulation) = runtime.simulation()
        {
            return simulation.push(runtime, runnable, false, &RunsOn::Blocking);
        }
        runtime.inspect(|runtime| runtime.rise());
        for job in self.pool().push(runnable, || self.start(None)) {
            run(runtime, job);
        }
    }

    fn report(&self, unhandled: &UnhandledFault<'_>) {
        match &self.runtime {
            Some(runtime) => runtime.report(unhandled),
            None => super::builder::print_fault(unhandled),
        }
    }

    // A job is one poll long, so it never goes pending.

    fn track(&self, _waker: &Waker) -> Option<LiveIndex> {
        None
    }

    fn untrack(&self, _ticket: LiveIndex) {}
}

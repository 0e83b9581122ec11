//! Blocking calls: the pools of threads that run the jobs of `unblock`.
//!
//! Each runtime has a pool. Jobs that are started outside any runtime run in the pool of the
//! process.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::blocking_pool::{BlockingLimits, BlockingPool, Borrower, NoThread, Turns};
use super::context::{self, Role, ThreadContext};
use super::engine::RunsOn;
use super::inner::Inner;
use super::options::print_fault;
use super::thread_set::ThreadSet;
use super::thread_set::ThreadStart;
use super::worker_thread::{run_worker, work};
use crate::contain::contain;
use crate::error::UnhandledFault;
use crate::scheduler::{WorkerEnd, WorkerLocal};
use crate::sync::{PerProcess, Process, mutant};
use crate::task::{Executor, Runnable, Task, TaskHooks, is_large, spawn};
use crate::task_local::TaskLocals;
use crate::timers::{TimerThread, call_after};

/// Runs `job` on a thread that may block, and returns a task for its value.
///
/// The job starts without being awaited. It runs on a thread of the current runtime's pool or,
/// outside any runtime, of the process's pool. The caller's current runtime is also the current one
/// in the job. Awaiting the task resumes a panic of the job.
///
/// A pool has at most 512 threads, or as many as
/// [`max_blocking_workers`](crate::Builder::max_blocking_workers) says. While all of them are busy,
/// further jobs wait in a queue, first in first out. A job that blocks until another job has run
/// can therefore deadlock: if every thread runs a job that waits for a queued job, none of them
/// ever finishes. A task that awaits a job occupies no thread of the pool.
///
/// A thread without a job ends after 10 s, or after
/// [`blocking_idle`](crate::Builder::blocking_idle). The last one stays.
///
/// If no thread can be started and the pool has none, the job runs on the calling thread. If the
/// pool has threads and all of them are busy, the job waits. A start is tried again after 10 ms, and
/// then each time after twice as long, up to 1 s.
///
/// # Cancel safety
/// Dropping the task before the job has begun cancels the job. A job that has begun runs to its
/// end, and its value is dropped.
///
/// # Examples
///
/// ```
/// greenroom::run(async {
///     let read = greenroom::unblock(|| std::fs::read_to_string("Cargo.toml"));
///     assert!(read.await.unwrap().contains("greenroom"));
/// });
/// ```
#[doc(alias = "spawn_blocking")]
#[track_caller]
pub fn unblock<T, F>(job: F) -> Task<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let runtime = context::runtime();
    if let Some(runtime) = &runtime {
        runtime.check_process();
    }
    let executor = BlockingExecutor::of(runtime);
    if const { is_large::<F>() } {
        let job = Box::new(job);
        return spawn::<F, _, _>(executor, async move { job() });
    }
    spawn::<F, _, _>(executor, async move { job() })
}

/// Runs a call on a thread of the pool of a runtime, or of the process, as [`unblock`] does.
///
/// If the pool has no thread and none could be started, the call runs on this thread, where
/// [`is_lent`] returns false. If the pool is closed, the call is dropped.
pub(crate) fn borrow_thread(runtime: Option<&Arc<Inner>>, call: impl FnOnce() + Send + 'static) {
    let executor = BlockingExecutor::of(runtime.cloned());
    spawn::<(), _, _>(executor, async move { call() }).detach();
}

/// Tries again to start a thread for the calls that wait.
pub(crate) fn bring_thread(runtime: Option<&Arc<Inner>>) {
    let executor = BlockingExecutor::of(runtime.cloned());
    let (pool, _) = executor.pool();
    executor.run_refused(pool.bring_more(|| executor.start_thread(None)));
}

/// Lets a borrower know when its calls wait for a thread that the system has not started.
pub(crate) fn register_borrower<B>(runtime: Option<&Arc<Inner>>, borrower: &Arc<B>)
where
    B: Borrower + 'static,
{
    let (address, borrower) = (address(borrower), Arc::downgrade(borrower));
    let executor = BlockingExecutor::of(runtime.cloned());
    executor.pool().0.register(address, Some(borrower));
}

/// Forgets a borrower that was registered.
pub(crate) fn forget_borrower<B>(runtime: Option<&Arc<Inner>>, borrower: &Arc<B>) {
    let executor = BlockingExecutor::of(runtime.cloned());
    executor.pool().0.register(address(borrower), None);
}

fn address<B>(borrower: &Arc<B>) -> usize {
    Arc::as_ptr(borrower).cast::<()>() as usize
}

/// Returns the largest number of threads of the pool of a runtime, or of the process.
pub(crate) fn max_blocking_workers(runtime: Option<&Arc<Inner>>) -> usize {
    runtime
        .map_or(BlockingLimits::default(), |it| it.options().blocking)
        .threads
}

crate::sync::thread_local! {
    /// This thread runs a job because no thread of the pool could be started.
    static IS_SUBSTITUTE: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether the job that runs here has a thread of a pool. Otherwise it runs on the thread
/// that has started it.
pub(crate) fn is_lent() -> bool {
    !IS_SUBSTITUTE.try_with(Cell::get).unwrap_or(false)
}

/// Runs a job on the calling thread, because no thread of the pool could be started.
fn substitute(runtime: Option<&Arc<Inner>>, job: Runnable) {
    let before = IS_SUBSTITUTE.try_with(|it| it.replace(true));
    TaskLocals::default().run(|| run(runtime, job));
    let _ = IS_SUBSTITUTE.try_with(|it| it.set(before.unwrap_or(false)));
}

/// Runs a job, and then releases the count that the job holds as activity of the runtime.
pub(super) fn run(runtime: Option<&Arc<Inner>>, job: Runnable) {
    contain(|| job.run());
    runtime.inspect(|runtime| {
        runtime.dec_activity();
        runtime.begin_silence();
    });
}

/// Makes another thread continue as the worker. This thread joins the pool for blocking
/// calls when its turn ends. Returns false if no thread continues, because the runtime has ended.
pub(super) fn give_away<'a>(
    context: &ThreadContext<'a>,
    local: &'a WorkerLocal<'a>,
) -> io::Result<bool> {
    let runtime = context.runtime;
    local.hand_over();
    let role = context.role.get();
    if !mutant("a_displaced_thread_stays_the_worker") {
        // (WORKER-1) Set first, so that this thread touches no queue once another thread has them.
        context.role.set(Role::Displaced(local));
    }
    runtime.makes_way(local.index());
    // The worker is still counted where workers are. This thread is counted until it joins the pool.
    runtime.inc_activity_apart();
    let own = Some(runtime.clone());
    let start = || BlockingExecutor::of(own).start_thread(Some(local.index()));
    let lent = runtime.blocking.lend(local.index(), start);
    if matches!(lent, Ok(true)) {
        return Ok(true);
    }
    runtime.shutdown.progress();
    runtime.dec_activity_apart();
    local.take_back();
    context.role.set(role);
    lent.map_err(|refused| {
        for job in refused.jobs {
            substitute(Some(runtime), job);
        }
        refused.error
    })
}

/// Makes the calling thread, which was a worker, a thread of the pool until the pool is closed.
pub(super) fn join_pool(runtime: &Arc<Inner>) {
    runtime.dec_activity_apart();
    runtime.blocking.join();
    serve(runtime, false);
}

/// Runs the jobs of a runtime's pool on the calling thread until the pool is closed or has no work
/// for it. `for_jobs`: the thread was started for jobs.
pub(super) fn serve(runtime: &Arc<Inner>, for_jobs: bool) {
    let context = ThreadContext::new(runtime, Role::Blocking);
    let _entered = context.enter();
    let executor = BlockingExecutor::of(Some(runtime.clone()));
    runtime.blocking.serve(&executor, for_jobs);
    runtime.shutdown.progress();
}

/// Returns the pool of the process, for jobs outside any runtime, and its threads.
fn pool_of_process() -> &'static (BlockingPool, Arc<ThreadSet>) {
    static POOL: PerProcess<(BlockingPool, Arc<ThreadSet>)> = PerProcess::new();
    POOL.get_or_init(|| {
        let pool = BlockingPool::new("greenroom".into(), BlockingLimits::default());
        (pool, ThreadSet::new(None))
    })
}

/// The executor of blocking jobs: the pool of a runtime, or the pool of the process.
#[derive(Clone)]
struct BlockingExecutor {
    runtime: Option<Arc<Inner>>,
    /// The process that has the pool's threads.
    process: Process,
}

impl BlockingExecutor {
    fn of(runtime: Option<Arc<Inner>>) -> Self {
        BlockingExecutor {
            process: Process::current(),
            runtime,
        }
    }

    fn pool(&self) -> (&BlockingPool, &Arc<ThreadSet>) {
        match &self.runtime {
            Some(runtime) => (&runtime.blocking, &runtime.threads),
            None => {
                let (pool, threads) = pool_of_process();
                (pool, threads)
            }
        }
    }

    /// Runs the jobs for which there is no thread.
    fn run_refused(&self, brought: Result<(), NoThread>) {
        let Err(NoThread { jobs, again, .. }) = brought else {
            return;
        };
        // The pool has a thread less than it was about to have.
        self.runtime.as_ref().inspect(|it| it.shutdown.progress());
        if let Some(delay) = again {
            self.start_later(delay);
        }
        for job in jobs {
            substitute(self.runtime.as_ref(), job);
        }
    }

    /// Starts a thread, which begins as the worker with index `worker` if there is one.
    fn start_thread(&self, worker: Option<usize>) -> io::Result<()> {
        let (runtime, (pool, threads)) = (self.runtime.clone(), self.pool());
        let body = move || match (runtime, worker) {
            (Some(runtime), Some(index)) => work(&runtime, index),
            (Some(runtime), None) => serve(&runtime, true),
            (None, _) => pool_of_process().0.serve(&BlockingExecutor::of(None), true),
        };
        let around = self
            .runtime
            .as_ref()
            .and_then(|it| it.options.around.clone());
        threads
            .start(pool.thread_name(), around, body)
            .and_then(ThreadStart::wait)
    }
}

/// A thread of the pool.
impl Turns for BlockingExecutor {
    fn run_worker(&self, index: usize) -> bool {
        let Some(runtime) = &self.runtime else {
            unreachable!("the pool of the process has no workers")
        };
        let comes_back = run_worker(runtime, index) == WorkerEnd::Displaced;
        if comes_back {
            runtime.dec_activity_apart();
        }
        comes_back
    }

    fn run(&self, job: Runnable) {
        run(self.runtime.as_ref(), job);
        self.process.end_copy();
    }

    fn start(&self) -> io::Result<()> {
        BlockingExecutor::of(self.runtime.clone()).start_thread(None)
    }

    fn start_later(&self, delay: Duration) {
        let own = self.clone();
        let again = move || {
            if own.process.is_current() {
                let (pool, _) = own.pool();
                own.run_refused(pool.bring_again(|| own.start_thread(None)));
            }
        };
        match &self.runtime {
            Some(runtime) => call_after(&**runtime, delay, again),
            // Without that thread, jobs wait for another one, or for the start that the next job
            // tries.
            None if TimerThread::call_after(delay, again).is_err() => self.pool().0.forget_retry(),
            None => {}
        }
    }

    fn leave(&self) {
        let (_, threads) = self.pool();
        threads.leave();
    }
}

impl Executor for BlockingExecutor {
    fn schedule(&self, runnable: Runnable, _again: bool) {
        let runtime = self.runtime.as_ref();
        let taken = match runtime {
            Some(runtime) => {
                let engine = runtime.engine();
                engine.take(runtime, runnable, false, &RunsOn::Blocking)
            }
            None => Err(runnable),
        };
        let Err(runnable) = taken else { return };
        runtime.inspect(|runtime| runtime.inc_activity());
        let (pool, _) = self.pool();
        self.run_refused(pool.push(runnable, || self.start_thread(None)));
    }

    fn hooks(&self) -> &(dyn TaskHooks + 'static) {
        self
    }

    // A job is a single poll, so it never goes pending.
}

impl TaskHooks for BlockingExecutor {
    fn process(&self) -> Process {
        self.process
    }

    fn end_of_a_task(&self) -> &'static str {
        "a blocking call"
    }

    fn report(&self, unhandled: &UnhandledFault<'_>) {
        match &self.runtime {
            Some(runtime) => runtime.report(unhandled),
            None => print_fault(unhandled),
        }
    }
}

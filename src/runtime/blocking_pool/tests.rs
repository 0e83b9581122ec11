use std::cell::{Cell, RefCell};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::{BlockingLimits, BlockingPool, Turns};
use crate::error::UnhandledFault;
use crate::sync::Mutex;
use crate::task::{Executor, Runnable, TaskHooks, spawn};

/// Takes the runnables of tasks.
#[derive(Clone)]
struct Taken(Arc<Mutex<Vec<Runnable>>>);

impl Executor for Taken {
    fn schedule(&self, runnable: Runnable, _again: bool) {
        self.0.lock().push(runnable);
    }

    fn hooks(&self) -> &(dyn TaskHooks + 'static) {
        self
    }
}

impl TaskHooks for Taken {
    fn report(&self, _unhandled: &UnhandledFault<'_>) {}
}

fn job() -> Runnable {
    let taken = Taken(Arc::new(Mutex::new(Vec::new())));
    spawn::<(), _, _>(taken.clone(), async {}).detach();
    let job = taken.0.lock().pop();
    job.expect("the task is scheduled")
}

/// Counts what is started, and starts nothing.
struct Counts<'a> {
    pool: &'a BlockingPool,
    started: Cell<usize>,
    run: Cell<usize>,
    later: RefCell<Vec<u128>>,
}

impl Turns for Counts<'_> {
    fn run_worker(&self, _index: usize) -> bool {
        true
    }

    fn run(&self, job: Runnable) {
        job.run();
        self.run.set(self.run.get() + 1);
        if self.run.get() == 10 {
            drop(self.pool.close());
        }
    }

    fn start(&self) -> io::Result<()> {
        self.started.set(self.started.get() + 1);
        Ok(())
    }

    fn start_later(&self, delay: Duration) {
        self.later.borrow_mut().push(delay.as_millis());
    }

    fn leave(&self) {}
}

#[test]
fn a_burst_starts_one_thread_and_that_thread_the_next() {
    let pool = BlockingPool::new(String::new(), BlockingLimits::default());
    let turns = Counts {
        pool: &pool,
        started: Cell::new(0),
        run: Cell::new(0),
        later: RefCell::default(),
    };
    for _ in 0..10 {
        assert!(pool.push(job(), || turns.start()).is_ok());
    }
    assert_eq!(turns.started.get(), 1);
    // The second thread never looks for a job, so no third one is started.
    pool.serve(&turns, true);
    assert_eq!((turns.run.get(), turns.started.get()), (10, 2));
    assert_eq!(pool.stats().started, 2);
}

#[test]
fn a_thread_that_does_not_start_leaves_the_jobs_to_its_caller_or_to_other_threads() {
    let pool = BlockingPool::new(String::new(), BlockingLimits::default());
    let fails = || Err(io::ErrorKind::OutOfMemory.into());
    assert_eq!(pool.push(job(), fails).unwrap_err().jobs.len(), 1);
    assert!(pool.push(job(), || Ok(())).is_ok());
    // The first thread is on its way, so nothing else is tried.
    assert!(pool.push(job(), fails).is_ok());
    let stats = pool.stats();
    assert_eq!((stats.threads, stats.idle, stats.queued), (1, 0, 2));
    assert_eq!((stats.started, stats.failed_starts), (1, 1));
    assert!(stats.longest_wait.is_some());
}

#[test]
fn a_start_that_fails_is_tried_again_after_ever_longer_times() {
    let pool = BlockingPool::new(String::new(), BlockingLimits::default());
    let fails = || Err(io::ErrorKind::OutOfMemory.into());
    assert!(pool.push(job(), || Ok(())).is_ok());
    assert!(pool.push(job(), fails).is_ok(), "a thread is on its way");
    let turns = Fails {
        pool: &pool,
        later: Cell::new(None),
        run: Cell::new(0),
    };
    pool.serve(&turns, true);
    assert_eq!((turns.run.get(), turns.later.get()), (2, None));
    // Each of nine times another one beside it, and the first one.
    assert_eq!(pool.stats().failed_starts, 19);
    assert_eq!(pool.stats().started, 2);
}

/// A thread of which the first job does not end before another thread was started.
struct Fails<'a> {
    pool: &'a BlockingPool,
    later: Cell<Option<Duration>>,
    run: Cell<usize>,
}

impl Turns for Fails<'_> {
    fn run_worker(&self, _index: usize) -> bool {
        true
    }

    fn run(&self, job: Runnable) {
        self.run.set(self.run.get() + 1);
        job.run();
        if self.run.get() == 2 {
            return drop(self.pool.close());
        }
        for millis in [10, 20, 40, 80, 160, 320, 640, 1000, 1000] {
            let delay = self.later.take().expect("it is tried again");
            assert_eq!(delay.as_millis(), millis);
            let fails = || Err(io::ErrorKind::OutOfMemory.into());
            // Another try is not due as well.
            let other = self.pool.bring_more(fails).unwrap_err();
            assert_eq!((other.jobs.len(), other.again), (0, None));
            let again = self.pool.bring_again(fails).unwrap_err();
            assert_eq!(again.jobs.len(), 0);
            self.later.set(again.again);
        }
        assert!(self.pool.bring_again(|| Ok(())).is_ok());
        self.later.set(None);
    }

    fn start(&self) -> io::Result<()> {
        Err(io::ErrorKind::OutOfMemory.into())
    }

    fn start_later(&self, delay: Duration) {
        self.later.set(Some(delay));
    }

    fn leave(&self) {}
}

//! `model_65`: the threads of a pool, which are brought to its jobs one after another.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ::loom::explore;
use ::loom::thread::{JoinHandle, spawn, yield_now};

use super::super::blocking_pool::{BlockingLimits, BlockingPool, Turns};
use super::{Fate, Gate, join, model_from_explore, token};
use crate::task::Runnable;

struct Runs;

impl Turns for Runs {
    fn run_worker(&self, _index: usize) -> bool {
        true
    }

    fn run(&self, job: Runnable) {
        job.run();
    }

    fn start(&self) -> io::Result<()> {
        no_thread()
    }

    fn start_later(&self, _delay: Duration) {}

    fn leave(&self) {}
}

fn no_thread() -> io::Result<()> {
    Err(io::ErrorKind::OutOfMemory.into())
}

/// Returns a pool with two threads that wait. Each later one waits less long.
fn pool() -> (Arc<BlockingPool>, Vec<JoinHandle<()>>) {
    let limits = BlockingLimits {
        threads: 2,
        idle: Duration::from_secs(1),
    };
    let pool = Arc::new(BlockingPool::new(String::new(), limits));
    let thread = |before| {
        let own = pool.clone();
        own.expect_thread();
        let thread = spawn(move || own.serve(&Runs, false));
        while pool.idle() == before {
            yield_now();
        }
        thread
    };
    let threads = vec![thread(0), thread(1)];
    (pool, threads)
}

fn push(pool: &BlockingPool, body: impl FnOnce() + 'static) -> Arc<Fate> {
    let (job, fate) = token(body);
    assert!(pool.push(job, no_thread).is_ok(), "the pool has threads");
    fate
}

/// Checks that a job runs if the thread that is woken for it is about to end.
#[test]
fn model_65_a_thread_that_is_woken_late_runs_the_job() {
    model_from_explore(|| {
        let (pool, threads) = pool();
        explore();
        let own = pool.clone();
        let passes = spawn(move || own.let_time_pass());
        let done = Gate::new();
        let opens = done.clone();
        let fate = push(&pool, move || opens.open());
        done.wait();
        join(vec![passes]);
        drop(pool.close());
        join(threads);
        assert_eq!(fate.of(), (1, 0), "run once");
    });
}

/// Checks that both of two jobs get a thread, of which the first waits for the second.
#[test]
fn model_65_jobs_that_wait_for_each_other_get_threads() {
    model_from_explore(|| {
        let (pool, threads) = pool();
        explore();
        let (begun, done) = (Gate::new(), Gate::new());
        let (waits, opens) = (begun.clone(), done.clone());
        push(&pool, move || {
            waits.wait();
            opens.open();
        });
        push(&pool, move || begun.open());
        done.wait();
        drop(pool.close());
        join(threads);
    });
}

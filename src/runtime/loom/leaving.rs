//! `model_40`: a shutdown, and a thread that runs nothing any more and drops its thread-locals.

use ::loom::explore;
use ::loom::thread::spawn;
use std::time::Duration;

use super::super::handle::Runtime;
use super::super::worker_thread::work;
use super::{Gate, OnDrop, end, model_from_explore, runtime};
use crate::task;

/// Checks that the leaving thread does not wait for the shutdown, which waits for it.
#[test]
fn model_40_a_leaving_thread_may_drop_the_last_runtime_clone() {
    model_from_explore(|| {
        let inner = runtime(1);
        inner.shutdown.expect_workers(1);
        let last = Runtime::counting(inner.clone());
        let own = inner.clone();
        let worker = spawn(move || {
            own.threads.enter();
            work(&own, 0);
            // Dropped here as a thread-local would be.
            drop(last);
        });
        explore();
        inner.close(Duration::ZERO);
        worker.join().unwrap();
    });
}

/// Checks that a thread-local may wait for a task that it spawns while the shutdown joins its thread.
#[test]
fn model_40_a_leaving_thread_may_wait_for_the_drop_of_its_task() {
    model_from_explore(|| {
        let inner = runtime(1);
        let own = inner.clone();
        let [left, goes_on, dropped] = [(); 3].map(|()| Gate::new());
        let (leaves, waits, gone) = (left.clone(), goes_on.clone(), dropped.clone());
        let thread = spawn(move || {
            own.threads.enter();
            own.threads.leave();
            leaves.open();
            waits.wait();
            let keeps = OnDrop(move || dropped.open());
            let task = task::spawn::<(), _, _>(own, async move {
                let _keeps = keeps;
            });
            gone.wait();
            drop(task);
        });
        left.wait();
        explore();
        goes_on.open();
        // What a shutdown does when its last worker has ended.
        assert!(inner.shutdown.begin());
        end(&inner);
        inner.cancel_all();
        inner.threads.join(None, || inner.drain());
        thread.join().unwrap();
    });
}

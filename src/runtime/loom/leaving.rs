//! `model_40`: a shutdown, and a thread that has left its worker and drops the last runtime clone.

use ::loom::explore;
use ::loom::thread::spawn;
use std::time::Duration;

use super::super::handle::Runtime;
use super::super::worker_thread::work;
use super::{model_from_explore, runtime};

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

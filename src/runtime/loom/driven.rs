//! `model_53`: a worker that waits as a future, and is polled when its waker is called.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use ::loom::thread::spawn;

use super::super::driver::Driver;
use super::super::inner::Inner;
use super::{end, join, push, queues, runtime_driven, runtime_of, start};
use crate::instant::{Instant, SystemInstant};
use crate::scheduler::policy::Sharing;
use crate::scheduler::sleep::{View, Woken, WorkerSleep};
use crate::scheduler::{Scheduler, choose};

/// A driver that leaves the worker to the loop without a driver, which waits only for its waker.
struct Absent;

impl Driver for Absent {
    fn drive(&self, _worker: Pin<&mut dyn Future<Output = ()>>) {}

    fn sleep_until(&self, _at: SystemInstant) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        unreachable!("the worker runs without its driver")
    }
}

fn is_run_by_a_worker_that_lies_down(inner: Arc<Inner>) {
    let workers = start(&inner);
    let other = spawn({
        let inner = inner.clone();
        move || {
            let own = inner.clone();
            push(&inner, move || end(&own))
        }
    });
    let fate = other.join().unwrap();
    join(workers);
    assert_eq!(fate.of(), (1, 0), "run once");
}

/// Checks that an entry that is pushed from outside while the only worker parks is run.
#[test]
fn model_53_a_push_is_not_missed_by_a_driven_worker_that_parks() {
    ::loom::model(|| {
        let inner = runtime_of(Scheduler::uncounted(1), Some(Arc::new(Absent)));
        is_run_by_a_worker_that_lies_down(inner.clone());
        queues(&inner).sleep.audit();
    });
}

/// Checks that this is also true if the policy has one queue for all workers.
#[test]
fn model_53_an_enqueue_is_not_missed_by_a_driven_worker_that_parks() {
    ::loom::model(|| {
        let policy = choose(Sharing::default());
        let inner = runtime_driven(1, policy, Some(Arc::new(Absent)));
        is_run_by_a_worker_that_lies_down(inner);
    });
}

/// A view without work and with a deadline in a while.
struct Later;

const LATER: Duration = Duration::from_secs(1);

impl View for Later {
    fn has_work(&self) -> bool {
        false
    }

    fn has_any(&self, _me: usize) -> bool {
        false
    }

    fn has_outside(&self) -> bool {
        false
    }

    fn deadline(&self) -> Option<Instant> {
        Some(Instant::now() + LATER)
    }

    fn must_rise(&self) -> bool {
        false
    }

    fn longest_sleep(&self) -> Option<Duration> {
        None
    }

    fn last_lies_down(&self) {}
}

/// Checks that a keeper that is woken for its thread leaves the deadline to another sleeper.
///
/// Here all threads are one to `std`, so the first worker to park is the one whose driver is on
/// this thread.
#[test]
fn model_53_a_keeper_that_is_woken_leaves_the_deadline_to_another() {
    ::loom::model(|| {
        let sleep = WorkerSleep::new(2, None);
        let poll = |me| sleep.poll(me, &Later, Waker::noop(), false);
        // The first worker has checked the slots before, and need not do so again.
        sleep.lie_down(0, (false, true), &Later);
        assert_eq!(poll(0), Err(Some(LATER)), "it keeps the deadline");
        sleep.lie_down(1, (false, false), &Later);
        assert_eq!(poll(1), Err(None), "another one does");
        sleep.notify();
        assert_eq!(poll(0), Ok(Woken::ByWork));
        assert_eq!(poll(1), Err(Some(LATER)), "no sleeper keeps the deadline");
    });
}

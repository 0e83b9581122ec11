//! Model 35, of a job: however it ends, its caller is woken once, and nothing of the job leaks.

use std::sync::{Arc as StdArc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use ::loom::sync::Arc;
use ::loom::thread::spawn;

use super::{HostedJob, JobEnd};
use crate::error::UnhandledFault;
use crate::park::Parker;
use crate::task::{Executor, LiveIndex, Runnable, TaskHooks};

/// An executor that keeps its one runnable until the model runs it.
#[derive(Clone, Default)]
struct Hand(StdArc<Mutex<Option<Runnable>>>);

impl Executor for Hand {
    fn schedule(&self, runnable: Runnable, _again: bool) {
        *self.0.lock().unwrap() = Some(runnable);
    }

    fn track(&self, _waker: &Waker) -> Option<LiveIndex> {
        unreachable!("a job never waits")
    }

    fn untrack(&self, _live_index: LiveIndex) {}

    fn hooks(&self) -> &(dyn TaskHooks + 'static) {
        self
    }
}

impl TaskHooks for Hand {
    fn report(&self, _unjoined: &UnhandledFault<'_>) {}
}

/// Unparks the thread that waits for the job.
struct Caller(Parker);

impl Wake for Caller {
    fn wake(self: StdArc<Self>) {
        self.0.unpark();
    }
}

fn caller() -> (StdArc<Caller>, Waker) {
    let caller = StdArc::new(Caller(Parker::new()));
    (caller.clone(), Waker::from(caller))
}

type Seven<F> = HostedJob<Hand, F, Arc<usize>>;

/// Creates a job that returns a seven, whose leak loom detects. Also returns its runnable.
fn job(
    waker: Waker,
) -> (
    Seven<impl FnOnce() -> Arc<usize> + Send + 'static>,
    Runnable,
) {
    let executor = Hand::default();
    let kept = Arc::new(7);
    let job = HostedJob::new(&executor, false, move || kept, waker.into());
    let runnable = executor.0.lock().unwrap().take();
    (job, runnable.expect("it was scheduled"))
}

fn poll<F>(job: &mut Seven<F>, waker: &Waker) -> Poll<JobEnd<Arc<usize>>> {
    Future::poll(std::pin::Pin::new(job), &mut Context::from_waker(waker))
}

/// Checks that the result wakes the waker that the job was created with.
#[test]
fn model_35_the_result_of_a_job_wakes_its_caller() {
    ::loom::model(|| {
        let (own, waker) = caller();
        let (mut job, runnable) = job(waker);
        let runs = spawn(move || runnable.run());
        own.0.park(None);
        let Poll::Ready(JobEnd::Done(seven)) = poll(&mut job, Waker::noop()) else {
            panic!("woken for nothing");
        };
        assert_eq!(*seven, 7);
        runs.join().unwrap();
    });
}

/// Checks that the result wakes a waker that is stored later, whenever that is.
#[test]
fn model_35_the_waker_of_the_last_poll_is_woken() {
    ::loom::model(|| {
        let (mut job, runnable) = job(Waker::noop().clone());
        let runs = spawn(move || runnable.run());
        let (own, waker) = caller();
        if poll(&mut job, &waker).is_pending() {
            own.0.park(None);
            let heard = poll(&mut job, &waker);
            assert!(
                matches!(heard, Poll::Ready(JobEnd::Done(_))),
                "woken for nothing"
            );
        }
        runs.join().unwrap();
    });
}

/// Checks that a job that is dropped instead of run also wakes its caller.
#[test]
fn model_35_a_discarded_job_wakes_its_caller() {
    ::loom::model(|| {
        let (own, waker) = caller();
        let (mut job, runnable) = job(waker);
        let drops = spawn(move || drop(runnable));
        own.0.park(None);
        let heard = poll(&mut job, Waker::noop());
        assert!(
            matches!(heard, Poll::Ready(JobEnd::Lost)),
            "there is nothing else"
        );
        drops.join().unwrap();
    });
}

/// Checks that nothing leaks if the caller drops the job meanwhile.
#[test]
fn model_35_a_job_dropped_by_its_caller_leaks_nothing() {
    ::loom::model(|| {
        let (job, runnable) = job(Waker::noop().clone());
        let runs = spawn(move || runnable.run());
        drop(job);
        runs.join().unwrap();
    });
}

//! Model 35, of a job: whichever way it ends its caller hears of it once, and nothing of it is kept.

use std::sync::{Arc as StdArc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use ::loom::sync::Arc;
use ::loom::thread::spawn;

use super::{Job, JobEnd};
use crate::error::UnhandledFault;
use crate::park::Parker;
use crate::task::{Executor, LiveIndex, Runnable};

/// An executor whose runnable is run by the model.
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

    fn report(&self, _unjoined: &UnhandledFault<'_>) {}
}

/// Wakes the thread that calls.
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

type Seven<F> = Job<Hand, F, Arc<usize>>;

/// A job that gives a seven which loom counts, and its runnable.
fn job(
    waker: Waker,
) -> (
    Seven<impl FnOnce() -> Arc<usize> + Send + 'static>,
    Runnable,
) {
    let executor = Hand::default();
    let kept = Arc::new(7);
    let job = Job::new(&executor, false, move || kept, waker);
    let runnable = executor.0.lock().unwrap().take();
    (job, runnable.expect("it was scheduled"))
}

fn poll<F>(job: &mut Seven<F>, waker: &Waker) -> Poll<JobEnd<Arc<usize>>> {
    Future::poll(std::pin::Pin::new(job), &mut Context::from_waker(waker))
}

/// What it gives is heard, by the waker that was there from the beginning.
#[test]
fn model_35_what_a_job_gives_is_heard() {
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

/// And by another one that is left later, whenever that is.
#[test]
fn model_35_the_waker_that_was_left_last_is_woken() {
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

/// That it is dropped instead of being run is heard, too.
#[test]
fn model_35_a_lost_job_is_heard_of() {
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

/// A caller that goes away meanwhile leaves nothing behind: loom counts the sevens.
#[test]
fn model_35_a_caller_that_goes_away_keeps_nothing() {
    ::loom::model(|| {
        let (job, runnable) = job(Waker::noop().clone());
        let runs = spawn(move || runnable.run());
        drop(job);
        runs.join().unwrap();
    });
}

//! Model 18: the end is declared when nothing is in flight, and then it is.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use ::loom::explore;
use ::loom::thread::{JoinHandle, spawn};

use super::super::inner::Inner;
use super::super::policy::Stealing;
use super::super::quiescence::{KeepAlive, Quiescent};
use super::{Gate, end, join, lain_down, model_from_explore, push, queues, runtime_with};
use crate::instant::{Instant, clock};
use crate::timers::{Armed, Clock};

/// A runtime whose one worker is counted, and has lain down.
fn asleep() -> (Arc<Inner>, Vec<JoinHandle<()>>) {
    lain_down(runtime_with(1, Box::new(Stealing::default())))
}

struct Opens(Arc<Gate>);

impl Wake for Opens {
    fn wake(self: Arc<Self>) {
        self.0.open();
    }
}

/// Somebody who waits for the end, and has been there once.
pub(super) struct Watcher(Quiescent, Arc<Gate>);

impl Watcher {
    pub(super) fn new(inner: &Arc<Inner>) -> Watcher {
        Watcher(Quiescent::new(inner), Gate::new())
    }

    /// Waits until the end was declared.
    pub(super) fn wait(&mut self) {
        while self.poll().is_pending() {
            self.1.wait();
        }
    }

    fn poll(&mut self) -> Poll<()> {
        let waker = Waker::from(Arc::new(Opens(self.1.clone())));
        Pin::new(&mut self.0).poll(&mut Context::from_waker(&waker))
    }
}

/// Somebody from outside brings work, which brings more, and lets go: the end comes after all that.
#[test]
fn model_18_the_end_is_declared_after_what_a_hold_has_brought() {
    model_from_explore(|| {
        let (inner, workers) = asleep();
        let mut watcher = Watcher::new(&inner);
        let hold = KeepAlive::new(&inner);
        assert!(watcher.poll().is_pending(), "it is held");
        explore();
        let bringer = spawn({
            let inner = inner.clone();
            move || {
                let own = inner.clone();
                let fate = push(&inner, move || drop(push(&own, || ())));
                drop(hold);
                fate
            }
        });
        watcher.wait();
        assert!(!queues(&inner).has_work(), "something is in flight");
        assert!(
            !queues(&inner).has_any(usize::MAX),
            "something is in flight"
        );
        let fate = bringer.join().unwrap();
        assert_eq!(fate.of(), (1, 0), "something is in flight");
        end(&inner);
        join(workers);
    });
}

/// The last hold is given up when all sleep: whoever gives it up declares.
#[test]
fn model_18_the_end_comes_with_the_last_hold() {
    model_from_explore(|| {
        let (inner, workers) = asleep();
        let hold = KeepAlive::new(&inner);
        explore();
        let holder = spawn(move || drop(hold));
        Watcher::new(&inner).wait();
        holder.join().unwrap();
        end(&inner);
        join(workers);
    });
}

/// Whoever comes when all is at rest already hears of it; also if a worker lies down just then.
#[test]
fn model_18_who_comes_late_hears_of_the_end() {
    model_from_explore(|| {
        let (inner, workers) = asleep();
        explore();
        let fate = push(&inner, || ());
        Watcher::new(&inner).wait();
        // A push from outside, without a hold, may come after the end.
        end(&inner);
        join(workers);
        let (runs, drops) = fate.of();
        assert!(runs + drops <= 1, "run or dropped, once");
    });
}

struct Pushes(Arc<Inner>, Arc<Gate>);

impl Wake for Pushes {
    fn wake(self: Arc<Self>) {
        let ran = self.1.clone();
        push(&self.0, move || ran.open());
    }
}

/// A deadline that is over just now: it is in the table, or in the hands of a worker that is counted.
#[test]
fn model_18_the_end_is_declared_after_what_a_deadline_brings() {
    const SOON: Duration = Duration::from_secs(1);
    model_from_explore(|| {
        let (inner, workers) = asleep();
        let ran = Gate::new();
        let waker = Waker::from(Arc::new(Pushes(inner.clone(), ran.clone())));
        let timers: Arc<dyn Clock> = inner.clone();
        let armed = Armed::new(timers, Instant::now() + SOON, &waker).expect("they are open");
        explore();
        clock::advance(SOON);
        queues(&inner).sleep.let_time_pass(3, SOON);
        Watcher::new(&inner).wait();
        assert!(ran.is_open(), "something is in flight");
        drop(armed);
        end(&inner);
        join(workers);
    });
}

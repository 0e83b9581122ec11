//! `model_28`, workers that sleep until a deadline: an armed deadline wakes a worker in time.

use std::rc::Rc;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

use ::loom::explore;

use super::super::inner::Inner;
use super::{Gate, asleep, end, join, model_from_explore, push, queues, runtime, start};
use crate::instant::{Instant, clock};
use crate::sync::Mutex;
use crate::timers::{Armed, Clock, Kind};

const SOON: Duration = Duration::from_secs(1);
const LATE: Duration = Duration::from_secs(100);

/// Lets time pass for workers that sleep no longer than `duration`.
fn pass(inner: &Inner, duration: Duration) {
    clock::advance(duration);
    queues(inner).sleep.let_time_pass(3, duration);
}

fn arm(inner: &Arc<Inner>, at: Instant, waker: &Waker) -> Armed {
    let clock: Arc<dyn Clock> = inner.clone();
    Armed::new(clock, at, Kind::Event, waker).expect("the timers are open")
}

struct Ends(Arc<Inner>);

impl Wake for Ends {
    fn wake(self: Arc<Self>) {
        end(&self.0);
    }
}

/// Checks that a worker that sleeps until a later deadline, or is just parking, wakes for an
/// earlier one.
#[test]
fn model_28_a_sleeper_is_woken_for_an_earlier_deadline() {
    hears_of_a_deadline(Some(LATE));
}

/// Checks that a worker that sleeps without a deadline wakes for the first one.
#[test]
fn model_28_a_sleeper_is_woken_for_the_first_deadline() {
    hears_of_a_deadline(None);
}

fn hears_of_a_deadline(before: Option<Duration>) {
    ::loom::model(move || {
        let inner = runtime(1);
        let waker = Waker::from(Arc::new(Ends(inner.clone())));
        let late = before.map(|late| arm(&inner, Instant::now() + late, Waker::noop()));
        let workers = start(&inner);
        let soon = arm(&inner, Instant::now() + SOON, &waker);
        pass(&inner, SOON);
        join(workers);
        drop((soon, late));
        assert!(inner.timers.is_empty(), "nothing is left in the table");
    });
}

struct Opens(Arc<Gate>);

impl Wake for Opens {
    fn wake(self: Arc<Self>) {
        self.0.open();
    }
}

/// Checks that the other worker fires a deadline if user code blocks the worker that armed it in
/// its next turn.
#[test]
fn model_28_a_deadline_of_a_blocked_worker_is_fired_by_another() {
    model_from_explore(|| {
        let (inner, workers) = asleep(2);
        let own = inner.clone();
        let fate = push(&inner, move || {
            explore();
            let gate = Gate::new();
            let waker = Waker::from(Arc::new(Opens(gate.clone())));
            let armed = arm(&own, Instant::now() + SOON, &waker);
            let again = own.clone();
            push(&own, move || {
                pass(&again, SOON);
                gate.wait();
                drop(armed);
                end(&again);
            });
        });
        join(workers);
        assert_eq!(fate.of(), (1, 0), "run once");
        assert!(inner.timers.is_empty(), "nothing is left in the table");
    });
}

/// Checks that the other worker also fires the deadline if an entry from outside blocks the first
/// worker, which has nothing else to do.
#[test]
fn model_28_a_deadline_of_a_worker_blocked_from_outside_is_fired_by_another() {
    model_from_explore(|| {
        let (inner, workers) = asleep(2);
        let (runs, fired) = (Gate::new(), Gate::new());
        let soon = Instant::now() + SOON;
        let armed = Rc::new(Mutex::new(None));
        let arming = push(&inner, {
            let (own, runs, fired, left) =
                (inner.clone(), runs.clone(), fired.clone(), armed.clone());
            move || {
                runs.open();
                explore();
                let waker = Waker::from(Arc::new(Opens(fired)));
                *left.lock() = Some(arm(&own, soon, &waker));
            }
        });
        runs.wait();
        let blocked = push(&inner, {
            let (own, fired) = (inner.clone(), fired.clone());
            move || {
                pass(&own, SOON);
                fired.wait();
                end(&own);
            }
        });
        join(workers);
        assert_eq!(
            (arming.of(), blocked.of()),
            ((1, 0), (1, 0)),
            "run once each"
        );
        drop(armed.lock().take());
        assert!(inner.timers.is_empty(), "nothing is left in the table");
    });
}

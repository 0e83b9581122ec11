//! `model_28`, workers that sleep until a deadline: an armed deadline wakes a worker in time.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

use ::loom::explore;

use super::super::inner::Inner;
use super::{Gate, asleep, end, join, model_from_explore, push, queues, runtime, start};
use crate::instant::{Instant, clock};
use crate::task;
use crate::timers::{Armed, DeadlineKind, TimerClock};

const SOON: Duration = Duration::from_secs(1);
const LATE: Duration = Duration::from_secs(100);

/// Lets time pass for workers that sleep no longer than `duration`.
fn pass(inner: &Inner, duration: Duration) {
    clock::advance(duration);
    queues(inner).sleep.let_time_pass(3, duration);
}

fn arm(inner: &Arc<Inner>, at: Instant, waker: &Waker) -> Armed {
    let clock: Arc<dyn TimerClock> = inner.clone();
    Armed::new(clock, at, DeadlineKind::Event, waker).expect("the timers are open")
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

/// Checks that the other worker fires a deadline if the turn that armed it for something else then
/// blocks its worker.
#[test]
fn model_28_a_deadline_of_a_turn_that_blocks_is_fired_by_another_worker() {
    model_from_explore(|| {
        let (inner, workers) = asleep(2);
        let own = inner.clone();
        let fate = push(&inner, move || {
            explore();
            let gate = Gate::new();
            let waker = Waker::from(Arc::new(Opens(gate.clone())));
            let armed = arm(&own, Instant::now() + SOON, &waker);
            pass(&own, SOON);
            gate.wait();
            drop(armed);
            end(&own);
        });
        join(workers);
        assert_eq!(fate.of(), (1, 0), "run once");
        assert!(inner.timers.is_empty(), "nothing is left in the table");
    });
}

/// Checks the same if it is not the earliest deadline: the turn has armed an earlier one for its
/// own task.
#[test]
fn model_28_a_later_deadline_of_a_turn_that_blocks_is_fired_by_another_worker() {
    model_from_explore(|| {
        let (inner, workers) = asleep(2);
        let own = inner.clone();
        let task = task::spawn::<(), _, _>(
            inner.clone(),
            poll_fn(move |cx| {
                explore();
                let gate = Gate::new();
                let waker = Waker::from(Arc::new(Opens(gate.clone())));
                let sooner = arm(&own, Instant::now() + SOON / 2, cx.waker());
                let armed = arm(&own, Instant::now() + SOON, &waker);
                pass(&own, SOON);
                gate.wait();
                drop((sooner, armed));
                end(&own);
                Poll::Ready(())
            }),
        );
        join(workers);
        assert!(task.is_finished(), "the task has run");
        assert!(inner.timers.is_empty(), "nothing is left in the table");
    });
}

/// Checks that the other worker fires the deadline of a task if user code blocks the worker that
/// armed it in its next turn.
#[test]
fn model_28_a_deadline_of_a_worker_that_blocks_next_is_fired_by_another() {
    model_from_explore(|| {
        let (inner, workers) = asleep(2);
        let own = inner.clone();
        let gate = Gate::new();
        let mut armed = None;
        let task = task::spawn::<(), _, _>(
            inner.clone(),
            poll_fn(move |cx| {
                if armed.take().is_some() {
                    gate.open();
                    return Poll::Ready(());
                }
                explore();
                armed = Some(arm(&own, Instant::now() + SOON, cx.waker()));
                let (again, gate) = (own.clone(), gate.clone());
                push(&own, move || {
                    pass(&again, SOON);
                    gate.wait();
                    end(&again);
                });
                Poll::Pending
            }),
        );
        join(workers);
        assert!(task.is_finished(), "the task has run twice");
        assert!(inner.timers.is_empty(), "nothing is left in the table");
    });
}

/// Checks that the other worker also fires a deadline if an entry from outside blocks the first
/// worker, which has nothing else to do.
#[test]
fn model_28_a_deadline_of_a_worker_blocked_from_outside_is_fired_by_another() {
    model_from_explore(|| {
        let (inner, workers) = asleep(2);
        let (runs, fired) = (Gate::new(), Gate::new());
        let soon = Instant::now() + SOON;
        let mut armed = None;
        let arming = task::spawn::<(), _, _>(inner.clone(), {
            let (own, runs, fired) = (inner.clone(), runs.clone(), fired.clone());
            poll_fn(move |cx| {
                if armed.take().is_some() {
                    fired.open();
                    return Poll::Ready(());
                }
                runs.open();
                explore();
                armed = Some(arm(&own, soon, cx.waker()));
                Poll::Pending
            })
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
        assert!(arming.is_finished(), "the task has run twice");
        assert_eq!(blocked.of(), (1, 0), "run once");
        assert!(inner.timers.is_empty(), "nothing is left in the table");
    });
}

//! Models 16 and 17: a runtime that ends, against those who push, park or block meanwhile.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ::loom::explore;
use ::loom::thread::spawn;

use super::super::inner::Inner;
use super::{
    Fate, Gate, OnDrop, asleep, end, join, model_from_explore, push, queues, runtime, start,
};
use crate::sync::Mutex;

/// Neither lost nor done twice, and nothing stays behind in a queue.
fn assert_settled(inner: &Inner, fates: &[Arc<Fate>]) {
    for fate in fates {
        let (runs, drops) = fate.of();
        assert_eq!(runs + drops, 1, "run or dropped, once");
    }
    assert!(!queues(inner).has_work(), "a queue is not empty");
    assert!(!queues(inner).has_any(usize::MAX), "a slot is not empty");
}

/// What is scheduled while the pool is dropped is dropped, once, by whoever sees it.
#[test]
fn model_16_what_is_woken_while_the_pool_is_dropped_is_dropped_once() {
    ::loom::model(|| {
        let inner = runtime(1);
        let pushers = [(); 2].map(|()| {
            let inner = inner.clone();
            spawn(move || push(&inner, || unreachable!("nobody runs it")))
        });
        inner.shutdown.finish();
        inner.shutdown.settle();
        inner.drain();
        let fates = pushers.map(|pusher| pusher.join().unwrap());
        assert_settled(&inner, &fates);
        assert_eq!(
            fates.map(|fate| fate.of()),
            [(0, 1); 2],
            "dropped once each"
        );
    });
}

/// A shutdown of a runtime at rest: its worker is woken twice, to count what is queued and to end.
#[test]
fn model_17_a_shutdown_ends_a_worker_that_sleeps() {
    model_from_explore(|| {
        let (inner, workers) = asleep(1);
        explore();
        inner.close(Duration::ZERO);
        join(workers);
        assert_settled(&inner, &[]);
    });
}

/// A shutdown, a push from outside, and a worker that is woken for it or parks again: it ends, and
/// the entry was run or dropped, once.
#[test]
fn model_17_a_shutdown_ends_a_worker_that_parks_and_settles_what_is_pushed_meanwhile() {
    model_from_explore(|| {
        let (inner, workers) = asleep(1);
        explore();
        let pusher = spawn({
            let inner = inner.clone();
            move || push(&inner, || ())
        });
        inner.close(Duration::ZERO);
        join(workers);
        assert_settled(&inner, &[pusher.join().unwrap()]);
    });
}

/// The same with two workers, one of which may be woken for the entry just then.
#[test]
fn model_17_a_shutdown_ends_two_workers_and_settles_what_was_pushed_before() {
    model_from_explore(|| {
        let (inner, workers) = asleep(2);
        explore();
        let fate = push(&inner, || ());
        end(&inner);
        inner.shutdown.settle();
        inner.drain();
        join(workers);
        assert_settled(&inner, &[fate]);
    });
}

/// The same with a handler that has pushed something itself and blocks its worker meanwhile.
#[test]
fn model_17_a_shutdown_ends_a_worker_that_is_blocked_and_settles_what_that_pushed() {
    model_from_explore(|| {
        let (inner, workers) = asleep(1);
        let (begun, gate, local) = (Gate::new(), Gate::new(), Rc::new(Mutex::new(None)));
        let blocked = push(&inner, {
            let (own, begun, gate, local) =
                (inner.clone(), begun.clone(), gate.clone(), local.clone());
            move || {
                *local.lock() = Some(push(&own, || ()));
                begun.open();
                gate.wait();
            }
        });
        begun.wait();
        explore();
        let opener = spawn(move || gate.open());
        inner.close(Duration::ZERO);
        join(workers);
        opener.join().unwrap();
        let local = local.lock().take().expect("it has begun");
        assert_settled(&inner, &[blocked, local]);
    });
}

/// What the drop of an entry pushes, on whatever thread that happens, is dropped too.
#[test]
fn model_17_what_is_pushed_by_a_drop_during_the_shutdown_is_dropped() {
    ::loom::model(|| {
        let inner = runtime(1);
        let workers = start(&inner);
        let second = Rc::new(Mutex::new(None));
        let (own, left) = (inner.clone(), second.clone());
        let pushes = OnDrop(move || *left.lock() = Some(push(&own, || ())));
        let first = push(&inner, move || drop(pushes));
        inner.close(Duration::ZERO);
        join(workers);
        let mut fates = vec![first];
        fates.push(second.lock().take().expect("the first was settled"));
        assert_settled(&inner, &fates);
    });
}

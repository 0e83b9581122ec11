//! `model_16` and `model_17`: a runtime that ends while other threads push, park or block.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ::loom::explore;
use ::loom::thread::spawn;

use super::super::handle::Runtime;
use super::super::inner::Inner;
use super::super::shutdown_state::Progress;
use super::{
    Fate, Gate, OnDrop, asleep, end, join, model_from_explore, push, queues, runtime, start,
};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::time::Instant;
use crate::waiters::Waiters;

/// Asserts that each entry was run or dropped exactly once, and that no queue holds one.
fn assert_completed(inner: &Inner, fates: &[Arc<Fate>]) {
    for fate in fates {
        let (runs, drops) = fate.of();
        assert_eq!(runs + drops, 1, "run or dropped, once");
    }
    assert!(!queues(inner).has_work(), "a queue is not empty");
    assert!(!queues(inner).has_any(usize::MAX), "a slot is not empty");
}

/// Checks that an entry that is scheduled while the queues are drained is dropped once, by the
/// thread that sees it.
#[test]
fn model_16_entries_pushed_during_a_drain_are_dropped_once() {
    ::loom::model(|| {
        let inner = runtime(1);
        let pushers = [(); 2].map(|()| {
            let inner = inner.clone();
            spawn(move || push(&inner, || unreachable!("the entry is dropped, not run")))
        });
        inner.shutdown.finish();
        inner.shutdown.complete();
        inner.drain();
        let fates = pushers.map(|pusher| pusher.join().unwrap());
        assert_completed(&inner, &fates);
        assert_eq!(
            fates.map(|fate| fate.of()),
            [(0, 1); 2],
            "dropped once each"
        );
    });
}

/// Checks that an entry that is scheduled when there is no worker is dropped while the shutdown waits
/// for a thread that waits for that drop.
#[test]
fn model_16_an_entry_for_whose_drop_a_thread_waits_is_dropped() {
    ::loom::model(|| {
        let inner = runtime(1);
        inner.shutdown.expect_workers(1);
        let dropped = Gate::new();
        let opens = OnDrop({
            let dropped = dropped.clone();
            move || dropped.open()
        });
        let pusher = spawn({
            let inner = inner.clone();
            move || push(&inner, move || drop(opens))
        });
        let waits = spawn({
            let inner = inner.clone();
            move || {
                dropped.wait();
                inner.shutdown.worker_left();
            }
        });
        inner.shutdown.finish();
        inner.drain_until(None, Progress::all_out);
        inner.shutdown.complete();
        inner.drain();
        waits.join().unwrap();
        assert_eq!(pusher.join().unwrap().of(), (0, 1), "dropped once");
    });
}

/// Checks that a shutdown that is past its limit leaves what another thread drains to that thread.
#[test]
fn model_16_a_drain_of_another_thread_is_not_waited_for_beyond_the_limit() {
    ::loom::model(|| {
        let inner = runtime(1);
        inner.shutdown.finish();
        assert!(inner.shutdown.begin_drain(), "nothing else drains");
        let fate = push(&inner, || ());
        inner.drain_until(Some(Instant::now()), |_| false);
        assert_eq!(fate.of(), (0, 0), "left to the other drain");
        inner.shutdown.end_drain();
        inner.shutdown.complete();
        inner.drain();
        assert_eq!(fate.of(), (0, 1), "dropped once");
    });
}

/// Checks that a shutdown that waits for the thread of the watches is notified if none is started.
#[test]
fn model_16_a_watch_whose_thread_does_not_start_does_not_delay_a_shutdown() {
    ::loom::model(|| {
        let inner = runtime(1);
        let (_, starts) = inner.viewers.enter(Duration::ZERO, true);
        assert!(starts);
        let own = inner.clone();
        let watches = spawn(move || own.has_no_watch_thread());
        inner.shutdown.finish();
        inner.drain_until(None, |_| !inner.viewers.has_thread());
        watches.join().unwrap();
    });
}

/// Checks that a drop may wait for an entry that is pushed when its thread drains. No other thread may
/// drain then.
#[test]
fn model_16_a_drop_may_wait_for_an_entry_that_is_pushed_late() {
    ::loom::model(|| {
        let inner = runtime(1);
        let dropped = Arc::new((AtomicBool::new(false), Waiters::new()));
        let tells = OnDrop({
            let dropped = dropped.clone();
            move || {
                dropped.0.store(true, Ordering::Release);
                dropped.1.wake_all();
            }
        });
        let pusher = spawn({
            let inner = inner.clone();
            move || push(&inner, move || drop(tells))
        });
        let waits = OnDrop({
            let runtime = Runtime::not_counting(inner.clone());
            move || runtime.block_on(dropped.1.until(|| dropped.0.load(Ordering::Acquire)))
        });
        inner.shutdown.finish();
        let fate = push(&inner, move || drop(waits));
        inner.drain();
        assert_eq!(fate.of(), (0, 1), "dropped once");
        inner.shutdown.complete();
        inner.drain();
        assert_eq!(pusher.join().unwrap().of(), (0, 1), "dropped once");
    });
}

/// Checks that a shutdown wakes an idle worker twice, to report what is queued and to end.
#[test]
fn model_17_a_shutdown_ends_a_worker_that_sleeps() {
    model_from_explore(|| {
        let (inner, workers) = asleep(1);
        explore();
        inner.close(Duration::ZERO);
        join(workers);
        assert_completed(&inner, &[]);
    });
}

/// Checks that a worker ends in a shutdown while it wakes for a push from outside or parks again.
/// The entry is run or dropped once.
#[test]
fn model_17_a_shutdown_settles_a_concurrent_push_from_outside() {
    model_from_explore(|| {
        let (inner, workers) = asleep(1);
        explore();
        let pusher = spawn({
            let inner = inner.clone();
            move || push(&inner, || ())
        });
        inner.close(Duration::ZERO);
        join(workers);
        assert_completed(&inner, &[pusher.join().unwrap()]);
    });
}

/// Checks the same with two workers, one of which may be waking for the entry.
#[test]
fn model_17_a_shutdown_of_two_workers_settles_an_earlier_push() {
    model_from_explore(|| {
        let (inner, workers) = asleep(2);
        explore();
        let fate = push(&inner, || ());
        end(&inner);
        inner.shutdown.complete();
        inner.drain();
        join(workers);
        assert_completed(&inner, &[fate]);
    });
}

/// Checks the same with a handler that has pushed an entry itself and blocks its worker meanwhile.
#[test]
fn model_17_a_shutdown_settles_the_push_of_a_blocked_worker() {
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
        assert_completed(&inner, &[blocked, local]);
    });
}

/// Checks that an entry that is pushed by the drop of another is dropped too, on whatever thread.
#[test]
fn model_17_an_entry_pushed_by_a_drop_during_the_shutdown_is_dropped() {
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
        fates.push(second.lock().take().expect("the first was completed"));
        assert_completed(&inner, &fates);
    });
}

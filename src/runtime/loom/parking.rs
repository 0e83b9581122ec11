//! `model_31`: workers whose policy does not park them. The policy here is one queue for all
//! workers.

use std::ptr::NonNull;
use std::sync::Arc;

use ::loom::thread::{spawn, yield_now};

use super::super::inner::Inner;
use super::super::quiescence::KeepAlive;
use super::super::worker_thread::work;
use super::quiescence::Watcher;
use super::{Gate, OnDrop, end, join, push, runtime_with, start, token};
use crate::scheduler::choose;
use crate::scheduler::parking::Parking;
use crate::scheduler::policy::{Duties, Policy, Runnable};
use crate::scheduler::runnable;
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use crate::sync::global::AtomicU64;

/// A queue without a lock that would order an enqueue and a failed look. One thread enqueues, and
/// no more than fits.
struct Central {
    slots: [AtomicPtr<()>; 2],
    next: AtomicUsize,
}

impl Policy for Central {
    type Worker = ();

    fn worker(&self, _index: usize) {}

    fn central_enqueue(&self, runnable: Runnable) {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        self.slots[at].store(runnable.into_raw().as_ptr(), Ordering::Release);
    }

    fn dequeue(&self, _worker: &(), _duties: &Duties<'_>) -> Option<Runnable> {
        self.slots.iter().find_map(|slot| {
            if slot.load(Ordering::Relaxed).is_null() {
                return None;
            }
            let taken = NonNull::new(slot.swap(std::ptr::null_mut(), Ordering::AcqRel));
            taken.map(runnable)
        })
    }
}

fn runtime(workers: usize) -> Arc<Inner> {
    let slots = [(); 2].map(|()| AtomicPtr::new(std::ptr::null_mut()));
    let next = AtomicUsize::new(0);
    runtime_with(workers, choose(Central { slots, next }))
}

/// Checks that an entry that is enqueued while the only worker parks is run.
#[test]
fn model_31_a_push_is_not_missed_by_a_worker_that_parks() {
    ::loom::model(|| {
        let inner = runtime(1);
        let workers = start(&inner);
        let own = inner.clone();
        let fate = push(&inner, move || end(&own));
        join(workers);
        assert_eq!(fate.of(), (1, 0), "run once");
    });
}

/// Checks that a worker passes a wake-up on. It finds an entry in its last look, and is woken for
/// another entry just then. It wakes another worker for that one.
#[test]
fn model_31_a_wake_up_is_passed_on_by_a_worker_that_found_other_work() {
    ::loom::model(|| {
        let inner = runtime(2);
        let rest = Arc::new(Parking::new(2));
        let other = spawn({
            let (inner, rest) = (inner.clone(), rest.clone());
            move || drop(rest.rest(0, &inner.scheduler.duties(&*inner, 0), || None))
        });
        while rest.resting() == 0 {
            yield_now();
        }
        let (token, _) = token(|| ());
        let found = rest.rest(1, &inner.scheduler.duties(&*inner, 1), || {
            rest.notify();
            Some(token)
        });
        found.expect("it was found").run();
        other.join().unwrap();
    });
}

/// Checks that quiescence is declared after enqueued entries have run. The runnables are counted,
/// not the workers.
#[test]
fn model_31_quiescence_is_declared_after_enqueued_entries_have_run() {
    ::loom::model(|| {
        let inner = runtime(1);
        let workers = start(&inner);
        let (hold, brought) = (KeepAlive::new(&inner), Arc::new(AtomicU64::new(0)));
        let bringer = spawn({
            let (inner, brought) = (inner.clone(), brought.clone());
            move || {
                let fate = push(&inner, || ());
                brought.store(1, Ordering::Relaxed);
                drop(hold);
                fate
            }
        });
        Watcher::new(&inner).wait();
        assert_eq!(brought.load(Ordering::Relaxed), 1, "something is in flight");
        let fate = bringer.join().unwrap();
        assert_eq!(fate.of(), (1, 0), "something is in flight");
        end(&inner);
        join(workers);
    });
}

/// Checks that an entry that is enqueued when there is no worker is dropped while the shutdown waits
/// for a thread that waits for that drop.
#[test]
fn model_31_an_entry_for_whose_drop_a_thread_waits_is_dropped() {
    ::loom::model(|| {
        let inner = runtime(1);
        inner.shutdown.expect_workers(1);
        inner.shutdown.worker_left();
        let done = Arc::new(AtomicBool::new(false));
        let waits = spawn({
            let (inner, done) = (inner.clone(), done.clone());
            move || {
                let dropped = Gate::new();
                let opens = OnDrop({
                    let dropped = dropped.clone();
                    move || dropped.open()
                });
                let fate = push(&inner, move || drop(opens));
                dropped.wait();
                done.store(true, Ordering::Release);
                inner.shutdown.progress();
                fate
            }
        });
        inner.shutdown.finish();
        inner.drain_until(None, |_| done.load(Ordering::Acquire));
        inner.shutdown.complete();
        inner.drain();
        assert_eq!(waits.join().unwrap().of(), (0, 1), "dropped once");
    });
}

/// Checks the same while a worker stays for a task that awaits the shutdown.
#[test]
fn model_31_an_entry_for_whose_drop_a_thread_waits_is_dropped_by_a_worker_that_stays() {
    ::loom::model(|| {
        let inner = runtime(1);
        inner.shutdown.expect_workers(1);
        let (awaits, _) = token(|| ());
        let key = awaits.key();
        inner.shutdown.exempt(key);
        let dropped = Arc::new(AtomicBool::new(false));
        let tells = OnDrop({
            let (inner, dropped) = (inner.clone(), dropped.clone());
            move || {
                dropped.store(true, Ordering::Release);
                inner.shutdown.progress();
            }
        });
        let pusher = spawn({
            let inner = inner.clone();
            move || push(&inner, move || drop(tells))
        });
        inner.shutdown.finish();
        let worker = spawn({
            let inner = inner.clone();
            move || work(&inner, 0)
        });
        inner.drain_until(None, |_| dropped.load(Ordering::Acquire));
        inner.shutdown.exempt_no_more(key);
        join(vec![worker]);
        assert_eq!(pusher.join().unwrap().of(), (0, 1), "dropped once");
        drop(awaits);
    });
}

/// Checks that an entry that is enqueued while the last worker leaves is dropped, when the shutdown
/// is over.
#[test]
fn model_31_an_entry_that_the_last_worker_does_not_see_is_dropped() {
    ::loom::model(|| {
        let inner = runtime(1);
        inner.shutdown.expect_workers(1);
        let pusher = spawn({
            let inner = inner.clone();
            move || push(&inner, || unreachable!("the entry is dropped, not run"))
        });
        inner.shutdown.finish();
        inner.shutdown.complete();
        work(&inner, 0);
        assert_eq!(pusher.join().unwrap().of(), (0, 1), "dropped once");
    });
}

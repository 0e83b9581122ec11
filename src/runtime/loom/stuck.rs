//! `model_12`, `model_36` and `model_45`: a handler pushes an entry and then blocks its worker
//! until the entry has run.
//!
//! The other worker must find the entry, in the ring or in the slot. An entry in the slot is found
//! by a sleeper that watches, whenever that worker has begun or stopped to watch.

use std::sync::Arc;
use std::time::Duration;

use ::loom::thread::spawn;

use super::{Gate, end, join, push, queues, runtime, start};
use crate::instant::Instant;
use crate::scheduler::sleep::{View, WATCH, Woken, WorkerSleep};
use crate::sync::atomic::{AtomicBool, Ordering};

/// Checks that the other worker takes an entry from the ring of a worker that user code blocks.
#[test]
fn model_12_entry_in_the_ring_of_a_blocked_worker_is_run_by_another() {
    ::loom::model(|| {
        let inner = runtime(2);
        let workers = start(&inner);
        let (own, gate) = (inner.clone(), Gate::new());
        let fate = push(&inner, move || {
            let opener = gate.clone();
            push(&own, move || opener.open());
            // Displaces the first entry from the slot.
            push(&own, || ());
            gate.wait();
            end(&own);
        });
        join(workers);
        assert_eq!(fate.of(), (1, 0), "run once");
        queues(&inner).sleep.audit();
    });
}

/// Checks that the other worker takes an entry from the slot of a worker that user code blocks. It
/// does so after at most two looks, and one more if a turn began between them.
#[test]
fn model_12_entry_in_the_slot_of_a_blocked_worker_is_run_by_the_watcher() {
    ::loom::model(|| {
        let inner = runtime(2);
        let workers = start(&inner);
        let (own, gate) = (inner.clone(), Gate::new());
        let fate = push(&inner, move || {
            let opener = gate.clone();
            push(&own, move || opener.open());
            queues(&own).sleep.let_time_pass(3, WATCH);
            gate.wait();
            end(&own);
        });
        join(workers);
        assert_eq!(fate.of(), (1, 0), "run once");
        queues(&inner).sleep.audit();
    });
}

/// A slot alone, for workers that have no other queue.
#[derive(Clone, Default)]
struct Slot(Arc<AtomicBool>);

impl Slot {
    fn fill(&self, sleep: &WorkerSleep) {
        // Relaxed, as in the loads below: the fences order it.
        self.0.store(true, Ordering::Relaxed);
        sleep.notify_slot();
    }

    /// Runs one watch, as a sleeping worker. Returns whether it found an entry.
    fn watch(&self, sleep: &WorkerSleep, me: usize, ends_watch: bool) -> bool {
        let woken = sleep.sleep(me, (false, ends_watch), self);
        assert_eq!(woken, Woken::ByItself { watching: true });
        self.0.load(Ordering::Relaxed)
    }
}

impl View for Slot {
    fn has_work(&self) -> bool {
        false
    }
    fn has_outside(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
    fn has_any(&self, _me: usize) -> bool {
        self.0.load(Ordering::Relaxed)
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn must_rise(&self) -> bool {
        false
    }
    fn longest_sleep(&self) -> Option<Duration> {
        None
    }
    fn last_lies_down(&self) {}
}

fn sleep_for(workers: usize) -> Arc<WorkerSleep> {
    let sleep = Arc::new(WorkerSleep::new(workers, None));
    // One park may end just when the watcher gets a new duty.
    sleep.let_time_pass(2, WATCH);
    sleep
}

/// Checks that a thief that holds off sees a push from outside before it sleeps, or is woken by it.
#[test]
fn model_45_a_push_from_outside_wakes_a_thief_that_holds_off() {
    ::loom::model(|| {
        let (sleep, pushed) = (Arc::new(WorkerSleep::new(1, None)), Slot::default());
        let pusher = spawn({
            let (sleep, pushed) = (sleep.clone(), pushed.clone());
            move || {
                pushed.0.store(true, Ordering::Relaxed);
                sleep.notify();
                sleep.rouse_napper();
            }
        });
        // No time passes in a model, so a missed push would make it sleep forever.
        sleep.hold_off(0, WATCH, &pushed);
        pusher.join().unwrap();
    });
}

/// Checks that an entry that fills a slot just when a watch ends is seen by the watcher, or makes
/// it watch again.
#[test]
fn model_36_a_slot_that_is_filled_when_a_watch_ends_is_watched() {
    ::loom::model(|| {
        let (sleep, slot) = (sleep_for(2), Slot::default());
        let watcher = spawn({
            let (sleep, slot) = (sleep.clone(), slot.clone());
            move || slot.watch(&sleep, 1, true)
        });
        slot.fill(&sleep);
        assert!(watcher.join().unwrap(), "the watcher has found it");
    });
}

/// Checks that another sleeper watches if the watcher leaves just when a slot is filled.
#[test]
fn model_36_a_slot_filled_as_the_watcher_leaves_is_watched_by_another() {
    ::loom::model(|| {
        let (sleep, slot) = (sleep_for(3), Slot::default());
        let watchers = [(1, false), (2, true)].map(|(me, ends_watch)| {
            let (sleep, slot) = (sleep.clone(), slot.clone());
            spawn(move || {
                slot.watch(&sleep, me, ends_watch);
                sleep.watch_no_more();
            })
        });
        slot.fill(&sleep);
        join(watchers.into());
    });
}

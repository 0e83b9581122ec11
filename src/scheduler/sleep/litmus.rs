//! The races of `sleep.md`, on real hardware.

use super::super::litmus::{Race, race};
use super::*;
use crate::instant::Instant;
use crate::sync::CachePadded;
use crate::sync::atomic::AtomicBool;

/// The state that a pusher and worker 0 race on.
struct Races {
    sleep: WorkerSleep,
    /// Whether there is an entry.
    entry: CachePadded<AtomicBool>,
    /// The last round in which worker 0 was about to park.
    parked: CachePadded<AtomicUsize>,
    round: AtomicUsize,
    /// Worker 0 must wake up.
    must_rise: AtomicBool,
    of: Work,
}

/// Where the entry is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Ring,
    Outside,
    Slot,
}

impl Races {
    fn new(workers: usize, of: Work) -> Self {
        Races {
            sleep: WorkerSleep::new(workers, None),
            entry: CachePadded(AtomicBool::new(false)),
            parked: CachePadded(AtomicUsize::new(0)),
            round: AtomicUsize::new(0),
            must_rise: AtomicBool::new(false),
            of,
        }
    }

    // Relaxed, as are all accesses but those of `parked`: their order is under test, or given by
    // the start and the end of a round.
    fn reset(&self, round: usize) {
        self.entry.store(false, Ordering::Relaxed);
        self.must_rise.store(false, Ordering::Relaxed);
        self.round.store(round, Ordering::Relaxed);
    }

    fn push(&self) {
        self.entry.store(true, Ordering::Relaxed);
    }

    fn is_pushed(&self, of: Work) -> bool {
        self.of == of && self.entry.load(Ordering::Relaxed)
    }

    /// Returns whether worker 0 has made all its checks before it sleeps.
    fn is_parked(&self, round: usize) -> bool {
        // Acquire pairs with the Release in `must_rise`.
        self.parked.load(Ordering::Acquire) == round
    }
}

impl View for Races {
    fn has_work(&self) -> bool {
        self.is_pushed(Work::Ring)
    }

    fn has_any(&self, _me: usize) -> bool {
        self.is_pushed(Work::Slot)
    }

    fn has_outside(&self) -> bool {
        self.is_pushed(Work::Outside)
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Records the round, since this is the last check before a park.
    fn must_rise(&self) -> bool {
        let round = self.round.load(Ordering::Relaxed);
        // Release pairs with the Acquire in `is_parked`.
        self.parked.store(round, Ordering::Release);
        self.must_rise.load(Ordering::Relaxed)
    }

    fn longest_sleep(&self) -> Option<Duration> {
        None
    }

    fn last_lies_down(&self) {}
}

/// SLEEP-1: a worker goes to sleep during a push.
struct LiesDown(Races);

impl Race for LiesDown {
    fn prepare(&self, round: usize) {
        self.0.reset(round);
    }

    fn left(&self, _round: usize) {
        self.0.push();
        self.0.sleep.notify();
    }

    fn right(&self, _round: usize) {
        let woken = self.0.sleep.sleep(0, (false, false), &self.0);
        assert_eq!(woken, Woken::ByWork);
        // A worker that is woken for an entry does so.
        self.0.sleep.clear_searching();
    }

    fn watch(&self, round: usize) {
        if self.0.is_parked(round) {
            let is_asleep = self.0.sleep.sleepers.lock().stack.len() > 0;
            assert!(!is_asleep, "a wake-up was lost in round {round}");
        }
    }

    fn judge(&self, _round: usize) {}
}

#[test]
fn litmus_a_push_is_not_missed_by_a_worker_that_goes_to_sleep() {
    race(LiesDown(Races::new(1, Work::Ring)));
}

/// SLEEP-1: a worker holds off during a push from outside.
struct HoldsOff(Races);

impl Race for HoldsOff {
    fn prepare(&self, round: usize) {
        self.0.reset(round);
    }

    fn left(&self, _round: usize) {
        self.0.push();
        self.0.sleep.notify();
        self.0.sleep.rouse_napper();
    }

    fn right(&self, _round: usize) {
        const HOUR: Duration = Duration::from_secs(3600);
        while !self.0.has_outside() {
            self.0.sleep.hold_off(0, HOUR, &self.0);
        }
    }

    fn judge(&self, _round: usize) {}
}

#[test]
fn litmus_a_push_from_outside_is_not_missed_by_a_worker_that_holds_off() {
    race(HoldsOff(Races::new(1, Work::Outside)));
}

/// SLEEP-2: worker 0 ends its search during a push, while worker 1 sleeps, which needs no thread.
struct EndsSearch(Races);

impl Race for EndsSearch {
    fn prepare(&self, round: usize) {
        self.0.reset(round);
        let sleep = &self.0.sleep;
        sleep.sleepers.lock().stack.push(1);
        sleep.state.store(ONE_SLEEPER, Ordering::Relaxed);
        assert!(sleep.try_search());
    }

    fn left(&self, _round: usize) {
        self.0.push();
        self.0.sleep.notify();
    }

    fn right(&self, _round: usize) {
        self.0.sleep.search_no_more(&self.0);
    }

    fn judge(&self, round: usize) {
        let is_asleep = self.0.sleep.sleepers.lock().stack.len() > 0;
        assert!(!is_asleep, "a wake-up was lost in round {round}");
    }
}

#[test]
fn litmus_a_push_is_not_missed_by_a_worker_that_ends_its_search() {
    race(EndsSearch(Races::new(2, Work::Ring)));
}

/// SLEEP-3: worker 0 ends its watch while worker 1 fills its slot.
struct EndsWatch(Races);

impl Race for EndsWatch {
    fn prepare(&self, round: usize) {
        self.0.reset(round);
    }

    fn left(&self, _round: usize) {
        self.0.push();
        self.0.sleep.notify_slot();
    }

    fn right(&self, _round: usize) {
        let woken = self.0.sleep.sleep(0, (false, true), &self.0);
        assert!(matches!(woken, Woken::ByItself { .. }));
    }

    fn watch(&self, round: usize) {
        if self.0.is_parked(round) && !self.0.must_rise.load(Ordering::Relaxed) {
            let sleepers = self.0.sleep.sleepers.lock();
            // Relaxed: it changes under the lock.
            let is_watched = self.0.sleep.state.load(Ordering::Relaxed) & WATCHED != 0;
            let is_asleep = sleepers.stack.len() > 0;
            assert!(
                is_watched || !is_asleep,
                "no sleeper watches the slot that was filled in round {round}"
            );
            drop(sleepers);
            self.0.must_rise.store(true, Ordering::Relaxed);
            self.0.sleep.wake_all();
        }
    }

    fn judge(&self, _round: usize) {}
}

#[test]
fn litmus_a_slot_is_not_missed_by_a_worker_that_ends_its_watch() {
    race(EndsWatch(Races::new(2, Work::Slot)));
}

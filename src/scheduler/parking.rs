//! Where workers rest whose policy does not park them itself.
//!
//! # Invariants
//! - PARKING-1: every enqueue is followed by `notify`; every worker that lies down looks at the policy once
//!   more. The two fences order these, so one of both finds the runnable, as in `sleep.md`.
//! - PARKING-2: a worker that was woken and has found something else passes the wake-up on.

use super::duties::Duties;
use super::sleepers::SleeperStack;
use crate::park::Parker;
use crate::sync::atomic::{AtomicUsize, Ordering, fence};
use crate::sync::{Mutex, mutant};
use crate::task::Runnable;

pub(crate) struct Parking {
    resting: Mutex<SleeperStack>,
    /// How many that are; written under the lock.
    count: AtomicUsize,
    parkers: Box<[Parker]>,
}

impl Parking {
    pub(crate) fn new(workers: usize) -> Self {
        Parking {
            resting: Mutex::new(SleeperStack::new(workers)),
            count: AtomicUsize::new(0),
            parkers: (0..workers).map(|_| Parker::new()).collect(),
        }
    }

    /// After an enqueue: wakes one of those who rest, the last to lie down first.
    pub(crate) fn notify(&self) {
        if !mutant("parking_is_notified_without_fence") {
            // SeqCst pairs with the fence in `rest` (PARKING-1).
            fence(Ordering::SeqCst);
        }
        // Relaxed: ordered by the fence.
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut resting = self.resting.lock();
        let woken = resting.pop();
        // Relaxed: as above.
        self.count.store(resting.len(), Ordering::Relaxed);
        drop(resting);
        if let Some(woken) = woken {
            self.parkers[woken].unpark();
        }
    }

    /// Has all who rest look at their duties.
    pub(crate) fn wake_all(&self) {
        self.parkers.iter().for_each(Parker::unpark);
    }

    /// Rests until there is something for this worker: `dequeue` is its last look before that.
    pub(crate) fn rest(
        &self,
        me: usize,
        duties: &Duties<'_>,
        dequeue: impl FnOnce() -> Option<Runnable>,
    ) -> Option<Runnable> {
        let mut resting = self.resting.lock();
        resting.push(me);
        // Relaxed: ordered by the fence.
        self.count.store(resting.len(), Ordering::Relaxed);
        drop(resting);
        // SeqCst pairs with the fence in `notify` (PARKING-1).
        fence(Ordering::SeqCst);
        let found = if mutant("parking_without_a_last_look") {
            None
        } else {
            dequeue()
        };
        if found.is_some() || self.park(me, duties) {
            self.get_up(me, found.is_some());
        }
        found
    }

    /// Goes on with a rest of a driven worker, if that is not over.
    pub(crate) fn resume(&self, me: usize, duties: &Duties<'_>) {
        if self.park(me, duties) {
            self.get_up(me, false);
        }
    }

    /// `has_found`: this worker has something to do, also if it was woken for something else.
    fn get_up(&self, me: usize, has_found: bool) {
        let mut resting = self.resting.lock();
        if resting.remove(me) {
            // Relaxed: ordered by the fence.
            self.count.store(resting.len(), Ordering::Relaxed);
        } else if has_found && !mutant("a_wake_up_is_not_passed_on") {
            drop(resting);
            self.notify();
        }
    }

    /// Waits; returns false if the worker waits in its driver.
    fn park(&self, me: usize, duties: &Duties<'_>) -> bool {
        let parker = &self.parkers[me];
        while self.resting.lock().contains(me) && !duties.must_rise() {
            let wait = duties.until_next();
            if wait.is_some_and(|wait| wait.is_zero()) {
                break;
            }
            let Some(driven) = duties.driver() else {
                duties.parks();
                parker.park(wait);
                continue;
            };
            if driven.waits().is_none() {
                duties.parks();
                self.resting.lock().waits_here(me);
            }
            // First, so that a panic of the waker leaves a worker that knows that it rests.
            driven.set_waits(Some(wait));
            if driven.take_over() {
                break;
            }
            if !parker.poll(driven.waker()) {
                return false;
            }
        }
        if let Some(driven) = duties.driver() {
            driven.set_waits(None);
            self.resting.lock().woken(me);
            parker.stop_waiting();
        }
        true
    }

    #[cfg(all(test, greenroom_loom))]
    pub(crate) fn resting(&self) -> usize {
        self.resting.lock().len()
    }
}

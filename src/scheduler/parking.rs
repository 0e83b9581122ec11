//! Parking for workers whose policy does not park them itself.
//!
//! # Invariants
//! - PARKING-1: every enqueue is followed by `notify`, and every worker that goes to sleep checks
//!   the policy once more. The two fences order these steps, so at least one side finds the
//!   runnable, as in `sleep.md`.
//! - PARKING-2: a worker that was woken for one runnable and has found another passes the wake-up
//!   on.

use super::duties::Duties;
use super::sleepers::SleeperStack;
use crate::park::Parker;
use crate::sync::atomic::{AtomicUsize, Ordering, fence};
use crate::sync::{Mutex, mutant};
use crate::task::Runnable;

pub(crate) struct Parking {
    resting: Mutex<SleeperStack>,
    /// The number of workers in `resting`; written under the lock.
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

    /// Wakes one resting worker after an enqueue, the last to go to sleep first.
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
        // Relaxed: ordered by the fence.
        self.count.store(resting.len(), Ordering::Relaxed);
        drop(resting);
        if let Some(woken) = woken {
            self.parkers[woken].unpark();
        }
    }

    /// Wakes all resting workers, so that they check their duties.
    pub(crate) fn wake_all(&self) {
        self.parkers.iter().for_each(Parker::unpark);
    }

    /// Parks until there is a runnable for this worker. `dequeue` is its last check before that.
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

    /// Continues the wait of a driven worker, if it has not ended.
    pub(crate) fn resume(&self, me: usize, duties: &Duties<'_>) {
        if self.park(me, duties) {
            self.get_up(me, false);
        }
    }

    /// Ends the rest of a worker whose loop panicked. A wake-up that it had may be for a runnable, so
    /// it is passed on.
    pub(crate) fn recover(&self, me: usize) {
        self.resting.lock().woken(me);
        self.parkers[me].stop_waiting();
        self.get_up(me, true);
    }

    /// Leaves `resting`. `has_found`: this worker has a runnable, and passes on a wake-up for
    /// another.
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

    /// Waits until the worker is woken or has a duty. Returns false if it waits in its driver.
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
            if !driven.is_sleeping() {
                duties.parks();
                self.resting.lock().waits_here(me);
            }
            // Before the poll, after which the waker may have been called.
            driven.sleep(wait);
            if driven.take_over() {
                break;
            }
            if !parker.poll(driven.waker()) {
                return false;
            }
        }
        if let Some(driven) = duties.driver() {
            driven.wake();
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

//! Detects that a runtime has run out of work. In Sophie (<https://github.com/kjosib/sophie>) that
//! is the end of the program.
//!
//! Asks may be ended as a deadlock before that, if the only deadlines are their own timeouts.

use crate::runtime::deadlock;
use crate::runtime::declared::End;
use crate::runtime::inner::Inner;
use crate::runtime::warning::Warning;
use crate::sync::atomic::{Ordering, fence};
use crate::sync::mutant;
use crate::timers::Left;

impl Inner {
    /// Counts a thread or runnable that may create work.
    pub(crate) fn inc_activity(&self) {
        self.scheduler.activity.inc();
    }

    /// Releases such a count, where wakers may be called.
    pub(crate) fn dec_activity(&self) {
        if self.scheduler.activity.dec() {
            self.declare();
        }
    }

    /// Declares quiescence if it has been reached, where wakers may be called.
    pub(crate) fn declare(&self) {
        if !self.is_here() {
            return;
        }
        while let Some(end) = self.find_end() {
            if self.engine().judges_end(self) {
                return;
            }
            // The notified tasks may create work.
            self.inc_activity();
            self.tell(&end);
            if !self.scheduler.activity.dec() {
                return;
            }
        }
    }

    /// Notes quiescence from a worker that sleeps already; the worker wakes up to notify the
    /// waiters.
    pub(crate) fn declare_from_sleep(&self) {
        if let Some(end) = self.find_end() {
            *self.declared.last.lock() = Some(end);
            // Release pairs with the Acquire in `is_declared`.
            self.declared.is_declared.store(true, Ordering::Release);
        }
    }

    /// Notifies the waiters of the quiescence that this or another worker has noted.
    pub(crate) fn tell_what_is_declared(&self) {
        if !self.declared.is_declared() {
            return;
        }
        let declared = self.declared.last.lock().take();
        // Release: as above. A later declaration is made when this worker sleeps again.
        self.declared.is_declared.store(false, Ordering::Release);
        declared.iter().for_each(|end| self.tell(end));
    }

    /// Ends the asks that can never be answered, whose askers then continue. If there are none,
    /// warns of other waits that never end, and wakes the tasks that wait for quiescence.
    fn tell(&self, end: &End) {
        if !end.deadlocked.is_empty() {
            deadlock::end(&end.deadlocked, &end.waits);
            return;
        }
        self.waits.told(&end.cycles);
        for cycle in &end.cycles {
            self.warnings.warn(&Warning::Deadlock(cycle.path.clone()));
        }
        if end.askers > self.scheduler.activity.told() && self.options.detect_deadlocks {
            self.warn_of_lonely_actors();
        }
        self.scheduler.activity.tell(end.askers);
        self.declared.waiters.wake_all();
    }

    /// Returns the end to declare if nothing is in flight, nothing can create work, and a task
    /// waits for quiescence, for a reply, or for another task in a cycle.
    fn find_end(&self) -> Option<End> {
        let activity = &self.scheduler.activity;
        // Acquire: sees everything that threads no longer counted have put into queues
        // (ACTIVITY-1).
        let before = activity.read(Ordering::Acquire);
        if activity.is_active(before) || !activity.is_asked() {
            return None;
        }
        let left = match self.timers.left() {
            Left::TimeOuts if mutant("time_outs_are_no_work") => Left::Nothing,
            left => left,
        };
        if !mutant("declared_before_the_scan")
            && (self.scheduler.has_uncounted() || left == Left::Events)
        {
            return None;
        }
        let waiting = self.asks.waiting();
        let waits = match self.options.detect_deadlocks {
            true => self.waits.stuck(),
            false => Vec::new(),
        };
        let deadlocked = match left {
            Left::TimeOuts => deadlock::deadlocked(waiting, &waits)?,
            _ => waiting,
        };
        // An ask that ends may end a cycle.
        let cycles = match deadlocked.is_empty() {
            true => deadlock::cycles(&waits),
            false => Vec::new(),
        };
        let askers = activity.askers();
        if deadlocked.is_empty() && cycles.is_empty() && askers <= activity.told() {
            return None;
        }
        let end = End {
            askers,
            deadlocked,
            waits,
            cycles,
        };
        // Acquire pairs with the Release of each removal that was seen, so that the increment
        // before that removal is seen.
        fence(Ordering::Acquire);
        let same = activity.read(Ordering::Relaxed) == before;
        (same || mutant("declared_without_a_second_look")).then_some(end)
    }
}

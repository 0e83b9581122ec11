//! When a runtime has run out of work, which is for document 1 the end of the program.
//!
//! Asks may be ended as a deadlock before that: if the only deadlines are their own time-outs.

use crate::runtime::deadlock;
use crate::runtime::declared::End;
use crate::runtime::inner::Inner;
use crate::sync::atomic::{Ordering, fence};
use crate::sync::mutant;
use crate::timers::Left;

impl Inner {
    /// Counts somebody who may bring forth work.
    pub(crate) fn inc_activity(&self) {
        self.scheduler.activity.inc();
    }

    /// Counts him no more. Called where wakers may be called.
    pub(crate) fn dec_activity(&self) {
        if self.scheduler.activity.dec() {
            self.declare();
        }
    }

    /// Declares the end, if it has come, where wakers may be called.
    pub(crate) fn declare(&self) {
        if !self.is_here() {
            return;
        }
        while let Some(end) = self.find_end() {
            if self.engine().judges_end(self) {
                return;
            }
            // Whoever tells brings forth work.
            self.inc_activity();
            self.tell(&end);
            if !self.scheduler.activity.dec() {
                return;
            }
        }
    }

    /// The same in a worker that sleeps already: it gets up to tell.
    pub(crate) fn declare_from_sleep(&self) {
        if let Some(end) = self.find_end() {
            *self.declared.last.lock() = Some(end);
            // Release pairs with the Acquire in `is_declared`.
            self.declared.is_declared.store(true, Ordering::Release);
        }
    }

    /// Tells what this or another worker has declared.
    pub(crate) fn tell_what_is_declared(&self) {
        if !self.declared.is_declared() {
            return;
        }
        let declared = self.declared.last.lock().take();
        // Release: as above. Whoever declares later does so when this worker sleeps again.
        self.declared.is_declared.store(false, Ordering::Release);
        declared.iter().for_each(|end| self.tell(end));
    }

    /// Those who wait for an answer that nobody was left to give are told so, and go on; if there is
    /// none, it was the end.
    fn tell(&self, end: &End) {
        if !end.deadlocked.is_empty() {
            deadlock::end(&end.deadlocked);
            return;
        }
        self.scheduler.activity.tell(end.askers);
        self.declared.waiters.wake_all();
    }

    /// Whether nothing is in flight, nobody is about to bring forth anything, and somebody asks.
    fn find_end(&self) -> Option<End> {
        let activity = &self.scheduler.activity;
        // Acquire: what everybody had put into queues who is counted no more is seen (ACTIVITY-1).
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
        let end = End {
            askers: activity.askers(),
            deadlocked: match left {
                Left::TimeOuts => deadlock::deadlocked(waiting)?,
                _ => waiting,
            },
        };
        // Acquire pairs with the Release of whatever was seen to be taken: then the rise before that
        // is seen.
        fence(Ordering::Acquire);
        let same = activity.read(Ordering::Relaxed) == before;
        (same || mutant("declared_without_a_second_look")).then_some(end)
    }
}

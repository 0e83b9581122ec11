//! The state of a plain task, in one word: how often it was woken, how many hold it, how far it is.
//!
//! A wake-up adds one to what is there; the first schedules the task, and what comes before its run
//! begins is made one with that. What the run ends with is that one, and what came meanwhile. So a wake-up
//! costs one exchange, and a run one at most.
//!
//! # Invariants
//! - TASK-STATE-1: it counts at least one wake-up while a runnable of the task exists, while it is run, and when it
//!   has ended. So the thread that adds the first one makes the one runnable.
//! - TASK-STATE-2: the handle and each waker count as one reference, and so does the task until it has ended.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{acquire, mutant};

/// Its future is gone, and what it came to, if anything, is there instead.
const ENDED: u64 = 1;
/// It is to end at its next suspension.
const CLOSED: u64 = 1 << 1;
/// Somebody has the handle.
const WANTED: u64 = 1 << 2;
/// There is a waker for the end; otherwise its place is the handle's.
const AWAITED: u64 = 1 << 3;
/// It came to something.
const VALUE: u64 = 1 << 4;

/// One wake-up. They are counted in 24 bits, of which they need few: who finds two adds none.
const WAKE: u64 = 1 << 8;
const WAKES: u64 = REF - WAKE;
/// One reference, in the upper half.
const REF: u64 = 1 << 32;

pub(super) struct TaskState(AtomicU64);

/// What a run that came to nothing leaves behind.
pub(super) enum PollOutcome {
    Asleep,
    /// It was woken meanwhile: the caller has its runnable.
    Again,
    /// It is to end: the run goes on to do that.
    Closed,
}

/// What was there before the end.
pub(super) struct Before {
    pub(super) is_wanted: bool,
    pub(super) is_awaited: bool,
}

/// What the handle finds.
#[derive(PartialEq, Eq)]
pub(super) enum Found {
    /// It has not ended yet.
    Alive,
    Ended {
        has_value: bool,
    },
}

impl Found {
    fn of(word: u64) -> Self {
        if word & ENDED == 0 {
            return Found::Alive;
        }
        Found::Ended {
            has_value: word & VALUE != 0,
        }
    }
}

fn wakes(word: u64) -> u64 {
    word & WAKES
}

impl TaskState {
    /// Of a task that has a handle and is woken for the first time.
    pub(super) fn new() -> Self {
        TaskState(AtomicU64::new(WANTED | WAKE | (2 * REF)))
    }

    // -- runs ---------------------------------------------------------------------------------

    /// Whether the caller makes the runnable.
    #[inline]
    pub(super) fn wake(&self) -> bool {
        // Release pairs with the Acquire of `begin`: what was done before is seen by the run.
        let order = if mutant("woken_relaxed") {
            Ordering::Relaxed
        } else {
            Ordering::AcqRel
        };
        // Relaxed: looked at again, with the order that a wake-up needs.
        let seen = self.0.load(Ordering::Relaxed);
        if wakes(seen) > WAKE {
            let exchanges = !mutant("third_wake_without_exchange");
            if !exchanges || wakes(self.0.fetch_or(0, order)) > WAKE {
                return false;
            }
        }
        wakes(self.0.fetch_add(WAKE, order)) == 0
    }

    /// Makes all wake-ups one and says whether there is to be a run; otherwise it is to end.
    #[inline]
    pub(super) fn begin(&self) -> bool {
        // Relaxed: the first wake-up is ordered by the queue that the runnable comes from. One that is not
        // seen here is seen by `rest`, or by the next `begin`.
        let mut word = self.0.load(Ordering::Relaxed);
        if wakes(word) > WAKE {
            let order = if mutant("begun_relaxed") {
                Ordering::Relaxed
            } else {
                Ordering::Acquire
            };
            // Acquire pairs with the Release in `wake`.
            word = self.0.fetch_sub(wakes(word) - WAKE, order);
        }
        word & CLOSED == 0
    }

    /// After a run that came to nothing. `woken`: it has woken itself.
    #[inline]
    pub(super) fn rest(&self, woken: bool) -> PollOutcome {
        // Relaxed: who closes it wakes it, too.
        let word = self.0.load(Ordering::Relaxed);
        if word & CLOSED != 0 {
            return PollOutcome::Closed;
        }
        // (TASK-STATE-1) The one wake-up stays, for the runnable.
        if woken || wakes(word) > WAKE {
            return PollOutcome::Again;
        }
        if mutant("rest_without_exchange") {
            self.0.store(word - WAKE, Ordering::Release);
            return PollOutcome::Asleep;
        }
        let order = if mutant("rested_relaxed") {
            Ordering::Relaxed
        } else {
            Ordering::AcqRel
        };
        // Release pairs with the Acquire of the next `wake`: what the run did is seen by the next one.
        if wakes(self.0.fetch_sub(WAKE, order)) > WAKE {
            PollOutcome::Again
        } else {
            PollOutcome::Asleep
        }
    }

    /// The future is gone.
    pub(super) fn end(&self, has_value: bool) -> Before {
        let value = if has_value { VALUE } else { 0 };
        // Release pairs with the Acquires of the handle: what it came to is there. Acquire pairs with the
        // Release in `arm`: so is the waker.
        let word = self.0.fetch_or(ENDED | value, Ordering::AcqRel);
        Before {
            is_wanted: word & WANTED != 0,
            is_awaited: word & AWAITED != 0,
        }
    }

    // -- the handle ---------------------------------------------------------------------------

    pub(super) fn look(&self) -> Found {
        // Acquire pairs with the Release in `end`.
        Found::of(self.0.load(Ordering::Acquire))
    }

    /// It is to end; says whether the caller is to wake it.
    pub(super) fn close(&self) -> bool {
        // Relaxed: the wake-up that follows is seen by who has to end it.
        self.0.fetch_or(CLOSED, Ordering::Relaxed) & (ENDED | CLOSED) == 0
    }

    /// Has the place of the waker for the handle, unless it has ended.
    pub(super) fn disarm(&self) -> Found {
        // Relaxed: only the handle arms.
        if self.0.load(Ordering::Relaxed) & AWAITED == 0 {
            return self.look();
        }
        if mutant("disarmed_without_exchange") {
            return self.look();
        }
        // Acquire pairs with the Release in `end`.
        Found::of(self.0.fetch_and(!AWAITED, Ordering::Acquire))
    }

    /// Leaves the place of the waker to the end, unless that has been.
    pub(super) fn arm(&self) -> Found {
        // Release pairs with the Acquire in `end`, Acquire with its Release.
        Found::of(self.0.fetch_or(AWAITED, Ordering::AcqRel))
    }

    /// The handle goes away with its reference, unless the task has ended.
    pub(super) fn detach(&self) -> Found {
        let leave = |word: u64| (word & ENDED == 0).then(|| (word & !WANTED) - REF);
        // Acquire pairs with the Release in `end`. Release: as in `release`.
        let left = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, leave);
        left.map_or_else(Found::of, |_| Found::Alive)
    }

    // -- references ---------------------------------------------------------------------------

    /// The caller has one already.
    pub(super) fn retain(&self) {
        // Relaxed: that one keeps it.
        let word = self.0.fetch_add(REF, Ordering::Relaxed);
        if word / REF > u64::from(crate::sync::COUNT_MAX) {
            std::process::abort();
        }
    }

    /// Gives one up; whether it was the last.
    pub(super) fn release(&self) -> bool {
        let order = if mutant("released_relaxed") {
            Ordering::Relaxed
        } else {
            Ordering::Release
        };
        // Release pairs with the fence below: what was done under any reference is done before.
        let was_last = self.0.fetch_sub(REF, order) / REF == 1;
        if was_last {
            acquire(|order| self.0.load(order));
        }
        was_last
    }
}

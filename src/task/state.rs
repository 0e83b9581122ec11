//! The state word of a plain task: a counter of wake-ups, a counter of references, and flags.
//!
//! A wake-up adds one to the first counter, and the first wake-up schedules the task. `begin`
//! merges the wake-ups that came before the turn into one. At the end of the turn, `rest` finds
//! that one and those that came meanwhile. So a wake-up usually costs one read-modify-write, and so
//! does a turn.
//!
//! # Invariants
//! - TASK-STATE-1: the word counts at least one wake-up while a runnable of the task exists, while
//!   the task is run, and after it has ended. So a thread that adds the first wake-up creates the
//!   one runnable.
//! - TASK-STATE-2: the handle and each waker count as one reference, and so does the task until it
//!   has ended.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{acquire, mutant};

/// The task has ended: its future was dropped, and its outcome, if any, is stored.
const ENDED: u64 = 1;
/// The task is to end at its next suspension.
const CLOSED: u64 = 1 << 1;
/// The handle exists.
const WANTED: u64 = 1 << 2;
/// The awaiter is armed: the end wakes it. Otherwise the awaiter belongs to the handle.
const AWAITED: u64 = 1 << 3;
/// There is an outcome.
const VALUE: u64 = 1 << 4;

/// One wake-up. The counter has 24 bits and needs few of them: a thread that finds two wake-ups
/// adds none.
const WAKE: u64 = 1 << 8;
const WAKES: u64 = REF - WAKE;
/// One reference, counted in the upper half.
const REF: u64 = 1 << 32;

pub(super) struct TaskState(AtomicU64);

/// The result of a turn in which the future did not complete.
pub(super) enum PollOutcome {
    Asleep,
    /// The task was woken meanwhile: the caller creates its runnable.
    Again,
    /// The task is to end: the turn continues with that.
    Closed,
}

/// The flags before the end.
pub(super) struct Before {
    pub(super) is_wanted: bool,
    pub(super) is_awaited: bool,
}

/// The state that the handle finds.
#[derive(PartialEq, Eq)]
pub(super) enum Found {
    /// The task has not ended yet.
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
    /// Creates the state of a new task, which has a handle and one wake-up.
    pub(super) fn new() -> Self {
        TaskState(AtomicU64::new(WANTED | WAKE | (2 * REF)))
    }

    // -- turns --------------------------------------------------------------------------------

    /// Adds a wake-up. Returns whether the caller creates the runnable.
    #[inline]
    pub(super) fn wake(&self) -> bool {
        // Release pairs with the Acquire of `begin`: the turn sees what this thread did before.
        let order = if mutant("woken_relaxed") {
            Ordering::Relaxed
        } else {
            Ordering::AcqRel
        };
        // Relaxed: read again below, with the ordering that a wake-up needs.
        let seen = self.0.load(Ordering::Relaxed);
        if wakes(seen) > WAKE {
            // An RMW although it changes nothing, so that it finds the newest word. Its Release
            // pairs with the Acquire of the `begin` that merges these wake-ups.
            let exchanges = !mutant("third_wake_without_exchange");
            if !exchanges || wakes(self.0.fetch_or(0, order)) > WAKE {
                return false;
            }
        }
        wakes(self.0.fetch_add(WAKE, order)) == 0
    }

    /// Merges all wake-ups into one. Returns whether to poll the future; otherwise the task is to
    /// end.
    #[inline]
    pub(super) fn begin(&self) -> bool {
        // Relaxed: the executor's queue orders the first wake-up before its turn. A wake-up that is
        // not seen here is seen by `rest` or by the next `begin`.
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

    /// Ends a turn in which the future did not complete. `woken`: the turn has woken its own task.
    #[inline]
    pub(super) fn rest(&self, woken: bool) -> PollOutcome {
        // Relaxed: a thread that closes the task also wakes it.
        let word = self.0.load(Ordering::Relaxed);
        if word & CLOSED != 0 {
            return PollOutcome::Closed;
        }
        // (TASK-STATE-1) One wake-up stays, for the runnable.
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
        // Release pairs with the Acquire of the next `wake`: the next turn sees what this turn did.
        if wakes(self.0.fetch_sub(WAKE, order)) > WAKE {
            PollOutcome::Again
        } else {
            PollOutcome::Asleep
        }
    }

    /// Marks the task as ended, after its future was dropped.
    pub(super) fn end(&self, has_value: bool) -> Before {
        let value = if has_value { VALUE } else { 0 };
        // Release pairs with the Acquires of the handle, which sees the outcome. Acquire pairs with
        // the Release in `arm`, so this thread sees the waker.
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

    /// Marks the task to end. Returns whether the caller is to wake it.
    pub(super) fn close(&self) -> bool {
        // Relaxed: the wake-up that follows makes this visible to the turn that ends the task.
        self.0.fetch_or(CLOSED, Ordering::Relaxed) & (ENDED | CLOSED) == 0
    }

    /// Returns whether the awaiter is armed.
    #[inline]
    pub(super) fn is_awaited(&self) -> bool {
        // Relaxed: only the handle arms, and it is the one that asks.
        self.0.load(Ordering::Relaxed) & AWAITED != 0
    }

    /// Claims the awaiter for the handle, unless the task has ended.
    pub(super) fn disarm(&self) -> Found {
        if !self.is_awaited() {
            return self.look();
        }
        if mutant("disarmed_without_exchange") {
            return self.look();
        }
        // Acquire pairs with the Release in `end`.
        Found::of(self.0.fetch_and(!AWAITED, Ordering::Acquire))
    }

    /// Leaves the awaiter to the thread that ends the task, unless the task has ended.
    pub(super) fn arm(&self) -> Found {
        // Release pairs with the Acquire in `end`, Acquire with its Release.
        Found::of(self.0.fetch_or(AWAITED, Ordering::AcqRel))
    }

    /// Gives up the handle and its reference, unless the task has ended.
    pub(super) fn detach(&self) -> Found {
        let leave = |word: u64| (word & ENDED == 0).then(|| (word & !WANTED) - REF);
        // Acquire pairs with the Release in `end`. Release: as in `release`.
        let left = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, leave);
        left.map_or_else(Found::of, |_| Found::Alive)
    }

    // -- references ---------------------------------------------------------------------------

    /// Adds a reference. The caller holds one.
    pub(super) fn retain(&self) {
        // Relaxed: the caller's reference keeps the task alive.
        let word = self.0.fetch_add(REF, Ordering::Relaxed);
        if word / REF > u64::from(crate::sync::COUNT_MAX) {
            std::process::abort();
        }
    }

    /// Releases a reference. Returns whether it was the last one.
    pub(super) fn release(&self) -> bool {
        let order = if mutant("released_relaxed") {
            Ordering::Relaxed
        } else {
            Ordering::Release
        };
        // Release pairs with the fence below: all uses of the task under any reference happen
        // before it is freed.
        let was_last = self.0.fetch_sub(REF, order) / REF == 1;
        if was_last {
            acquire(|order| self.0.load(order));
        }
        was_last
    }
}

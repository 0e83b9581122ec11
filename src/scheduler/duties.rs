//! What a worker sees to besides running tasks, as its policy is told of it.

use std::time::Duration;

use super::counters::{Counted, Counters};
use super::driven::Driven;
use super::owner::Owner;

/// What a worker has to see to besides running tasks: timers, the shutdown.
#[derive(Clone, Copy)]
pub struct Duties<'a> {
    owner: &'a dyn Owner,
    counters: &'a [Counters],
    worker: usize,
    /// It has come for what is left, and does not wait.
    last: bool,
    /// It waits where this is driven, and not in the policy.
    driven: Option<&'a Driven>,
}

impl<'a> Duties<'a> {
    pub(super) fn new(owner: &'a dyn Owner, counters: &'a [Counters], worker: usize) -> Self {
        Duties {
            owner,
            counters,
            worker,
            last: false,
            driven: None,
        }
    }

    /// Makes those of a worker that waits elsewhere.
    pub(super) fn driven(self, driven: Option<&'a Driven>) -> Self {
        Duties { driven, ..self }
    }

    /// Returns where the worker waits, if that is not in the policy.
    pub(super) fn driver(&self) -> Option<&'a Driven> {
        self.driven
    }

    /// Makes those of a thread that has come for what is left, and does not wait.
    pub(super) fn last(self) -> Self {
        Duties { last: true, ..self }
    }

    /// Whether `dequeue` must give what it has, or `None`, and not park.
    pub fn must_return(&self) -> bool {
        self.driven.is_some() || self.must_rise()
    }

    /// Returns whether the worker has lain down and waits in its driver.
    pub(super) fn is_waiting(&self) -> bool {
        self.driven.is_some_and(|driven| driven.waits().is_some())
    }

    /// Returns whether there is something to see to besides runnables.
    pub(super) fn must_rise(&self) -> bool {
        self.last || self.owner.must_see_to(self.worker)
    }

    /// How long `dequeue` may park at most; `None`: until there is something.
    pub fn until_next(&self) -> Option<Duration> {
        self.owner.until_next()
    }

    /// Has [`Runtime::stats`](crate::Runtime::stats) count that this worker parks: for policies that
    /// park by themselves. That it wakes up is counted when `dequeue` ends, or by the next call.
    pub fn parks(&self) {
        self.count(Counted::Park);
    }

    /// Has them count that this worker is awake again, if it has parked.
    pub(super) fn wakes_up(&self) {
        self.counters[self.worker].wake_up();
    }

    pub(super) fn count(&self, counted: Counted) {
        self.counters[self.worker].count(counted);
    }

    /// How many turns a worker has begun.
    pub(super) fn turns(&self, worker: usize) -> u64 {
        self.counters[worker].runs()
    }

    /// This worker sleeps now: with it, everything may have come to rest.
    pub(super) fn lies_down(&self) {
        self.owner.worker_sleeps();
    }

    /// Returns whether another thread goes on as this worker, so that this one must not wait.
    pub(super) fn is_displaced(&self) -> bool {
        self.owner.is_displaced()
    }
}

impl std::fmt::Debug for Duties<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Duties")
            .field("must_return", &self.must_return())
            .field("until_next", &self.until_next())
            .finish()
    }
}

//! The loop of a worker: ask the policy for something, run it, and see to other duties in between.

use super::counters::Counters;
use super::driven::Driven;
use super::local::WorkerLocal;
use super::owner::Owner;
use super::shared::Scheduler;
use crate::contain::contain;
use crate::instant::Instant;
use crate::sync::mutant;
use crate::task::{Runnable, TaskKey};
use crate::timers::{Pace, Timers};

/// Why a thread is no worker any more.
#[derive(PartialEq, Eq)]
pub(crate) enum WorkerEnd {
    /// The runtime is over, and with it the thread.
    Over,
    /// Another thread goes on in its place: it waited in `block_on`, in a turn that has ended.
    Displaced,
}

/// What a shutdown wants of a worker between two turns.
pub(crate) enum ShutdownStep {
    /// The worker goes on as before.
    GoOn,
    /// This was queued before the shutdown, and is run next.
    Run(Runnable),
    /// Nothing runs any more.
    End,
}

/// The owner of a scheduler, as the loop of a worker sees it.
pub(crate) trait Employer: Owner {
    fn scheduler(&self) -> &Scheduler;

    fn timers(&self) -> &Timers;

    /// Wakes all whose deadline is over; returns how many.
    fn fire(&self, now: Instant) -> usize;

    /// Has the end told that this or another worker has declared while it slept.
    fn tell_what_is_declared(&self);

    /// Returns whether each run is told to an observer or to the policy.
    fn is_observed(&self) -> bool;

    fn run_observed(&self, local: Option<&WorkerLocal<'_>>, runnable: Runnable);

    /// Ends a turn of which the policy or an observer was told.
    fn turn_ended(&self);

    /// Tells a shutdown that waits for it that a turn has ended.
    fn progress(&self);

    /// Does what a shutdown wants of this worker; `queued`: it is the turn of what was queued before.
    fn see_to_shutdown(&self, local: &WorkerLocal<'_>, queued: bool) -> ShutdownStep;

    /// Drops what will not be run any more, unless it is exempt.
    fn drop_unneeded(&self, runnable: Runnable);
}

/// Where a worker notes what it runs.
pub(crate) trait TurnContext {
    /// Notes what is run from now on.
    fn set_running(&self, key: Option<TaskKey>);

    /// Returns whether another thread goes on as this worker.
    fn is_displaced(&self) -> bool;
}

/// A thread as a worker.
pub(crate) struct Worker<'a, E, C> {
    employer: &'a E,
    local: &'a WorkerLocal<'a>,
    context: &'a C,
    counters: &'a Counters,
    is_observed: bool,
    pace: Pace,
    /// In a shutdown: it is the turn of what was queued before, and not of the policy.
    looks_at_queued: bool,
}

impl<'a, E: Employer, C: TurnContext> Worker<'a, E, C> {
    pub(crate) fn new(employer: &'a E, local: &'a WorkerLocal<'a>, context: &'a C) -> Self {
        Worker {
            employer,
            local,
            context,
            counters: &employer.scheduler().counters[local.index()],
            is_observed: employer.is_observed(),
            pace: Pace::new(),
            looks_at_queued: false,
        }
    }

    pub(crate) fn run_until_over(&mut self) -> WorkerEnd {
        match self.run::<false>() {
            Some(left) => left,
            None => unreachable!("a worker without a driver waits in its policy"),
        }
    }

    /// Runs until there is nothing to run, or for about 50 µs; `None`: the worker goes on when it is polled again.
    /// It has lain down if its [`Driven`] says how long it may wait.
    pub(crate) fn poll(&mut self, driven: &Driven) -> Option<WorkerEnd> {
        let duties = self.local.duties();
        if driven.waits().is_some() {
            let found = self.local.resume(&duties);
            if driven.waits().is_some() {
                return None;
            }
            match found {
                Some(runnable) => self.run_aside(runnable),
                None => self.see_to_duties(),
            }
        }
        self.run::<true>()
    }

    #[inline(always)]
    fn run<const DRIVEN: bool>(&mut self) -> Option<WorkerEnd> {
        let duties = self.local.duties();
        loop {
            let is_closing = self.employer.is_closing();
            if is_closing {
                // The shutdown may wait for the turn that has just ended.
                self.employer.progress();
            }
            if self.context.is_displaced() {
                return Some(WorkerEnd::Displaced);
            }
            if is_closing {
                self.looks_at_queued = !self.looks_at_queued;
                match self
                    .employer
                    .see_to_shutdown(self.local, self.looks_at_queued)
                {
                    ShutdownStep::End => return Some(WorkerEnd::Over),
                    ShutdownStep::Run(runnable) => {
                        self.run_aside(runnable);
                        continue;
                    }
                    ShutdownStep::GoOn => {}
                }
            }
            if DRIVEN && let Some(now) = self.pace.is_time() {
                self.employer.fire(now);
                // A waker may have waited in `block_on`. Otherwise the reactor has its turn.
                return self.context.is_displaced().then_some(WorkerEnd::Displaced);
            }
            if !DRIVEN && self.fires_at_pace() && self.context.is_displaced() {
                // A waker has waited in `block_on`.
                return Some(WorkerEnd::Displaced);
            }
            let next = match DRIVEN {
                true => self.local.dequeue_driven(&duties),
                false => self.local.dequeue(&duties),
            };
            match next {
                Some(runnable) if DRIVEN => self.run_aside(runnable),
                Some(runnable) => self.run_one(runnable),
                None if DRIVEN && duties.is_waiting() => return None,
                None => self.see_to_duties(),
            }
        }
    }

    /// Looks at the deadlines if it is time to; says whether anything was woken.
    fn fires_at_pace(&mut self) -> bool {
        !self.employer.timers().is_empty()
            && self
                .pace
                .is_time()
                .is_some_and(|now| self.employer.fire(now) > 0)
    }

    /// There is nothing to run, or something comes before it.
    fn see_to_duties(&self) {
        if self.employer.fire(Instant::now()) > 0 {
            self.local.owe_keeper();
        }
        self.employer.tell_what_is_declared();
    }

    // Forced: it is what the loop does at each turn.
    #[inline(always)]
    fn run_one(&mut self, runnable: Runnable) {
        self.turn(runnable);
        if self.is_observed {
            self.employer.turn_ended();
        }
    }

    /// Does the same where that is seldom.
    #[inline(never)]
    fn run_aside(&mut self, runnable: Runnable) {
        self.run_one(runnable);
    }

    /// Drops what is left in this worker's queues, but for what is exempt.
    pub(crate) fn drop_all(&self) {
        if mutant("an_ended_worker_keeps_its_queues") {
            return;
        }
        loop {
            let left = self.local.drain();
            if left.is_empty() {
                return;
            }
            // Their drops may push more.
            for runnable in left {
                self.employer.drop_unneeded(runnable);
            }
        }
    }

    pub(crate) fn turn(&self, runnable: Runnable) {
        self.counters.begin_run();
        self.context.set_running(Some(runnable.key()));
        if self.is_observed {
            self.employer.run_observed(Some(self.local), runnable);
        } else {
            contain(|| runnable.run());
        }
        self.context.set_running(None);
    }
}

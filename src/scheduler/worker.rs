//! The loop of a worker: take a runnable from the policy, run it, and attend to other duties.

use super::counters::Counters;
use super::duties::DriverWait;
use super::duties::SchedulerOwner;
use super::local::WorkerLocal;
use super::shared::Scheduler;
use crate::contain::contain_uncounted;
use crate::instant::Instant;
use crate::sync::mutant;
use crate::task::{Runnable, TaskKey};
use crate::timers::Timers;

/// Why a thread stopped being a worker.
#[derive(PartialEq, Eq)]
pub(crate) enum WorkerEnd {
    /// The runtime has ended, and the thread ends too.
    Over,
    /// Another thread has taken over the worker, since this one waited in `block_on`. Its turn has
    /// ended.
    Displaced,
}

/// What a worker does for a shutdown between two turns.
pub(crate) enum ShutdownStep {
    /// Continue as before.
    GoOn,
    /// Run this task next, which was queued before the shutdown.
    Run(Runnable),
    /// End: no more tasks are run.
    End,
}

/// The owner of a scheduler, as the loop of a worker sees it.
pub(crate) trait Employer: SchedulerOwner {
    /// Returns the scheduler.
    fn scheduler(&self) -> &Scheduler;

    /// Returns the timers that the workers fire.
    fn timers(&self) -> &Timers;

    /// Fires all deadlines that have passed; returns how many.
    fn fire(&self, now: Instant) -> usize;

    /// Reports the quiescence that this or another worker declared while it slept.
    fn report_quiescence(&self);

    /// Returns whether an observer or the policy observes each turn.
    fn is_observed(&self) -> bool;

    /// Runs a turn that an observer or the policy observes.
    fn run_observed(&self, local: Option<&WorkerLocal<'_>>, runnable: Runnable);

    /// Ends a turn that the policy or an observer has observed.
    fn turn_ended(&self);

    /// Notifies a shutdown that a turn has ended.
    fn progress(&self);

    /// Takes part in a shutdown; `queued`: a task that was queued before the shutdown is next.
    fn see_to_shutdown(&self, local: &WorkerLocal<'_>, queued: bool) -> ShutdownStep;

    /// Drops a runnable that will not be run, unless it is exempt.
    fn drop_unneeded(&self, runnable: Runnable);
}

/// Where a worker records which task it runs.
pub(crate) trait TurnContext {
    /// Records the task that runs from now on.
    fn set_running(&self, key: Option<TaskKey>);

    /// Returns whether another thread has taken over this worker.
    fn is_displaced(&self) -> bool;
}

/// A thread as a worker.
pub(crate) struct WorkerLoop<'a, E, C> {
    employer: &'a E,
    local: &'a WorkerLocal<'a>,
    context: &'a C,
    counters: &'a Counters,
    is_observed: bool,
    pace: ClockPace,
    /// In a shutdown: the next task comes from the shutdown queue, and not from the policy.
    looks_at_queued: bool,
}

impl<'a, E: Employer, C: TurnContext> WorkerLoop<'a, E, C> {
    pub(crate) fn new(employer: &'a E, local: &'a WorkerLocal<'a>, context: &'a C) -> Self {
        WorkerLoop {
            employer,
            local,
            context,
            counters: &employer.scheduler().counters[local.index()],
            is_observed: employer.is_observed(),
            pace: ClockPace::new(),
            looks_at_queued: false,
        }
    }

    pub(crate) fn index(&self) -> usize {
        self.local.index()
    }

    /// Runs tasks until the runtime has ended or another thread has taken over the worker.
    pub(crate) fn run_until_over(&mut self) -> WorkerEnd {
        match self.run::<false>() {
            Some(left) => left,
            None => unreachable!("a worker without a driver waits in its policy"),
        }
    }

    /// Runs tasks until there are none, or for about 50 µs. Returns `None` if the worker must be
    /// polled again.
    ///
    /// The worker sleeps if its [`DriverWait`] says how long it may wait.
    pub(crate) fn poll(&mut self, driven: &DriverWait) -> Option<WorkerEnd> {
        let duties = self.local.duties();
        if driven.is_sleeping() {
            let found = self.local.resume(&duties);
            if driven.is_sleeping() {
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
                // The shutdown may wait for the end of this turn.
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
                // A waker may have called `block_on`. Otherwise yield to the reactor.
                return self.context.is_displaced().then_some(WorkerEnd::Displaced);
            }
            if !DRIVEN && self.fires_at_pace() && self.context.is_displaced() {
                // A waker has called `block_on`.
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

    /// Fires deadlines if it is time to check them; returns whether any was fired.
    fn fires_at_pace(&mut self) -> bool {
        !self.employer.timers().is_empty()
            && self
                .pace
                .is_time()
                .is_some_and(|now| self.employer.fire(now) > 0)
    }

    /// Attends to other duties: there is nothing to run, or something that precedes it.
    fn see_to_duties(&self) {
        // This worker may have been the keeper, and is awake. A busy one was not: the keeper sleeps on.
        if self.employer.fire(Instant::now()) > 0 {
            self.local.set_unkept_deadline();
        }
        self.employer.report_quiescence();
    }

    // Inlining is forced: this is the body of the loop.
    #[inline(always)]
    fn run_one(&mut self, runnable: Runnable) {
        self.turn(runnable);
        if self.is_observed {
            self.employer.turn_ended();
        }
    }

    /// Runs one task out of line: on the rare paths, and in each turn of a driven worker.
    #[inline(never)]
    fn run_aside(&mut self, runnable: Runnable) {
        self.run_one(runnable);
    }

    /// Drops all remaining runnables in this worker's queues, except those that are exempt.
    pub(crate) fn drop_all(&self) {
        if mutant("an_ended_worker_keeps_its_queues") {
            return;
        }
        // One at a time: a drop may wait for the next one, in `block_on`, or push more.
        while let Some(runnable) = self.local.take_left() {
            self.employer.drop_unneeded(runnable);
        }
    }

    /// Runs one turn of a task.
    pub(crate) fn turn(&self, runnable: Runnable) {
        self.counters.begin_run();
        self.context.set_running(Some(runnable.key()));
        if self.is_observed {
            self.employer.run_observed(Some(self.local), runnable);
        } else {
            contain_uncounted(|| runnable.run());
        }
        self.context.set_running(None);
    }
}

/// The interval in nanoseconds at which a busy executor checks its deadlines. Reading the clock
/// costs as much as a short turn, so not every turn does it.
const CLOCK_EVERY: u64 = 50_000;
/// The most turns between two checks, in case turns suddenly become long.
const TURNS_BETWEEN_MAX: u32 = 64;

/// When a busy executor reads the clock next. It adapts to the length of turns.
pub(crate) struct ClockPace {
    left: u32,
    between: u32,
    last: Instant,
}

impl ClockPace {
    pub(crate) fn new() -> Self {
        ClockPace {
            left: 0,
            between: 1,
            last: Instant::now(),
        }
    }

    /// Counts a turn; returns the time if the deadlines must be checked now.
    pub(crate) fn is_time(&mut self) -> Option<Instant> {
        if self.left > 0 {
            self.left -= 1;
            return None;
        }
        let now = Instant::now();
        self.adapt(now);
        Some(now)
    }

    /// Sets the number of turns until the next check, from the time that the last ones took.
    fn adapt(&mut self, now: Instant) {
        let last = std::mem::replace(&mut self.last, now);
        let passed = now.nanos().saturating_sub(last.nanos()).max(1);
        let wanted = u64::from(self.between) * CLOCK_EVERY / passed;
        self.between = wanted.clamp(1, u64::from(TURNS_BETWEEN_MAX)) as u32;
        self.left = self.between - 1;
    }
}

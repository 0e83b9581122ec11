//! The state of a market: the board, the line of producers, and the workers.
//!
//! What follows from a change is noted in an [`Aftermath`], and done when the lock is free.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use slab::Slab;

use super::board::{Board, BoardRules, JobTicket};
use super::cell::{JobAttempt, Work};
use super::error::JobError;
use super::status::MarketStatus;
use super::worker::MarketWorker;
use crate::contain::{KeptWaker, contain};
use crate::directory::HashedKey;
use crate::instant::Instant;
use crate::runtime::StartRetry;
use crate::sync::mutant;

#[derive(Clone, Copy)]
pub(super) struct MarketLimits {
    pub(super) workers: usize,
    pub(super) jobs: usize,
    /// How long a worker without a job stays.
    pub(super) idle: Duration,
    pub(super) rules: BoardRules,
}

/// A job on the board.
pub(super) struct WaitingJob {
    pub(super) work: Arc<dyn Work>,
    /// When it was due.
    pub(super) since: Instant,
}

/// The phase of a market, from open to ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MarketPhase {
    Open,
    /// What waits runs, and nothing is accepted.
    Draining,
    Stopped,
}

pub(super) struct MarketState<K> {
    pub(super) board: Board<K, WaitingJob>,
    /// The producers that wait for room, by the numbers of their jobs.
    pub(super) line: BTreeMap<u64, KeptWaker>,
    /// The producers that have left the line and have not used the room that they were given. None
    /// when nothing is accepted any more.
    pub(super) given: usize,
    pub(super) phase: MarketPhase,
    /// The workers: those that come, are idle, or run a job.
    pub(super) alive: usize,
    /// The workers of `alive` that were created and have not come yet.
    pub(super) absent: usize,
    /// A worker was woken or created, and has not asked for a job yet.
    pub(super) is_coming: bool,
    /// A worker was woken, and has not asked for a job yet.
    pub(super) is_woken: bool,
    /// The system has started no thread for the worker that is on its way.
    pub(super) is_stuck: bool,
    /// The workers that wait and were not woken, in the order in which they began to wait.
    pub(super) idle: BTreeMap<u64, Arc<MarketWorker>>,
    pub(super) waits: u64,
    /// The workers that run a job.
    pub(super) running: BTreeMap<JobTicket, Arc<MarketWorker>>,
    pub(super) created: u64,
    pub(super) died: u64,
    pub(super) discarded: u64,
    pub(super) finished: u64,
    pub(super) failed: u64,
    pub(super) retried: u64,
    pub(super) failed_starts: u64,
    pub(super) longest_wait: Duration,
    pub(super) retry: StartRetry,
    /// The latest moment that a change has seen.
    pub(super) now: Instant,
    /// The moment for which the timer of the market is set.
    pub(super) alarm: Option<Instant>,
    /// The waker of the actor that has the timer, if there is a runtime.
    pub(super) keeper: Option<KeptWaker>,
    /// The tasks that wait for the end.
    pub(super) enders: Slab<KeptWaker>,
}

/// A job that has run once, and how that has ended.
pub(super) struct RanJob {
    pub(super) ticket: JobTicket,
    pub(super) work: Arc<dyn Work>,
    pub(super) attempt: JobAttempt,
}

/// What follows from a change, and is done when the lock is free.
pub(super) struct Aftermath<K> {
    pub(super) wakers: Vec<KeptWaker>,
    /// Keys and jobs that are to be dropped.
    pub(super) keys: Vec<HashedKey<K>>,
    pub(super) refused: Vec<(WaitingJob, JobError)>,
    pub(super) woken: Vec<Arc<MarketWorker>>,
    /// Wakers that are to be dropped.
    pub(super) stale: Vec<KeptWaker>,
    /// A job whose outcome is not awaited.
    pub(super) unwanted: Option<Arc<dyn Work>>,
    /// A worker was created, and needs a thread.
    pub(super) is_hiring: bool,
    /// No thread was started when the worker on its way needed one.
    pub(super) is_asking_again: bool,
    /// The timer is to be set for this moment, which is earlier than before.
    pub(super) alarm: Option<Instant>,
}

impl<K> MarketState<K> {
    pub(super) fn new(rules: BoardRules) -> Self {
        MarketState {
            board: Board::new(rules),
            line: BTreeMap::new(),
            given: 0,
            phase: MarketPhase::Open,
            alive: 0,
            absent: 0,
            is_coming: false,
            is_woken: false,
            is_stuck: false,
            idle: BTreeMap::new(),
            waits: 0,
            running: BTreeMap::new(),
            created: 0,
            died: 0,
            discarded: 0,
            finished: 0,
            failed: 0,
            retried: 0,
            failed_starts: 0,
            longest_wait: Duration::ZERO,
            retry: StartRetry::default(),
            now: Instant::from_nanos(0),
            alarm: None,
            keeper: None,
            enders: Slab::new(),
        }
    }

    pub(super) fn status(&self, limits: &MarketLimits) -> MarketStatus {
        MarketStatus {
            waiting: self.board.len(),
            delayed: self.board.later(),
            running: self.running.len(),
            idle: self.idle.len(),
            created: self.created,
            died: self.died,
            discarded: self.discarded,
            finished: self.finished,
            failed: self.failed,
            retried: self.retried,
            failed_starts: self.failed_starts,
            longest_wait: self.longest_wait,
            is_full: !self.line.is_empty() || !self.has_room(limits),
            is_operating: self.phase < MarketPhase::Stopped,
        }
    }

    /// Notes the time of a change, and lets the moments pass that have come.
    pub(super) fn advance(&mut self, now: Instant, after: &mut Aftermath<K>) {
        self.now = self.now.max(now);
        self.board.release(self.now, &mut after.keys);
    }

    /// Returns whether there is room that no producer was given.
    pub(super) fn has_room(&self, limits: &MarketLimits) -> bool {
        self.board.len() + self.given < limits.jobs
    }

    /// Begins the next job, for this worker.
    pub(super) fn begin(
        &mut self,
        worker: &Arc<MarketWorker>,
    ) -> Option<(JobTicket, Arc<dyn Work>)> {
        let (ticket, job) = self.board.take(self.now)?;
        if mutant("a_key_is_freed_before_its_job_runs") {
            drop(self.board.done(ticket, self.now));
        }
        worker.renew();
        let waited = self.now.duration_since(job.since);
        self.longest_wait = self.longest_wait.max(waited);
        self.running.insert(ticket, worker.clone());
        Some((ticket, job.work))
    }

    /// Notes that a job that was taken begins.
    pub(super) fn begins(&mut self, ticket: JobTicket, now: Instant) {
        self.now = self.now.max(now);
        self.board.begins(ticket, self.now);
    }

    /// Notes that a job has run, and frees its key. Returns whether code of the user is yet to run:
    /// its outcome is to be discarded, or its work.
    pub(super) fn end(&mut self, ran: RanJob, after: &mut Aftermath<K>) -> bool {
        let RanJob {
            ticket,
            work,
            attempt,
        } = ran;
        let worker = self.running.remove(&ticket);
        let is_cancelled = worker.as_ref().is_some_and(|it| it.is_cancelled());
        if let Some(worker) = worker {
            worker.renew();
        }
        if let Some(pause) = attempt.pause {
            let due = self.now + pause;
            let job = WaitingJob { work, since: due };
            if self.phase < MarketPhase::Stopped && !is_cancelled {
                self.retried += 1;
                self.board.again(ticket, due, self.now, job);
                return false;
            }
            after.keys.extend(self.board.done(ticket, self.now));
            let error = match is_cancelled {
                true => JobError::Cancelled,
                false => JobError::Discarded,
            };
            self.discarded += u64::from(!is_cancelled);
            after.refused.push((job, error));
            return true;
        }
        if !mutant("a_key_is_freed_before_its_job_runs") {
            after.keys.extend(self.board.done(ticket, self.now));
        }
        let shown = work.show();
        self.finished += 1;
        self.failed += u64::from(attempt.has_failed);
        after.wakers.extend(shown.waker);
        after.unwanted = shown.is_unwanted.then_some(work);
        shown.is_unwanted
    }

    /// Sets the timer for the next moment. This waker is called if there is an earlier one.
    pub(super) fn set_alarm(
        &mut self,
        waker: KeptWaker,
        after: &mut Aftermath<K>,
    ) -> Option<Instant> {
        after.stale.extend(self.keeper.replace(waker));
        self.alarm = self.board.next_moment();
        self.alarm
    }

    /// Notes that the timer for this moment has fired, unless another one is set.
    pub(super) fn has_rung(&mut self, at: Instant) {
        self.alarm.take_if(|alarm| *alarm == at);
    }

    /// Notes that the worker that was woken has come. One that was created may be on its way.
    pub(super) fn arrive(&mut self) {
        self.is_woken = false;
        self.is_coming = self.absent > 0 || mutant("a_worker_that_has_come_is_still_expected");
    }

    /// Notes that a worker that was created has come. Returns false if a stop has dismissed it.
    pub(super) fn comes(&mut self) -> bool {
        self.is_coming = self.is_woken || mutant("a_worker_that_has_come_is_still_expected");
        self.is_stuck = false;
        let is_expected = self.absent > 0;
        self.absent -= usize::from(is_expected);
        is_expected
    }

    /// Makes a worker without a job wait for one. Returns the number of this wait, or nothing if no
    /// job will come.
    pub(super) fn linger(&mut self, worker: &Arc<MarketWorker>) -> Option<u64> {
        if self.phase == MarketPhase::Stopped {
            return None;
        }
        self.waits += 1;
        self.idle.insert(self.waits, worker.clone());
        Some(self.waits)
    }

    /// Removes a worker from the idle ones. Returns whether it was one.
    pub(super) fn is_late(&mut self, wait: u64) -> bool {
        match mutant("a_late_worker_stays_idle") {
            true => self.idle.contains_key(&wait),
            false => self.idle.remove(&wait).is_some(),
        }
    }

    /// Notes that a worker gives its thread back.
    pub(super) fn leave(&mut self) {
        self.alive -= 1;
        self.died += 1;
    }

    pub(super) fn is_over(&self) -> bool {
        let is_still = self.alive == 0 || mutant("a_market_ends_before_its_workers");
        self.phase == MarketPhase::Stopped && is_still
    }

    /// Judges what a change has led to: producers, workers and the end.
    pub(super) fn judge(&mut self, limits: &MarketLimits, after: &mut Aftermath<K>) {
        let is_drained = self.board.len() == 0 && self.running.is_empty();
        if self.phase == MarketPhase::Draining && is_drained {
            self.phase = MarketPhase::Stopped;
            // No job is left, but keys whose starts count.
            after.keys.extend(self.board.clear().1);
            after
                .woken
                .extend(std::mem::take(&mut self.idle).into_values());
        }
        while self.has_room(limits)
            && !mutant("room_is_not_passed_to_the_line")
            && let Some((_, producer)) = self.line.pop_first()
        {
            self.given += 1;
            after.wakers.push(producer);
        }
        if !self.is_woken && self.board.runnable() > 0 {
            // Also if one was created, which may wait long for a thread.
            if let Some((_, idle)) = self.idle.pop_last() {
                (self.is_coming, self.is_woken) = (true, true);
                after.woken.push(idle);
            } else if !self.is_coming && self.alive < limits.workers {
                self.is_coming = true;
                self.alive += 1;
                self.created += 1;
                self.absent += 1;
                after.is_hiring = true;
            }
        }
        let next = self.board.next_moment();
        let is_earlier = match (next, self.alarm) {
            (Some(next), Some(alarm)) => next < alarm,
            (next, alarm) => next.is_some() != alarm.is_some(),
        };
        if is_earlier {
            (self.alarm, after.alarm) = (next, next);
            after.wakers.extend(self.keeper.take());
        }
        let is_end = self.phase == MarketPhase::Stopped && after.unwanted.is_none();
        if is_end && !mutant("a_stop_waits_for_workers_without_threads") {
            // Those that have not come may get their threads late.
            while self.absent > 0 {
                self.comes();
                self.leave();
            }
        }
        if self.is_coming && std::mem::take(&mut self.is_stuck) {
            after.is_asking_again = true;
        }
        if self.is_over() {
            after
                .wakers
                .extend(std::mem::take(&mut self.enders).into_iter().map(|it| it.1));
        }
    }
}

impl<K> Aftermath<K> {
    pub(super) fn carry_out(self) {
        for waker in self.wakers {
            waker.wake();
        }
        for (job, error) in self.refused {
            job.work.refuse(error);
        }
        drop(self.stale);
        // One at a time: a second panic while the first one unwinds would end the process.
        for key in self.keys {
            contain(|| drop(key));
        }
    }
}

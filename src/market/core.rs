//! A market behind its handles: the board, the line of producers, and the workers.
//!
//! The state changes under one lock, under which of users' code only `Eq` of keys runs. What
//! follows from a change is done when the lock is free. After each change the workers are judged:
//! one more comes if a job may run and none is on its way. A stop dismisses those on their way.

use std::collections::BTreeMap;
use std::hash::RandomState;
use std::sync::Arc;
use std::time::Duration;

use slab::Slab;

use super::board::{Board, JobTicket};
use super::cell::Work;
use super::error::JobError;
use super::job::JobMarket;
use super::status::Status;
use super::worker::{MarketWorker, StartRetry};
use crate::contain::{KeptWaker, Panic, contain};
use crate::directory::HashedKey;
use crate::error::{Fault, UnhandledFault};
use crate::instant::Instant;
use crate::runtime::{Inner, bring_thread, context, print_fault};
use crate::sync::{Mutex, MutexGuard, Process, mutant};
use crate::task::TaskHooks;

pub(super) struct MarketCore<K> {
    pub(super) limits: MarketLimits,
    /// `None` if the workers have threads of the process's pool.
    pub(super) runtime: Option<Arc<Inner>>,
    /// Gets a thread for a worker that was created just now.
    hire: fn(&Arc<MarketCore<K>>),
    /// The process that has the threads.
    process: Process,
    /// Its hashes are the same for the whole life of the market.
    pub(super) hasher: RandomState,
    state: Mutex<MarketState<K>>,
}

#[derive(Clone, Copy)]
pub(super) struct MarketLimits {
    pub(super) workers: usize,
    pub(super) jobs: usize,
    /// How long a worker without a job stays.
    pub(super) idle: Duration,
    pub(super) capacity_per_key: usize,
}

/// A job on the board.
pub(super) struct WaitingJob {
    pub(super) work: Arc<dyn Work>,
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
    alive: usize,
    /// The workers of `alive` that were created and have not come yet.
    pub(super) absent: usize,
    /// A worker was woken or created, and has not asked for a job yet.
    pub(super) is_coming: bool,
    /// A worker was woken, and has not asked for a job yet.
    is_woken: bool,
    /// The system has started no thread for the worker that is on its way.
    is_stuck: bool,
    /// The workers that wait and were not woken, in the order in which they began to wait.
    pub(super) idle: BTreeMap<u64, Arc<MarketWorker>>,
    waits: u64,
    /// The workers that run a job.
    pub(super) running: BTreeMap<JobTicket, Arc<MarketWorker>>,
    created: u64,
    died: u64,
    discarded: u64,
    finished: u64,
    failed: u64,
    failed_starts: u64,
    longest_wait: Duration,
    pub(super) retry: StartRetry,
    /// The tasks that wait for the end.
    pub(super) enders: Slab<KeptWaker>,
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
    unwanted: Option<Arc<dyn Work>>,
    /// A worker was created, and needs a thread.
    is_hiring: bool,
    /// No thread was started when the worker on its way needed one.
    is_asking_again: bool,
}

impl<K: Send + 'static> MarketCore<K> {
    pub(super) fn new(
        limits: MarketLimits,
        runtime: Option<Arc<Inner>>,
        hire: fn(&Arc<Self>),
    ) -> Arc<Self> {
        Arc::new(MarketCore {
            limits,
            runtime,
            hire,
            process: Process::current(),
            hasher: RandomState::new(),
            state: Mutex::new(MarketState {
                board: Board::new(limits.capacity_per_key),
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
                failed_starts: 0,
                longest_wait: Duration::ZERO,
                retry: StartRetry::default(),
                enders: Slab::new(),
            }),
        })
    }

    /// Locks the state. Earlier effects of a simulated turn come first.
    #[inline]
    fn state(&self) -> MutexGuard<'_, MarketState<K>> {
        context::apply_effects();
        self.state.lock()
    }

    /// Changes the state, then does what follows.
    ///
    /// # Panics
    /// In a child of `fork`, before the lock is taken.
    #[track_caller]
    pub(super) fn change<R>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut MarketState<K>, &mut Aftermath<K>) -> R,
    ) -> R {
        self.process.check();
        let mut after = Aftermath {
            wakers: Vec::new(),
            keys: Vec::new(),
            refused: Vec::new(),
            woken: Vec::new(),
            stale: Vec::new(),
            unwanted: None,
            is_hiring: false,
            is_asking_again: false,
        };
        let mut state = self.state();
        let result = change(&mut state, &mut after);
        state.judge(&self.limits, &mut after);
        drop(state);
        // Workers first: what is dropped then may wait for the jobs that they take.
        if after.is_asking_again {
            bring_thread(self.runtime.as_ref());
        } else if after.is_hiring {
            (self.hire)(self);
        }
        for worker in after.woken.drain(..) {
            worker.wake();
        }
        if let Some(panic) = after.unwanted.take().and_then(|job| job.discard()) {
            self.report(panic);
        }
        after.carry_out();
        result
    }

    /// Notes that the system started no thread for a worker. The job stays on the board. Returns
    /// after which time the workers are to be judged again.
    #[cold]
    pub(super) fn start_failed(&self) -> Option<Duration> {
        let mut state = self.state();
        if state.comes() {
            state.alive -= 1;
            state.created -= 1;
        }
        state.failed_starts += 1;
        state.retry.arm()
    }

    /// Notes that the system started no thread for the worker that is on its way, if there is one.
    /// Returns after which time it is to be tried again.
    #[cold]
    pub(super) fn start_delayed(&self) -> Option<Duration> {
        let mut state = self.state();
        if state.absent == 0 {
            return None;
        }
        state.is_stuck = state.is_coming;
        state.failed_starts += 1;
        state.retry.arm()
    }

    /// Returns whether this is the process that has the threads.
    pub(super) fn is_here(&self) -> bool {
        self.process.is_current()
    }

    /// Returns the address by which workers know the market.
    pub(super) fn address(self: &Arc<Self>) -> usize {
        Arc::as_ptr(self).cast::<()>() as usize
    }

    /// Accepts nothing more. WaitingJob jobs run only if the market is drained.
    pub(super) fn close(self: &Arc<Self>, phase: MarketPhase) {
        self.change(|state, after| {
            if state.phase >= phase {
                return;
            }
            state.phase = phase;
            // The producers get their jobs back.
            let line = std::mem::take(&mut state.line);
            state.given = 0;
            if !mutant("a_stop_forgets_the_line") {
                after.wakers.extend(line.into_values());
            }
            if phase == MarketPhase::Stopped {
                let (jobs, keys) = state.board.clear();
                state.discarded += jobs.len() as u64;
                let discarded = jobs.into_iter().map(|job| (job, JobError::Discarded));
                after.refused.extend(discarded);
                after.keys.extend(keys);
                after
                    .woken
                    .extend(std::mem::take(&mut state.idle).into_values());
            }
        });
    }

    /// Stops the market, and tells the jobs that run that they are cancelled.
    pub(super) fn stop_now(self: &Arc<Self>) {
        self.close(MarketPhase::Stopped);
        self.change(|state, _| {
            for worker in state.running.values() {
                worker.cancel();
            }
        });
    }

    #[track_caller]
    pub(super) fn status(&self) -> Status {
        self.process.check();
        let state = self.state();
        Status {
            waiting: state.board.len(),
            running: state.running.len(),
            idle: state.idle.len(),
            created: state.created,
            died: state.died,
            discarded: state.discarded,
            finished: state.finished,
            failed: state.failed,
            failed_starts: state.failed_starts,
            longest_wait: state.longest_wait,
            is_full: !state.line.is_empty() || !state.has_room(&self.limits),
            is_operating: state.phase < MarketPhase::Stopped,
        }
    }

    /// Returns whether no worker is left.
    pub(super) fn is_still(&self) -> bool {
        self.state().alive == 0
    }
}

impl<K> MarketState<K> {
    /// Returns whether there is room that no producer was given.
    pub(super) fn has_room(&self, limits: &MarketLimits) -> bool {
        self.board.len() + self.given < limits.jobs
    }

    /// Begins the next job, for this worker.
    pub(super) fn begin(
        &mut self,
        worker: &Arc<MarketWorker>,
    ) -> Option<(JobTicket, Arc<dyn Work>)> {
        let (ticket, job) = self.board.take()?;
        if mutant("a_key_is_freed_before_its_job_runs") {
            drop(self.board.done(ticket));
        }
        worker.renew();
        let waited = Instant::now().duration_since(job.since);
        self.longest_wait = self.longest_wait.max(waited);
        self.running.insert(ticket, worker.clone());
        Some((ticket, job.work))
    }

    /// Notes that a job has run, and frees its key. Returns whether its outcome is yet to be
    /// discarded.
    pub(super) fn end(
        &mut self,
        (ticket, work): (JobTicket, Arc<dyn Work>),
        after: &mut Aftermath<K>,
    ) -> bool {
        if let Some(worker) = self.running.remove(&ticket) {
            worker.renew();
        }
        if !mutant("a_key_is_freed_before_its_job_runs") {
            after.keys.extend(self.board.done(ticket));
        }
        let shown = work.show();
        self.finished += 1;
        self.failed += u64::from(shown.has_failed);
        after.wakers.extend(shown.waker);
        after.unwanted = shown.is_unwanted.then_some(work);
        shown.is_unwanted
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
    fn judge(&mut self, limits: &MarketLimits, after: &mut Aftermath<K>) {
        let is_drained = self.board.len() == 0 && self.running.is_empty();
        if self.phase == MarketPhase::Draining && is_drained {
            self.phase = MarketPhase::Stopped;
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
    fn carry_out(self) {
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

impl<K: Send + 'static> JobMarket for MarketCore<K> {
    fn is_here(&self) -> bool {
        self.is_here()
    }

    fn cancel(self: Arc<Self>, ticket: JobTicket) -> bool {
        self.change(|state, after| {
            if let Some((job, key)) = state.board.remove(ticket) {
                after.refused.push((job, JobError::Cancelled));
                after.keys.extend(key);
                return true;
            }
            if let Some(worker) = state.running.get(&ticket) {
                worker.cancel();
            }
            false
        })
    }

    fn report(&self, panic: Panic) {
        let fault = Fault::Panicked(panic);
        let unhandled = UnhandledFault {
            actor: None,
            task: None,
            name: Some("a market"),
            id: None,
            fault: &fault,
            is_source: false,
            is_on_undelivered: false,
            is_on_displaced: false,
        };
        contain(|| match &self.runtime {
            Some(runtime) => runtime.report(&unhandled),
            None => print_fault(&unhandled),
        });
    }
}

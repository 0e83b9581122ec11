//! A market behind its handles: the board, the line of producers, and the workers.
//!
//! The state changes under one lock, under which of users' code only `Eq` of keys runs. What follows
//! from a change is done when the lock is free. After each change the workers are judged: one more
//! comes if a job may run and none is on its way.

use std::collections::BTreeMap;
use std::hash::RandomState;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::board::{Board, KeyPolicy, Keyed, Served, Ticket};
use super::cell::Work;
use super::error::JobError;
use super::job_handle::Hub;
use super::retry::Retry;
use super::status::Status;
use super::worker::Worker;
use crate::contain::{Panic, contain};
use crate::error::{Fault, UnhandledFault};
use crate::instant::Instant;
use crate::runtime::{Inner, print_fault};
use crate::sync::Mutex;
use crate::task::Executor;

pub(super) struct Core<K> {
    pub(super) limits: Limits,
    /// `None` if the workers have threads of the process's pool.
    pub(super) runtime: Option<Arc<Inner>>,
    /// Gets a thread for a worker that was created.
    employ: fn(&Arc<Core<K>>),
    /// Its hashes are the same for the whole life of the market.
    pub(super) hasher: RandomState,
    state: Mutex<State<K>>,
}

#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) workers: usize,
    pub(super) jobs: usize,
    /// How long a worker without a job stays.
    pub(super) idle: Duration,
    pub(super) policy: KeyPolicy,
}

/// A job on the board.
pub(super) struct Waiting {
    pub(super) work: Arc<dyn Work>,
    since: Instant,
}

/// How far a market has come to its end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Open,
    /// What waits runs, and nothing is accepted.
    Draining,
    Stopped,
}

pub(super) struct State<K> {
    pub(super) board: Board<K, Waiting>,
    /// The producers that wait for room, in the order of their arrival. One that was woken has no
    /// waker here.
    pub(super) line: BTreeMap<u64, Option<Waker>>,
    arrivals: u64,
    pub(super) phase: Phase,
    /// The workers: those that come, are idle, or run a job.
    alive: usize,
    /// A worker was woken or created, and has not asked for a job yet.
    pub(super) is_coming: bool,
    /// The workers that wait and were not woken.
    pub(super) idle: Vec<Arc<Worker>>,
    /// The workers that run a job.
    pub(super) running: BTreeMap<Ticket, Arc<Worker>>,
    created: u64,
    died: u64,
    discarded: u64,
    failed_starts: u64,
    longest_wait: Duration,
    pub(super) retry: Retry,
    /// The tasks that wait for the end.
    enders: Vec<Waker>,
}

/// What follows from a change, and is done when the lock is free.
pub(super) struct Aftermath<K> {
    pub(super) wakers: Vec<Waker>,
    /// Keys and jobs that are to be dropped.
    pub(super) keys: Vec<Keyed<K>>,
    pub(super) refused: Vec<(Waiting, JobError)>,
    pub(super) woken: Vec<Arc<Worker>>,
    /// Wakers that are to be dropped.
    pub(super) stale: Vec<Waker>,
    /// A job that has ended.
    pub(super) ended: Option<Arc<dyn Work>>,
    has_created: bool,
}

/// A job that a worker has taken.
pub(super) struct Begun {
    pub(super) work: Arc<dyn Work>,
    pub(super) ticket: Ticket,
    pub(super) served: Option<Served>,
}

impl<K: Send + 'static> Core<K> {
    pub(super) fn new(
        limits: Limits,
        runtime: Option<Arc<Inner>>,
        employ: fn(&Arc<Self>),
    ) -> Arc<Self> {
        Arc::new(Core {
            limits,
            runtime,
            employ,
            hasher: RandomState::new(),
            state: Mutex::new(State {
                board: Board::new(limits.policy),
                line: BTreeMap::new(),
                arrivals: 0,
                phase: Phase::Open,
                alive: 0,
                is_coming: false,
                idle: Vec::new(),
                running: BTreeMap::new(),
                created: 0,
                died: 0,
                discarded: 0,
                failed_starts: 0,
                longest_wait: Duration::ZERO,
                retry: Retry::default(),
                enders: Vec::new(),
            }),
        })
    }

    /// Changes the state, then does what follows.
    pub(super) fn change<R>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut State<K>, &mut Aftermath<K>) -> R,
    ) -> R {
        let mut after = Aftermath {
            wakers: Vec::new(),
            keys: Vec::new(),
            refused: Vec::new(),
            woken: Vec::new(),
            stale: Vec::new(),
            ended: None,
            has_created: false,
        };
        let mut state = self.state.lock();
        let result = change(&mut state, &mut after);
        state.settle(&self.limits, &mut after);
        drop(state);
        // Before those are woken who wait for the end of the market.
        if let Some(panic) = after.ended.take().and_then(|job| job.show()) {
            self.report(panic);
        }
        if after.has_created {
            (self.employ)(self);
        }
        after.carry_out();
        result
    }

    /// Notes that the system started no thread for a worker. The job stays on the board. Returns
    /// after which time the workers are to be judged again.
    #[cold]
    pub(super) fn start_failed(&self) -> Option<Duration> {
        let mut state = self.state.lock();
        state.alive -= 1;
        state.created -= 1;
        state.is_coming = false;
        state.failed_starts += 1;
        state.retry.arm()
    }

    /// Returns the address by which workers know the market.
    pub(super) fn address(self: &Arc<Self>) -> usize {
        Arc::as_ptr(self).cast::<()>() as usize
    }

    /// Stops the market when a worker was not let run, since its pool is closed.
    pub(super) fn lost_worker(self: &Arc<Self>) {
        self.close(Phase::Stopped);
        self.change(|state, _| {
            state.is_coming = false;
            state.leave();
        });
    }

    /// Accepts nothing more. Waiting jobs run only if the market is drained.
    pub(super) fn close(self: &Arc<Self>, phase: Phase) {
        self.change(|state, after| {
            if state.phase >= phase {
                return;
            }
            state.phase = phase;
            // The producers get their jobs back.
            let line = std::mem::take(&mut state.line);
            after.wakers.extend(line.into_values().flatten());
            if phase == Phase::Stopped {
                let (jobs, keys) = state.board.clear();
                state.discarded += jobs.len() as u64;
                let discarded = jobs.into_iter().map(|job| (job, JobError::Discarded));
                after.refused.extend(discarded);
                after.keys.extend(keys);
                after.woken.append(&mut state.idle);
            }
        });
    }

    /// Returns whether the market has ended. Otherwise the waker is woken then.
    pub(super) fn poll_end(self: &Arc<Self>, waker: &Waker) -> bool {
        let mut waker = Some(waker.clone());
        self.change(|state, _| {
            let is_there = |new: &Waker| state.enders.iter().any(|it| it.will_wake(new));
            if !state.is_over() && !waker.as_ref().is_some_and(is_there) {
                state.enders.extend(waker.take());
            }
            state.is_over()
        })
    }

    pub(super) fn status(&self) -> Status {
        let state = self.state.lock();
        Status {
            waiting: state.board.len(),
            running: state.running.len(),
            idle: state.idle.len(),
            created: state.created,
            died: state.died,
            discarded: state.discarded,
            failed_starts: state.failed_starts,
            longest_wait: state.longest_wait,
            is_full: state.board.len() >= self.limits.jobs,
            is_operating: state.phase < Phase::Stopped,
        }
    }

    /// Returns whether no worker is left.
    pub(super) fn is_still(&self) -> bool {
        self.state.lock().alive == 0
    }
}

impl<K> State<K> {
    /// Joins the line of producers. Returns the place.
    pub(super) fn arrive(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }

    /// Begins the next job, for this worker.
    pub(super) fn begin(&mut self, worker: &Arc<Worker>) -> Option<Begun> {
        let taken = self.board.take()?;
        worker.begins();
        let waited = Instant::now().duration_since(taken.job.since);
        self.longest_wait = self.longest_wait.max(waited);
        self.running.insert(taken.ticket, worker.clone());
        Some(Begun {
            work: taken.job.work,
            ticket: taken.ticket,
            served: taken.served,
        })
    }

    /// Notes that a job has run, and frees its key.
    pub(super) fn end(&mut self, job: Begun, after: &mut Aftermath<K>) {
        self.running.remove(&job.ticket);
        after.keys.extend(self.board.done(job.served));
        after.ended = Some(job.work);
    }

    /// Returns whether a worker without a job may wait for one.
    pub(super) fn may_linger(&self) -> bool {
        self.phase < Phase::Stopped
    }

    /// Removes a worker from the idle ones. Returns whether it was one.
    pub(super) fn is_late(&mut self, worker: &Arc<Worker>) -> bool {
        let at = self.idle.iter().position(|it| Arc::ptr_eq(it, worker));
        at.map(|at| self.idle.remove(at)).is_some()
    }

    /// Notes that a worker gives its thread back.
    pub(super) fn leave(&mut self) {
        self.alive -= 1;
        self.died += 1;
    }

    fn is_over(&self) -> bool {
        self.phase == Phase::Stopped && self.alive == 0
    }

    /// Judges what a change has led to: producers, workers and the end.
    fn settle(&mut self, limits: &Limits, after: &mut Aftermath<K>) {
        let is_drained = self.board.len() == 0 && self.running.is_empty();
        if self.phase == Phase::Draining && is_drained {
            self.phase = Phase::Stopped;
            after.woken.append(&mut self.idle);
        }
        if self.board.len() < limits.jobs
            && let Some(mut first) = self.line.first_entry()
        {
            after.wakers.extend(first.get_mut().take());
        }
        if !self.is_coming && self.board.runnable() > 0 {
            if let Some(idle) = self.idle.pop() {
                self.is_coming = true;
                after.woken.push(idle);
            } else if self.alive < limits.workers {
                self.is_coming = true;
                self.alive += 1;
                self.created += 1;
                after.has_created = true;
            }
        }
        if self.is_over() {
            after.wakers.append(&mut self.enders);
        }
    }
}

impl Waiting {
    pub(super) fn new(work: Arc<dyn Work>) -> Self {
        Waiting {
            work,
            since: Instant::now(),
        }
    }
}

impl<K> Aftermath<K> {
    fn carry_out(self) {
        for worker in self.woken {
            worker.wake();
        }
        for waker in self.wakers {
            contain(|| waker.wake());
        }
        for (job, error) in self.refused {
            job.work.refuse(error);
        }
        for waker in self.stale {
            contain(|| drop(waker));
        }
        // One at a time: a second panic while the first one unwinds would end the process.
        for key in self.keys {
            contain(|| drop(key));
        }
    }
}

impl<K: Send + 'static> Hub for Core<K> {
    fn cancel(self: Arc<Self>, ticket: Ticket) -> bool {
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
            name: Some("a job of a market"),
            id: None,
            fault: &fault,
            is_source: false,
            is_on_undelivered: false,
        };
        contain(|| match &self.runtime {
            Some(runtime) => runtime.report(&unhandled),
            None => print_fault(&unhandled),
        });
    }
}

//! A market behind its handles: the board, the line of producers, and the workers.
//!
//! The state changes under one lock, under which of users' code only `Eq` of keys runs. What
//! follows from a change is done when the lock is free. After each change the workers are judged:
//! one more comes if a job may run and none is on its way. A stop dismisses those on their way.

use std::hash::RandomState;
use std::sync::Arc;
use std::time::Duration;

use super::board::JobTicket;
use super::error::JobError;
use super::job::JobMarket;
use super::state::{Aftermath, MarketLimits, MarketPhase, MarketState};
use super::status::MarketStatus;
use crate::contain::{Panic, contain};
use crate::error::{Fault, UnhandledFault};
use crate::instant::{Instant, RealTime};
use crate::runtime::{Inner, bring_thread, context, print_fault};
use crate::sync::{Mutex, MutexGuard, Process, mutant};
use crate::task::TaskHooks;
use crate::timers::TimerThread;

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
            state: Mutex::new(MarketState::new(limits.rules)),
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
            alarm: None,
        };
        let now = self.now();
        let mut state = self.state();
        state.advance(now, &mut after);
        let result = change(&mut state, &mut after);
        state.judge(&self.limits, &mut after);
        drop(state);
        // Workers first: what is dropped then may wait for the jobs that they take.
        if after.is_asking_again {
            bring_thread(self.runtime.as_ref());
        } else if after.is_hiring {
            (self.hire)(self);
        }
        if let (Some(at), None) = (after.alarm, &self.runtime) {
            self.ring_at(at);
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

    /// Returns the time that the market goes by, on whichever thread this is called.
    fn now(&self) -> Instant {
        match &self.runtime {
            Some(runtime) => runtime.engine().now(),
            None => {
                let _system = RealTime::enter();
                Instant::now()
            }
        }
    }

    /// Changes the state at this moment, by a timer of the process. The timer does not keep the
    /// market.
    fn ring_at(self: &Arc<Self>, at: Instant) {
        let core = Arc::downgrade(self);
        // If many moments are over, the timer's thread lets them pass, and not this call.
        let delay = match at - self.now() {
            Duration::ZERO => Duration::from_millis(1),
            delay => delay,
        };
        let rung = TimerThread::call_after(delay, move || {
            if let Some(core) = core.upgrade() {
                core.change(|state, _| state.has_rung(at));
            }
        });
        rung.expect("the thread was started when the market was built");
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

    /// Notes that a job begins now. What follows from the change that has taken it may take long.
    pub(super) fn begins(&self, ticket: JobTicket) {
        if self.limits.rules.rate.is_some() {
            let now = self.now();
            self.state().begins(ticket, now);
        }
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
    pub(super) fn status(&self) -> MarketStatus {
        self.process.check();
        self.state().status(&self.limits)
    }

    /// Returns whether no worker is left.
    pub(super) fn is_still(&self) -> bool {
        self.state().alive == 0
    }
}

impl<K: Send + 'static> JobMarket for MarketCore<K> {
    fn is_here(&self) -> bool {
        self.is_here()
    }

    fn cancel(self: Arc<Self>, ticket: JobTicket) -> bool {
        self.change(|state, after| {
            if let Some((job, key)) = state.board.remove(ticket, state.now) {
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

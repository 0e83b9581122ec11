//! The work of a worker: a call on a thread of the blocking pool, which runs job after job.
//!
//! It asks for a job when it comes and after each job, lingers if it may, and gives its thread
//! back. A stop dismisses a worker that has not come yet, which then finds nothing to do.

use std::sync::Arc;
use std::time::Duration;

use super::board::JobTicket;
use super::cell::{JobAttempt, Work};
use super::core::MarketCore;
use super::job::JobMarket;
use super::state::{MarketPhase, RanJob};
use super::worker::MarketWorker;
use crate::runtime::{Borrower, borrow_thread, is_lent};
use crate::time::sleep;
use crate::timers::TimerThread;

/// Gets a thread for a worker that was created just now.
pub(super) fn hire<K: Send + 'static>(core: &Arc<MarketCore<K>>) {
    // The pool drops this unused when it is closed.
    let stops = StopOnDrop(Some(core.clone()));
    borrow_thread(core.runtime.as_ref(), move || arrive(stops))
}

impl<K: Send + 'static> Borrower for MarketCore<K> {
    fn is_kept_waiting(self: Arc<Self>) {
        if let Some(delay) = self.start_delayed() {
            judge_after(&self, delay);
        }
    }
}

/// Stops its market when it is dropped, unless the market was taken out.
pub(super) struct StopOnDrop<K: Send + 'static>(pub(super) Option<Arc<MarketCore<K>>>);

impl<K: Send + 'static> Drop for StopOnDrop<K> {
    fn drop(&mut self) {
        if let Some(core) = self.0.take().filter(|core| core.is_here()) {
            core.close(MarketPhase::Stopped);
        }
    }
}

/// Begins the work of a worker that was created, on the thread that it got.
fn arrive<K: Send + 'static>(mut stops: StopOnDrop<K>) {
    let Some(core) = stops.0.take() else { return };
    if is_lent() {
        serve(&core);
    } else if let Some(delay) = core.start_failed() {
        judge_after(&core, delay);
    }
}

/// What a worker does next.
enum WorkerStep {
    Run(JobTicket, Arc<dyn Work>),
    /// Its number.
    Linger(u64),
    /// Code of the user runs before, which may wait for the job that would be the next one.
    AskAgain,
    End,
}

pub(super) fn serve<K: Send + 'static>(core: &Arc<MarketCore<K>>) {
    let own = MarketWorker::new(core.address());
    own.inside(|| serve_as(core, &own));
}

fn serve_as<K: Send + 'static>(core: &Arc<MarketCore<K>>, own: &Arc<MarketWorker>) {
    let is_simulated = core.runtime.as_ref().is_some_and(|it| it.is_simulated());
    let may_ever_linger = !is_simulated && !core.limits.idle.is_zero();
    let (mut is_new, mut returns) = (true, false);
    let (mut may_linger, mut done) = (may_ever_linger, None);
    loop {
        // One change ends the last job and takes the next, so a worker locks once for each job.
        let next = core.change(|state, after| {
            if std::mem::take(&mut is_new) {
                state.retry.has_succeeded();
                if !state.comes() {
                    return WorkerStep::End;
                }
            }
            if std::mem::take(&mut returns) {
                state.arrive();
            }
            if done.take().is_some_and(|job| state.end(job, after)) {
                return WorkerStep::AskAgain;
            }
            if let Some(job) = state.begin(own) {
                return WorkerStep::Run(job.0, job.1);
            }
            if let Some(wait) = may_linger.then(|| state.linger(own)).flatten() {
                return WorkerStep::Linger(wait);
            }
            state.leave();
            WorkerStep::End
        });
        match next {
            WorkerStep::Run(ticket, work) => {
                let ran = run(core, ticket, work);
                if is_simulated {
                    return go_on(core, ran);
                }
                may_linger = may_ever_linger;
                done = Some(ran);
            }
            WorkerStep::Linger(wait) => {
                returns = linger(core, own, wait);
                may_linger = returns;
            }
            WorkerStep::AskAgain => {}
            WorkerStep::End => return,
        }
    }
}

/// Runs a job once. A panic after which it is tried again is not awaited.
fn run<K: Send + 'static>(
    core: &Arc<MarketCore<K>>,
    ticket: JobTicket,
    work: Arc<dyn Work>,
) -> RanJob {
    core.begins(ticket);
    let mut attempt: JobAttempt = work.run();
    if let Some(panic) = attempt.panic.take() {
        core.report(panic);
    }
    RanJob {
        ticket,
        work,
        attempt,
    }
}

/// Makes the next job of a worker another step of the simulation.
fn go_on<K: Send + 'static>(core: &Arc<MarketCore<K>>, job: RanJob) {
    core.change(|state, after| {
        state.end(job, after);
        (state.is_coming, state.absent) = (true, state.absent + 1);
    });
    hire(core);
}

/// Waits until the worker is woken or its time is over. Returns whether it was woken.
fn linger<K: Send + 'static>(
    core: &Arc<MarketCore<K>>,
    own: &Arc<MarketWorker>,
    wait: u64,
) -> bool {
    if own.wait(Some(core.limits.idle)) {
        return true;
    }
    if core.change(|state, _| state.is_late(wait)) {
        return false;
    }
    // It was taken from the idle ones, so it is woken.
    while !own.wait(None) {}
    true
}

/// Judges the workers of a market again after some time, when the system has started no thread for
/// one. Until then the market's runtime is not quiescent.
fn judge_after<K: Send + 'static>(core: &Arc<MarketCore<K>>, delay: Duration) {
    let own = core.clone();
    match &core.runtime {
        Some(runtime) => {
            let again = async move {
                sleep(delay).await;
                own.change(|state, _| state.retry.fire());
            };
            crate::task::spawn_own(runtime.clone(), again).detach();
        }
        None => {
            let again = TimerThread::call_after(delay, move || {
                own.change(|state, _| state.retry.fire());
            });
            again.expect("the thread was started when the market was built");
        }
    }
}

//! The runtime as the owner of its scheduler and the employer of its workers.

use super::context;
use super::engine::RunsOn;
use super::inner::Inner;
use crate::contain::contain;
use crate::instant::Instant;
use crate::scheduler::{
    Employer, Owner, PolicyImpl, Scheduler, ShutdownStep, WorkerLocal, runnable,
};
use crate::task::Runnable;
use crate::timers::Timers;

impl Owner for Inner {
    fn must_see_to(&self, worker: usize) -> bool {
        #[cfg(test)]
        super::tests::look();
        self.declared.is_declared()
            || (self.shutdown.has_begun()
                && (self.is_over()
                    || self.shutdown.has_to_tell(worker)
                    || self.scheduler.shutdown_queue.len() > 0))
    }

    fn deadline(&self) -> Option<Instant> {
        #[cfg(test)]
        super::tests::look();
        self.timers.next()
    }

    fn is_closing(&self) -> bool {
        self.shutdown.has_begun()
    }

    fn is_displaced(&self) -> bool {
        context::with(|context| context.is_some_and(|context| context.is_displaced()))
    }

    fn worker_sleeps(&self) {
        self.declare_from_sleep();
    }

    fn push_elsewhere(&self, runnable: Runnable, again: bool) {
        if let Err(refused) = self.engine().take(self, runnable, again, &RunsOn::Workers) {
            contain(|| drop(refused));
        }
    }
}

impl Employer for Inner {
    fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    fn timers(&self) -> &Timers {
        #[cfg(test)]
        super::tests::look();
        &self.timers
    }

    fn fire(&self, now: Instant) -> usize {
        Inner::fire(self, now)
    }

    fn tell_what_is_declared(&self) {
        Inner::tell_what_is_declared(self);
    }

    fn is_observed(&self) -> bool {
        self.has_runs_observed()
    }

    fn run_observed(&self, local: Option<&WorkerLocal<'_>>, runnable: Runnable) {
        Inner::run_observed(self, local, runnable);
    }

    fn turn_ended(&self) {
        if let PolicyImpl::Other(_) = self.scheduler.policy {
            // (POLICY-1) The runnable was counted.
            self.dec_activity();
        }
    }

    fn progress(&self) {
        self.shutdown.progress();
    }

    fn see_to_shutdown(&self, local: &WorkerLocal<'_>, queued: bool) -> ShutdownStep {
        if self.is_over() {
            return ShutdownStep::End;
        }
        let queue = &self.scheduler.shutdown_queue;
        if self.shutdown.has_to_tell(local.index()) {
            queue.mark_before(local.drain().into_iter().map(Runnable::into_raw));
            self.shutdown.tell(local.index());
            self.shutdown.progress();
            self.scheduler.interrupt();
        }
        match queued.then(|| queue.pop()).flatten() {
            Some(entry) => ShutdownStep::Run(runnable(entry)),
            None => ShutdownStep::GoOn,
        }
    }

    fn drop_unneeded(&self, runnable: Runnable) {
        Inner::drop_unneeded(self, runnable);
    }
}

impl Inner {
    /// Returns whether an observer, a tracer or the policy observes each run of a worker.
    pub(super) fn has_runs_observed(&self) -> bool {
        !matches!(self.scheduler.policy, PolicyImpl::Stealing(_)) || self.options.is_watched
    }

    /// Fires the timers that are due, and returns how many.
    pub(crate) fn fire(&self, now: Instant) -> usize {
        if !self.timers.is_due(now) {
            return 0;
        }
        // (ACTIVITY-1) The worker itself may not be counted.
        self.inc_activity();
        let fired = self.timers.fire(now);
        self.dec_activity();
        fired
    }
}

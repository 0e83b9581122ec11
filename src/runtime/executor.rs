//! The runtime as the executor of its tasks and actors, the clock of its timers, and the owner of
//! its scheduler.

use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::context;
use super::engine::{DueEffects, RunsOn};
use super::inner::Inner;
use crate::contain::contain;
use crate::error::{Fault, UnhandledFault};
use crate::instant::Instant;
use crate::scheduler::{
    self, Employer, PolicyImpl, Queued, Scheduler, SchedulerOwner, ShutdownStep, WorkerLocal,
    runnable,
};
use crate::sync::atomic::{Ordering, fence};
use crate::sync::{Process, mutant};
use crate::task::{
    self, ActorExecutor, Executor, Header, LiveIndex, MessageEvent, NotedWaits, Runnable,
    TaskHooks, TaskInfo, TaskKey,
};
use crate::timers::{TimerClock, Timers};
use crate::tracer::Tracer;

impl Executor for Arc<Inner> {
    fn schedule(&self, runnable: Runnable, again: bool) {
        let entry = runnable.into_raw();
        let local = context::with(|context| {
            let local = context.and_then(|context| context.local_of(self));
            local.map(|local| local.push(entry, again)).is_some()
        });
        if local {
            return;
        }
        if !self.is_here() {
            return scheduler::runnable(entry).leave_behind();
        }
        match self.scheduler.policy {
            PolicyImpl::Other(_) => self.push_kept(entry),
            PolicyImpl::Stealing(_) | PolicyImpl::Elsewhere(_) => self.push(entry),
        }
    }

    fn hooks(&self) -> &(dyn TaskHooks + 'static) {
        &**self
    }

    fn marks(&self) -> u8 {
        self.marks
    }

    fn is_observed(&self) -> bool {
        self.has_runs_observed()
    }

    fn track(&self, waker: &Waker) -> Option<LiveIndex> {
        self.process().end_copy();
        self.live.track(waker, self.worker(), || self.is_over())
    }

    fn untrack(&self, live_index: LiveIndex) {
        self.process().end_copy();
        self.live.untrack(live_index);
    }

    fn task_dropped(&self) {
        if TaskKey::dropped().is_some() {
            self.policy_dropped();
        }
    }
}

impl ActorExecutor for Arc<Inner> {
    fn enter(&self, cell: NonNull<Header>) -> bool {
        self.live.enter(cell, self.worker())
    }

    fn leave(&self, cell: NonNull<Header>) {
        self.process().end_copy();
        self.live.leave(cell);
        self.shutdown.progress();
    }

    fn is_closing(&self) -> bool {
        self.shutdown.has_begun()
    }

    fn batch(&self) -> u32 {
        self.options.batch
    }

    fn note_waits(&self, cell: NonNull<Header>, waits: NotedWaits) {
        self.live.note_waits(cell, waits);
    }

    fn sampled(&self, cell: NonNull<Header>, took: Option<Duration>) {
        self.live.sampled(cell, took);
    }

    fn discarded(&self) {
        self.policy_dropped();
    }
}

impl TaskHooks for Inner {
    fn process(&self) -> Process {
        Inner::process(self)
    }

    fn is_batch_chosen(&self) -> bool {
        self.options.is_batch_chosen
    }

    fn spawned(&self, task: &TaskInfo, location: &'static Location<'static>, has_long_turns: bool) {
        if let Some(locations) = &self.locations {
            locations.enter(task, location, has_long_turns);
        }
    }

    fn completed(&self, task: &TaskInfo) {
        Inner::completed(self, task);
    }

    fn task_completed(&self, task: &TaskInfo) {
        Inner::completed(self, task);
    }

    fn asks_itself(&self, actor: &TaskInfo, may_hang: bool, has_received: bool) -> bool {
        self.judge_own_ask(actor, may_hang, has_received)
    }

    fn own_address(&self, actor: u64, is_new: bool) {
        if self.silence.is_reported && self.is_here() {
            self.silence.count_address(actor, is_new);
        }
    }

    fn restarted(&self, actor: &TaskInfo, incarnation: u64, fault: Option<&Fault>) {
        Inner::restarted(self, actor, incarnation, fault);
    }

    fn failed(&self, actor: &TaskInfo, fault: &Fault) {
        self.note_fault(actor, fault, false);
    }

    fn report(&self, unhandled: &UnhandledFault<'_>) {
        self.note_reported(unhandled);
        if !self.engine().judges(unhandled) {
            contain(|| (self.options.on_fault)(unhandled));
        }
    }

    fn cancelled(&self, actor: &TaskInfo) {
        self.shutdown.cancelled(actor);
    }

    fn undelivered(&self, messages: usize) {
        self.shutdown.undelivered(messages);
    }

    fn tracer(&self) -> Option<&dyn Tracer> {
        Inner::tracer(self)
    }

    fn trace(&self, cell: TaskInfo, event: MessageEvent) {
        self.engine().trace(cell, event);
    }

    fn looked_at(&self, task: TaskKey, has_ended: bool) {
        let task = TaskInfo::of_task(task.number());
        if has_ended {
            self.engine().apply(self, DueEffects::ByTask(&task));
        } else {
            self.engine().awaits_end(&task);
        }
    }
}

impl Inner {
    /// Returns the index of the worker that this thread is.
    fn worker(&self) -> Option<usize> {
        context::with(|context| Some(context?.local_of(self)?.index()))
    }

    /// Takes an entry that no worker of this runtime pushes.
    fn push(&self, entry: Queued) {
        // Each push is followed by a SeqCst fence: in `WorkerSleep::notify`, in `Parking::notify`, or
        // below. It pairs with those in `ShutdownState::finish` and `complete`: either the shutdown sees
        // the push, or this thread sees its phase.
        if !self.shutdown.has_begun() || self.is_simulated() {
            self.scheduler
                .push_outside(self, scheduler::runnable(entry));
        } else {
            if let PolicyImpl::Other(_) = self.scheduler.policy {
                // (POLICY-1) Counted as if the policy had it.
                self.inc_activity();
            }
            self.scheduler.shutdown_queue.push([entry]);
            fence(Ordering::SeqCst);
            self.scheduler.interrupt();
        }
        if self.shutdown.is_over() && !mutant("late_push_stays") {
            self.pushed_late();
        }
    }

    /// Sees to an entry that was pushed when there may be no worker.
    ///
    /// Until the shutdown is completed, nothing is dropped here: the caller wakes a task, and may
    /// hold a lock that the drop of the task's future takes.
    #[cold]
    fn pushed_late(&self) {
        if !mutant("a_late_push_wakes_no_drain") {
            self.shutdown.wake_draining();
        }
        if !mutant("a_late_push_is_not_noticed") {
            self.shutdown.pushed_late();
        }
        if self.shutdown.is_completed() {
            self.drain();
        } else if !mutant("a_late_push_interrupts_no_join") {
            self.threads.interrupt();
        }
    }

    /// Leaves what is in a worker's queue to the shutdown, which is over. The worker runs nothing any
    /// more, and does not clear its queue while its thread waits.
    pub(super) fn leave_queued(&self, local: &WorkerLocal<'_>) {
        if mutant("a_wait_keeps_what_its_worker_has") {
            return;
        }
        let left = local.drain();
        if left.is_empty() {
            return;
        }
        let left = left.into_iter().map(Runnable::into_raw);
        self.scheduler.shutdown_queue.push(left);
        // SeqCst: as in `push`.
        fence(Ordering::SeqCst);
        self.pushed_late();
    }

    /// Does what `push` does, and keeps the runtime until it returns (EXECUTOR-1): a policy may have
    /// given the task to another runtime, whose worker does not own this one.
    #[inline(never)]
    fn push_kept(self: &Arc<Self>, entry: Queued) {
        self.clone().push(entry);
    }

    /// Notes that a runnable was dropped. Before the end of the runtime only policies drop
    /// runnables; at the end all are dropped.
    fn policy_dropped(&self) {
        if let PolicyImpl::Other(other) = &self.scheduler.policy
            && !self.is_over()
        {
            other.lost_one();
            // (POLICY-1) The runnable was counted.
            self.dec_activity();
        }
    }
}

impl TimerClock for Inner {
    fn timers(&self) -> &Timers {
        &self.timers
    }

    fn armed(&self, earliest: bool, waker: &Waker) {
        // If the waker is that of this turn's task, that task cannot run before the turn has ended. Then
        // no keeper need be appointed: the worker sees to the deadline when the turn has ended.
        let by_turn = context::with(|context| {
            let local = context?.local_of(self)?;
            task::is_own_waker(waker).then(|| local.set_unkept_deadline())
        });
        let Some(next) = self.timers.next() else {
            return;
        };
        match &self.scheduler.policy {
            // The worker has noted it. A keeper that is there sleeps until an earlier deadline already.
            PolicyImpl::Stealing(_) if by_turn.is_some() && !earliest => {}
            PolicyImpl::Stealing(stealing) => {
                let sleep = &stealing.queues.sleep;
                sleep.notify_deadline(next, by_turn.is_some());
            }
            // All workers that sleep keep the earliest deadline.
            PolicyImpl::Other(_) | PolicyImpl::Elsewhere(_) if !earliest => {}
            PolicyImpl::Other(_) | PolicyImpl::Elsewhere(_) => self.scheduler.interrupt(),
        }
    }

    fn fires_at(&self, deadline: Instant) -> Instant {
        match self.scheduler.policy {
            PolicyImpl::Elsewhere(_) => self.engine().fires_at(deadline),
            PolicyImpl::Stealing(_) | PolicyImpl::Other(_) => deadline,
        }
    }

    fn emptied(&self) {
        // `find_end` reads `activity.is_awaited()`, then the deadlines under their lock. If this deadline
        // made it give up, the wait for which it looked was counted before. So that is seen here, and
        // this thread declares instead.
        if self.scheduler.activity.is_awaited() {
            self.declare();
        }
    }
}

impl SchedulerOwner for Inner {
    fn must_see_to(&self, worker: usize) -> bool {
        #[cfg(test)]
        super::tests::look();
        self.declared.is_declared()
            || (self.shutdown.has_begun()
                && (self.is_over()
                    || self.shutdown.must_report_queue(worker)
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

    fn until_silence(&self) -> Option<Duration> {
        Inner::until_silence(self)
    }

    fn find_endless_waits(&self) {
        self.find_silent_from_sleep();
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

    fn report_quiescence(&self) {
        Inner::report_quiescence(self);
        self.report_silence_in_time();
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
        if self.shutdown.must_report_queue(local.index()) {
            queue.mark_before(local.drain().into_iter().map(Runnable::into_raw));
            self.shutdown.note_queue_report(local.index());
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

//! What all threads of a runtime share, and the runtime as its tasks see it.
//!
//! Tasks hold the runtime and its queues hold tasks; the cycle is broken by the shutdown, which
//! drops every task that is left.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;

use super::asks::Asks;
use super::blocking::Blocking;
use super::builder::Options;
use super::chosen::{Choice, Chosen};
use super::closing::{Closing, State};
use super::current;
use super::injector::Injector;
use super::observer::Busy;
use super::policy::Setup;
use super::queues;
use super::quiescence::Quiescence;
use super::registry::Registry;
use super::ring::Entry;
use super::simulation::Simulation;
use super::stats::Counters;
use crate::contain::contain;
use crate::error::UnhandledFault;
use crate::instant::Instant;
use crate::pinned::Seats;
use crate::sync::atomic::{AtomicUsize, Ordering, fence};
use crate::sync::{Process, mutant};
use crate::task::{
    ActorExecutor, Executor, Header, LiveIndex, MessageEvent, Runnable, TaskInfo, TaskKey,
};
use crate::timers::{Clock, Pace, Timers};

/// Aligned, so that what all workers read is on no line with the count of the `Arc`, which each spawn
/// and each end changes.
#[repr(align(128))]
pub struct Inner {
    pub(super) options: Options,
    pub(super) policy: Chosen,
    /// In a shutdown: what was queued before it, and what comes from outside after that.
    pub(super) left: Injector,
    pub(super) counters: Box<[Counters]>,
    pub(super) quiescence: Quiescence,
    pub(super) timers: Timers,
    pub(super) registry: Registry,
    pub(super) busy: Busy,
    pub(crate) blocking: Blocking,
    pub(crate) seats: Seats,
    pub(super) closing: Closing,
    /// Empty unless deadlocks are detected.
    pub(crate) asks: Asks,
    /// How many clones of [`Runtime`](super::Runtime) keep it going.
    pub(super) counting: AtomicUsize,
}

// No user code runs in the middle of a change of it, so no panic leaves it half changed.
impl UnwindSafe for Inner {}
impl RefUnwindSafe for Inner {}

impl Inner {
    /// A runtime whose workers have yet to be started; or why the policy can't be.
    pub(super) fn new(options: Options, policy: Box<dyn Choice>) -> Result<Self, String> {
        current::watch_forks();
        let workers = options.workers;
        let quiescence = Quiescence::new();
        let policy = policy.start(Setup {
            workers,
            highest_priority: options.priorities,
            pulse: Some(quiescence.pulse.clone()),
        })?;
        Ok(Inner {
            blocking: Blocking::new(options.thread_name.clone()),
            options,
            policy,
            left: Injector::new(),
            counters: (0..workers).map(|_| Counters::default()).collect(),
            asks: Asks::new(&quiescence.pulse),
            quiescence,
            timers: Timers::new(),
            // One more than workers, for all other threads.
            registry: Registry::new(workers + 1),
            busy: Busy::new(),
            seats: Seats::new(),
            closing: Closing::new(workers),
            counting: AtomicUsize::new(1),
        })
    }

    pub(crate) fn is_hidden(&self) -> bool {
        self.options.hidden
    }

    pub(super) fn is_over(&self) -> bool {
        self.closing.is_over()
    }

    /// Whether its threads are in this process; if not, no lock of it may be taken, and nothing waited for.
    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        self.process().is_current()
    }

    /// The process that has its threads.
    #[inline]
    pub(crate) fn process(&self) -> Process {
        self.options.process
    }

    /// # Panics
    /// If that is another one.
    #[inline]
    #[track_caller]
    pub(crate) fn check_process(&self) {
        self.process().check();
    }

    /// The simulation, if this is a simulated runtime.
    pub(crate) fn simulation(&self) -> Option<&Simulation> {
        match &self.policy {
            Chosen::Simulated(simulation) => Some(simulation),
            _ => None,
        }
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Something has left one of the pinned threads.
    pub(crate) fn leave_seat(&self) {
        self.closing.progress();
    }

    /// The tasks that await the shutdown.
    pub(crate) fn exempted(&self) -> Vec<TaskKey> {
        self.closing.exempted()
    }

    pub(crate) fn had_its_turn(&self, key: TaskKey) {
        self.closing.had_its_turn(key);
    }

    /// Waits until the shutdown is over, but for the tasks that await it.
    pub(crate) fn wait_for_report(&self) {
        self.closing.wait_until(None, State::is_reported);
    }

    /// Which of its workers this thread is.
    fn worker(&self) -> Option<usize> {
        current::with(|place| Some(place?.local_of(self)?.index()))
    }

    /// Whether there is something besides runnables that this worker must see to.
    pub(super) fn must_see_to(&self, worker: usize) -> bool {
        self.quiescence.is_declared()
            || (self.closing.has_begun()
                && (self.is_over() || self.closing.has_to_tell(worker) || self.left.len() > 0))
    }

    /// Whether somebody wants to know of each run of a worker.
    pub(super) fn is_observed(&self) -> bool {
        !matches!(self.policy, Chosen::Stealing(_)) || self.has_observer()
    }

    /// The same on pinned threads, of which policies are told nothing.
    pub(crate) fn is_watching(&self) -> bool {
        self.has_observer() || self.simulation().is_some()
    }

    pub(crate) fn has_observer(&self) -> bool {
        self.options.observer.is_some()
    }

    /// Counts a thread that runs a task apart from the worker it was.
    pub(super) fn rise_apart(&self) {
        if let Chosen::Stealing(_) = self.policy {
            self.rise();
        }
    }

    /// Counts it no more. With another policy it is the runnable that is counted, not the thread.
    pub(super) fn fall_apart(&self) {
        if let Chosen::Stealing(_) = self.policy {
            self.fall();
        }
    }

    /// A turn of a worker is over.
    pub(super) fn turn_ended(&self) {
        if let Chosen::Other(_) = self.policy {
            // (J1) It was counted.
            self.fall();
        }
    }

    /// A runnable was dropped; until the end, when all are, only policies do that.
    fn policy_dropped(&self) {
        if let Chosen::Other(other) = &self.policy
            && !self.is_over()
        {
            other.lost_one();
            // (J1) It was counted.
            self.fall();
        }
    }

    /// Whether a queue has something that is not counted in the pulse.
    pub(super) fn has_queued(&self) -> bool {
        self.policy.has_uncounted() || self.left.len() > 0
    }

    /// Wakes everybody whose deadline is over; says how many.
    pub(super) fn fire(&self, now: Instant) -> usize {
        if !self.timers.is_due(now) {
            return 0;
        }
        // (K1) The worker itself may not be counted.
        self.rise();
        let fired = self.timers.fire(now);
        self.fall();
        fired
    }

    /// The same, if it is time to look at the clock again; says whether anybody was woken.
    pub(super) fn fire_at_pace(&self, pace: &mut Pace) -> bool {
        !self.timers.is_empty() && pace.is_time().is_some_and(|now| self.fire(now) > 0)
    }

    /// Takes what does not come from one of its workers.
    fn push(&self, entry: Entry) {
        // Each push is followed by a fence, which pairs with that in `settle`: either the shutdown
        // sees the push, or we see that.
        if !self.closing.has_begun() || self.simulation().is_some() {
            self.policy.push_outside(self, queues::runnable(entry));
        } else {
            if let Chosen::Other(_) = self.policy {
                // (J1) As if the policy had it.
                self.rise();
            }
            self.left.push([entry]);
            fence(Ordering::SeqCst);
            self.policy.interrupt();
        }
        // As long as the shutdown looks, nothing is dropped here: whoever wakes a task may hold a
        // lock that the drop of its future takes.
        if self.closing.is_settled() && !mutant("late_push_stays") {
            self.drain();
        }
    }

    /// The same where a policy may have given the task to another runtime, whose worker runs it (EXECUTOR-1).
    #[inline(never)]
    fn push_kept(self: &Arc<Self>, entry: Entry) {
        self.clone().push(entry);
    }

    /// Drops what nobody will run any more, unless it is exempt.
    pub(super) fn drop_unneeded(&self, runnable: Runnable) {
        if let Some(unneeded) = self.closing.spare(runnable) {
            contain(|| drop(unneeded));
        }
    }

    /// Drops whatever is in no worker's queue, when nobody is there any more to run it.
    ///
    /// One thread at a time does it: what is pushed by a drop is dropped by the same loop, so a
    /// chain of tasks that hold each other does not become a recursion.
    pub(super) fn drain(&self) {
        while self.has_left() && self.closing.begin_drain() {
            let kept = self.policy.len_of_other();
            let mut dropped = 0;
            while let Some(runnable) = self.take_left() {
                dropped += 1;
                self.drop_unneeded(runnable);
            }
            self.closing.end_drain();
            if mutant("drain_looks_once") {
                return;
            }
            if !mutant("drain_ends_without_fence") {
                // SeqCst pairs with the fence after the push of whoever saw us draining.
                fence(Ordering::SeqCst);
            }
            let stuck = kept.is_some() && kept == self.policy.len_of_other();
            if dropped == 0 && stuck && self.left.len() == 0 {
                // The policy does not give what it has.
                return;
            }
        }
    }

    /// Whether something is in no worker's queue.
    fn has_left(&self) -> bool {
        self.left.len() > 0 || self.policy.has_left()
    }

    fn take_left(&self) -> Option<Runnable> {
        let left = self.left.pop().map(queues::runnable);
        left.or_else(|| self.policy.take_left(self))
    }
}

impl Executor for Arc<Inner> {
    fn process(&self) -> Process {
        Inner::process(self)
    }

    fn schedule(&self, runnable: Runnable, again: bool) {
        let entry = runnable.into_raw();
        let local = current::with(|place| {
            let local = place.and_then(|place| place.local_of(self));
            local.map(|local| local.push(entry, again)).is_some()
        });
        if local {
            return;
        }
        if !self.is_here() {
            return queues::runnable(entry).leave_behind();
        }
        match self.policy {
            Chosen::Other(_) => self.push_kept(entry),
            Chosen::Stealing(_) | Chosen::Simulated(_) => self.push(entry),
        }
    }

    fn track(&self, waker: &Waker) -> Option<LiveIndex> {
        self.process().end_copy();
        self.registry.track(waker, self.worker(), || self.is_over())
    }

    fn untrack(&self, live_index: LiveIndex) {
        self.process().end_copy();
        self.registry.untrack(live_index);
    }

    fn report(&self, unhandled: &UnhandledFault<'_>) {
        if self
            .simulation()
            .is_some_and(|simulation| simulation.judges(unhandled))
        {
            return;
        }
        contain(|| (self.options.on_fault)(unhandled));
    }

    fn task_completed(&self) {
        if Inner::is_observed(self) {
            Inner::task_completed(self);
        }
    }

    fn task_dropped(&self) {
        if TaskKey::dropped().is_some() {
            self.policy_dropped();
        }
    }

    fn looked_at(&self, task: TaskKey, has_ended: bool) {
        let Some(simulation) = self.simulation() else {
            return;
        };
        let task = TaskInfo::of_task(task);
        if has_ended {
            simulation.settle_task(self, &task);
        } else {
            simulation.awaits_end(&task);
        }
    }
}

impl ActorExecutor for Arc<Inner> {
    fn enter(&self, cell: NonNull<Header>) -> bool {
        self.registry.enter(cell, self.worker())
    }

    fn leave(&self, cell: NonNull<Header>) {
        self.process().end_copy();
        self.registry.leave(cell);
        self.closing.progress();
    }

    fn is_closing(&self) -> bool {
        self.closing.has_begun()
    }

    fn cancelled(&self) {
        self.closing.cancelled();
    }

    fn undelivered(&self, messages: usize) {
        self.closing.undelivered(messages);
    }

    fn batch(&self) -> u32 {
        self.options.batch
    }

    fn is_batch_chosen(&self) -> bool {
        self.options.is_batch_chosen
    }

    fn is_observed(&self) -> bool {
        Inner::is_observed(self)
    }

    fn is_traced(&self) -> bool {
        self.simulation().is_some()
    }

    fn trace(&self, cell: TaskInfo, event: MessageEvent) {
        self.simulation()
            .inspect(|simulation| simulation.trace(cell, event));
    }

    fn discarded(&self) {
        self.policy_dropped();
    }

    fn completed(&self, task: &TaskInfo) {
        Inner::completed(self, task);
    }
}

impl Clock for Inner {
    fn timers(&self) -> &Timers {
        &self.timers
    }

    fn next_changed(&self) {
        // A worker that sleeps next sees to the deadline itself; most timers are armed like that.
        let by_worker = current::with(|place| {
            let local = place.and_then(|place| place.local_of(self));
            local.map(|local| local.owe_keeper()).is_some()
        });
        self.policy.notify_deadline(by_worker);
    }

    fn fires_at(&self, deadline: Instant) -> Instant {
        let simulation = self.simulation();
        simulation.map_or(deadline, |simulation| simulation.fires_at(deadline))
    }

    fn emptied(&self) {
        self.declare();
    }
}

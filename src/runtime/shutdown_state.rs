//! The phase and the counts of a runtime's shutdown, and the threads and tasks that wait for it.
//!
//! # Invariants
//! - SHUTDOWN-1: the phase only advances, through [`ShutdownPhase`] in the order of its variants.
//! - SHUTDOWN-2: every event that the shutdown may wait for is followed by a call of `progress`.

use std::task::{Context, Poll};
use std::time::Duration;

use crate::instant::Instant;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
use crate::sync::{Condvar, Mutex, mutant};
use crate::task::{Runnable, TaskInfo, TaskKey};
use crate::waiters::{Ticket, Waiters};

/// The phase of the shutdown of a runtime (SHUTDOWN-1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ShutdownPhase {
    /// The shutdown has not begun.
    Open,
    /// Actors were asked to stop, and nothing new is accepted.
    Closing,
    /// Nothing runs any more but what is exempt.
    Over,
    /// Everything that was found is dropped. A thread that schedules something from now on drops
    /// it.
    Completed,
}

pub(crate) struct ShutdownState {
    /// A [`ShutdownPhase`].
    phase: AtomicUsize,
    state: Mutex<Progress>,
    changed: Condvar,
    reported: Waiters,
    /// The waits of threads that drain.
    late: Waiters,
    /// How often each worker has reported what was queued when the shutdown began.
    queue_reports: Box<[AtomicU32]>,
    draining: AtomicBool,
    undelivered: AtomicUsize,
}

#[derive(Default)]
pub(crate) struct Progress {
    /// The number of workers.
    workers: usize,
    /// How many of them run nothing any more.
    out: usize,
    /// The tasks that await the shutdown, once for each call. They are not cancelled before they
    /// have its report.
    exempt: Vec<TaskKey>,
    /// Runnables of exempt tasks that were woken when nothing else ran any more.
    spared: Vec<Runnable>,
    /// A worker stays for the exempt tasks.
    lingering: bool,
    /// A thread waits and has not been notified since it last checked. So a burst of events causes
    /// one notification.
    awaited: bool,
    /// The number of actors that were cancelled, and the first ones.
    cancelled: (usize, Vec<TaskInfo>),
    /// How many entries were pushed when nothing ran any more.
    late: usize,
    /// How many these were when a drain last began to empty a policy that has no worker.
    drained: Option<usize>,
    report: Option<ShutdownReport>,
}

/// The maximum number of actors that a report names: more would say nothing new, and a report is
/// copied.
const NAMED_MAX: usize = 100;

impl ShutdownState {
    pub(crate) fn new(workers: usize) -> Self {
        ShutdownState {
            queue_reports: (0..workers).map(|_| AtomicU32::new(0)).collect(),
            phase: AtomicUsize::new(ShutdownPhase::Open as usize),
            state: Mutex::new(Progress::default()),
            changed: Condvar::new(),
            reported: Waiters::new(),
            late: Waiters::new(),
            draining: AtomicBool::new(false),
            undelivered: AtomicUsize::new(0),
        }
    }

    // -- phases -------------------------------------------------------------------------------

    /// Begins the shutdown. Returns false if it has already begun.
    pub(crate) fn begin(&self) -> bool {
        // SeqCst: in one order with the fences of threads that push and then read the phase.
        self.phase
            .compare_exchange(
                ShutdownPhase::Open as usize,
                ShutdownPhase::Closing as usize,
                Ordering::SeqCst,
                Ordering::SeqCst,
            )
            .is_ok()
    }

    pub(crate) fn finish(&self) {
        self.phase
            .store(ShutdownPhase::Over as usize, Ordering::SeqCst);
        // SeqCst pairs with the fence after a push, as in `complete`.
        fence(Ordering::SeqCst);
    }

    pub(crate) fn complete(&self) {
        self.phase
            .store(ShutdownPhase::Completed as usize, Ordering::SeqCst);
        // SeqCst pairs with the fence after a push (`Inner::push`): the drain that follows sees every push
        // whose thread did not see this store.
        fence(Ordering::SeqCst);
    }

    pub(crate) fn has_begun(&self) -> bool {
        // Acquire pairs with the stores above.
        self.phase.load(Ordering::Acquire) != ShutdownPhase::Open as usize
    }

    pub(crate) fn is_over(&self) -> bool {
        // Acquire pairs with the stores above.
        self.phase.load(Ordering::Acquire) >= ShutdownPhase::Over as usize
    }

    pub(crate) fn is_completed(&self) -> bool {
        // Acquire pairs with the stores above.
        self.phase.load(Ordering::Acquire) == ShutdownPhase::Completed as usize
    }

    // -- what was queued before -----------------------------------------------------------------

    /// Notes that this worker has reported what was queued.
    pub(crate) fn note_queue_report(&self, worker: usize) {
        // Release pairs with the Acquire in `reports_of`.
        self.queue_reports[worker].fetch_add(1, Ordering::Release);
    }

    /// Returns whether this worker has to report what is queued. If there are several workers, each
    /// reports twice. A worker that reported early may steal from one that has not reported yet. It
    /// holds the stolen entries when all workers have reported once.
    pub(crate) fn must_report_queue(&self, worker: usize) -> bool {
        match self.reports_of(worker) {
            0 => true,
            1 if self.reports_due() > 1 => {
                (0..self.queue_reports.len()).all(|worker| self.reports_of(worker) > 0)
            }
            _ => false,
        }
    }

    /// Returns how often each worker reports.
    fn reports_due(&self) -> u32 {
        if self.queue_reports.len() > 1 { 2 } else { 1 }
    }

    /// Returns the number of workers that have yet to report.
    pub(crate) fn workers_to_report(&self) -> usize {
        let workers = 0..self.queue_reports.len();
        workers
            .filter(|&worker| self.reports_of(worker) < self.reports_due())
            .count()
    }

    fn reports_of(&self, worker: usize) -> u32 {
        // Acquire pairs with the Release in `note_queue_report`.
        self.queue_reports[worker].load(Ordering::Acquire)
    }

    // -- waiting ------------------------------------------------------------------------------

    /// Notifies the shutdown that an event has happened for which it may wait.
    pub(crate) fn progress(&self) {
        if self.has_begun() {
            self.notify();
        }
    }

    /// Notifies all threads that wait here, also if the shutdown is only about to begin.
    pub(crate) fn notify(&self) {
        if std::mem::take(&mut self.state.lock().awaited) {
            self.changed.notify_all();
        }
    }

    /// Does what `progress` does for an entry that was pushed when nothing runs any more.
    pub(crate) fn pushed_late(&self) {
        self.state.lock().late += 1;
        self.notify();
    }

    /// Wakes the threads that wait in a drain, for such an entry.
    pub(crate) fn wake_draining(&self) {
        self.late.wake_all();
    }

    pub(crate) fn poll_late(
        &self,
        ticket: &mut Ticket,
        cx: &mut Context<'_>,
        has_late: impl Fn() -> bool,
    ) -> Poll<()> {
        self.late.poll(ticket, cx, has_late)
    }

    pub(crate) fn leave_late(&self, ticket: &mut Ticket) {
        self.late.leave(ticket);
    }

    /// Waits until `done`, at most until `deadline` (`None`: without a limit).
    pub(crate) fn wait_until(&self, deadline: Option<Instant>, done: impl Fn(&Progress) -> bool) {
        let mut state = self.state.lock();
        while !done(&state) {
            let wait = deadline.map(|deadline| deadline.duration_since(Instant::now()));
            if wait == Some(Duration::ZERO) {
                return;
            }
            state.awaited = true;
            state = self.changed.wait(state, wait);
        }
    }

    pub(crate) fn expect_workers(&self, workers: usize) {
        self.state.lock().workers = workers;
        for never in self.queue_reports.iter().skip(workers) {
            // Release: as in `note_queue_report`.
            never.store(self.reports_due(), Ordering::Release);
        }
    }

    /// Notes that a worker runs nothing any more.
    pub(crate) fn worker_left(&self) {
        self.state.lock().out += 1;
        self.changed.notify_all();
    }

    /// Returns how many workers are not out. A worker that stays for exempt tasks counts as out.
    pub(crate) fn not_out(&self) -> usize {
        self.state.lock().not_out()
    }

    /// Returns how many of the exempt tasks are actors.
    pub(crate) fn exempt_cells(&self) -> usize {
        self.state.lock().exempt_cells()
    }

    /// Returns whether no worker is left, not even one that stays for exempt tasks.
    pub(crate) fn are_workers_gone(&self) -> bool {
        self.state.lock().are_workers_gone()
    }

    /// Returns how many entries were pushed late, and whether no worker is left.
    pub(crate) fn late(&self) -> (usize, bool) {
        let state = self.state.lock();
        (state.late, state.are_workers_gone())
    }

    pub(crate) fn undelivered(&self, messages: usize) {
        if self.has_begun() {
            // Relaxed: a count that is read after the threads that add to it were waited for.
            self.undelivered.fetch_add(messages, Ordering::Relaxed);
        }
    }

    pub(crate) fn cancelled(&self, actor: &TaskInfo) {
        // A policy may cancel actors before the shutdown.
        if self.has_begun() {
            let (number, named) = &mut self.state.lock().cancelled;
            *number += 1;
            if named.len() < NAMED_MAX {
                named.push(actor.clone());
            }
        }
    }

    // -- the report ---------------------------------------------------------------------------

    pub(crate) fn report(&self) -> Option<ShutdownReport> {
        self.state.lock().report.clone()
    }

    /// Sets the report. Of the actors that were `alive` at the beginning, `left` still are: the
    /// exempt ones, and those that are held by threads left behind, which will be cancelled. These
    /// are `held`.
    pub(crate) fn set_report(
        &self,
        alive: usize,
        (left, held): (usize, Vec<TaskInfo>),
        left_behind: usize,
    ) {
        let mut state = self.state.lock();
        let exempt = state.exempt_cells().min(left);
        let (cancelled, mut named) = std::mem::take(&mut state.cancelled);
        let cancelled = cancelled + left - exempt;
        named.extend(held);
        named.truncate(NAMED_MAX);
        named.sort_by_key(TaskInfo::id);
        state.report = Some(ShutdownReport {
            ended: alive.saturating_sub(cancelled + exempt),
            cancelled,
            cancelled_actors: named,
            // Relaxed: the threads that add to it were waited for, except those left behind.
            unhandled: self.undelivered.load(Ordering::Relaxed),
            left_behind,
        });
        drop(state);
        self.changed.notify_all();
        self.reported.wake_all();
    }

    pub(crate) fn poll_report(&self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Poll<()> {
        self.reported
            .poll(ticket, cx, || self.state.lock().report.is_some())
    }

    pub(crate) fn leave_report(&self, ticket: &mut Ticket) {
        self.reported.leave(ticket);
    }

    // -- tasks that await the shutdown --------------------------------------------------------

    pub(crate) fn exempt(&self, key: TaskKey) {
        self.state.lock().exempt.push(key);
    }

    /// Notes that one of the task's calls of `shutdown` is over.
    pub(crate) fn exempt_no_more(&self, key: TaskKey) {
        let mut state = self.state.lock();
        if let Some(at) = state.exempt.iter().position(|&exempt| exempt == key) {
            state.exempt.swap_remove(at);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Notes that an exempt task has had its last turn.
    pub(crate) fn had_its_turn(&self, key: TaskKey) {
        self.state.lock().exempt.retain(|&exempt| exempt != key);
        self.changed.notify_all();
    }

    pub(crate) fn exempted(&self) -> Vec<TaskKey> {
        self.state.lock().exempt.clone()
    }

    /// Keeps an exempt runnable for the worker that stays, and returns any other runnable.
    pub(crate) fn spare(&self, runnable: Runnable) -> Option<Runnable> {
        let mut state = self.state.lock();
        if !state.exempt.contains(&runnable.key()) {
            return Some(runnable);
        }
        state.spared.push(runnable);
        drop(state);
        self.changed.notify_all();
        None
    }

    /// Takes out the kept runnables of tasks that are no longer exempt.
    pub(crate) fn unspare(&self) -> Vec<Runnable> {
        let mut state = self.state.lock();
        let Progress { exempt, spared, .. } = &mut *state;
        let unneeded = |runnable: &mut Runnable| !exempt.contains(&runnable.key());
        spared.extract_if(.., unneeded).collect()
    }

    /// Runs each exempt task once more, when it has its report. One worker stays to do so. Returns
    /// whether this was the worker. Meanwhile it calls `clear` after late pushes, which may be in its
    /// policy: no other thread empties that while there is a worker.
    pub(crate) fn linger(&self, mut turn: impl FnMut(Runnable), clear: impl Fn()) -> bool {
        let mut state = self.state.lock();
        if state.lingering || state.exempt.is_empty() {
            return false;
        }
        state.lingering = true;
        self.changed.notify_all();
        let mut cleared = None;
        while !state.exempt.is_empty() {
            // Before the report a wake-up is for something else, so the task waits until then.
            let ready = if state.report.is_some() {
                state.spared.pop()
            } else {
                None
            };
            let Some(runnable) = ready else {
                if cleared != Some(state.late) && !mutant("a_worker_that_stays_leaves_its_policy") {
                    cleared = Some(state.late);
                    drop(state);
                    clear();
                    state = self.state.lock();
                    continue;
                }
                state.awaited = true;
                state = self.changed.wait(state, None);
                continue;
            };
            let key = runnable.key();
            drop(state);
            turn(runnable);
            state = self.state.lock();
            state.exempt.retain(|&exempt| exempt != key);
        }
        state.lingering = false;
        true
    }

    // -- draining -----------------------------------------------------------------------------

    pub(crate) fn begin_drain(&self) -> bool {
        // Acquire pairs with the Release in `end_drain`: one thread drains after the other.
        let begins = self
            .draining
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        if begins {
            let mut state = self.state.lock();
            state.drained = state.are_workers_gone().then_some(state.late);
        }
        begins
    }

    pub(crate) fn is_draining(&self) -> bool {
        // Relaxed: only a hint. The thread that drains looks again when it has ended the drain.
        self.draining.load(Ordering::Relaxed)
    }

    pub(crate) fn end_drain(&self) {
        self.draining.store(false, Ordering::Release);
    }
}

impl Progress {
    /// Returns how many workers still run something.
    fn not_out(&self) -> usize {
        let out = self.out + usize::from(self.lingering);
        self.workers.saturating_sub(out)
    }

    pub(crate) fn all_out(&self) -> bool {
        self.not_out() == 0
    }

    /// Returns whether no worker is left, not even one that stays for exempt tasks.
    fn are_workers_gone(&self) -> bool {
        self.out >= self.workers
    }

    /// Returns whether a policy without a worker may have what no drain has looked for.
    pub(crate) fn has_undrained(&self) -> bool {
        self.are_workers_gone() && self.drained != Some(self.late)
    }

    /// Returns the tasks that await the shutdown.
    pub(crate) fn exempted(&self) -> &[TaskKey] {
        &self.exempt
    }

    /// Returns how many of the exempt tasks are actors.
    pub(crate) fn exempt_cells(&self) -> usize {
        let first = |at: usize| !self.exempt[..at].contains(&self.exempt[at]);
        let cells = |at: &usize| self.exempt[*at].is_cell() && first(*at);
        (0..self.exempt.len()).filter(cells).count()
    }

    pub(crate) fn is_reported(&self) -> bool {
        self.report.is_some()
    }
}

/// The outcome of the shutdown of a runtime, returned by
/// [`Runtime::shutdown`](crate::Runtime::shutdown).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// The number of actors that were live when the shutdown began and ended by themselves.
    pub ended: usize,
    /// The number of actors that were cancelled.
    pub cancelled: usize,
    /// The actors that were cancelled, in the order of their [ids](crate::Address::id). Of more than
    /// 100, only the first 100 that were cancelled.
    pub cancelled_actors: Vec<TaskInfo>,
    /// The number of messages that were accepted and never handled.
    pub unhandled: usize,
    /// The number of threads that user code did not return in time. They end when it returns.
    pub left_behind: usize,
}

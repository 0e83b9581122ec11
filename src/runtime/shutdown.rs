//! The shutdown of a runtime: stop everything, cancel the rest, then join the threads.
//!
//! The phases are in `shutdown_state.rs`, which the modules that take part in a shutdown use.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::context::{self, Role, ThreadContext};
use super::draining;
use super::handle::Runtime;
use super::host::{HostContext, HostThread};
use super::inner::Inner;
use super::shutdown_state::{Progress, ShutdownReport};
use crate::contain::{contain, count_thread};
use crate::instant::{Instant, RealTime};
use crate::sync::atomic::{Ordering, fence};
use crate::sync::{mutant, yield_now};
use crate::task::{Runnable, TaskInfo, TaskKey};
use crate::task_local::TaskLocals;
use crate::waiters::Ticket;

/// How long a thread may take, beyond the grace, for each of three things: to run what was queued,
/// to return from its turn, and to drop its thread-locals. A slower thread is left behind. A
/// shorter time would leave threads behind that are only busy.
const TURN_ENDS: Duration = Duration::from_millis(500);

/// How long a shutdown waits for actors before it says which. Most have ended by then, and of the
/// default grace of 5 s there is enough left to look into it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Returns the time of one turn after the deadline or, if that has passed, after now.
fn a_turn_after(deadline: Option<Instant>) -> Option<Instant> {
    deadline.map(|deadline| deadline.max(Instant::now()) + TURN_ENDS)
}

/// Starts a thread that shuts the runtime down.
fn start_thread(runtime: Arc<Inner>, grace: Duration) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("greenroom-shutdown".into());
    let thread = runtime.threads.with_stack(thread);
    let body = move || {
        count_thread();
        match runtime.options.around.clone() {
            None => runtime.close(grace),
            // A shutdown that was begun must not be lost.
            Some(around) => around
                .run(|| runtime.close(grace))
                .unwrap_or_else(|_| runtime.close(grace)),
        }
    };
    thread.spawn(body).map(drop)
}

impl Inner {
    /// Shuts down on this thread and waits until that is done. A second call waits for the first.
    ///
    /// In a process other than that of the runtime's threads there is nothing to shut down.
    pub(crate) fn close(self: &Arc<Self>, grace: Duration) {
        if self.is_here() {
            // Tasks that are not the caller's run or are dropped here.
            TaskLocals::default().run(|| self.close_on_this_thread(grace));
        }
    }

    fn close_on_this_thread(self: &Arc<Self>, grace: Duration) {
        if self.engine().close(self, grace) {
            return;
        }
        match context::stage_of(self) {
            Some(stage) if !context::is_inside(self) => self.close_from(&*stage, grace),
            _ => self.close_here(grace),
        }
    }

    /// Shuts down on this thread, with the grace of the runtime's options.
    pub(crate) fn close_in_order(self: &Arc<Self>) {
        self.close(self.options.grace);
    }

    /// Starts the shutdown on a thread of its own, or shuts down here if no thread can be started.
    pub(crate) fn begin_close(self: &Arc<Self>, grace: Duration) {
        // The thread that drives a simulation also drives its shutdown.
        if !self.engine().begin_close(self, grace) && start_thread(self.clone(), grace).is_err() {
            self.close(grace);
        }
    }

    /// Shuts down from the thread of a stage, which keeps running so that its actors may finish.
    fn close_from(self: &Arc<Self>, stage: &dyn HostContext, grace: Duration) {
        match start_thread(self.clone(), grace) {
            Ok(()) => Runtime::not_counting(self.clone()).block_on(async {
                let mut ticket = Ticket::default();
                std::future::poll_fn(|cx| self.shutdown.poll_report(&mut ticket, cx)).await;
            }),
            Err(_unavailable) => {
                stage.end();
                self.close_here(grace);
            }
        }
    }

    fn close_here(self: &Arc<Self>, grace: Duration) {
        let _time = RealTime::enter();
        let context = ThreadContext::new(self, Role::Closing);
        let _entered = context.enter();
        if !self.shutdown.begin() {
            return self.wait_for_report();
        }
        let deadline = Instant::now().checked_add(grace);
        let alive = self.ask_to_stop();
        self.let_actors_end(deadline);
        self.let_run_what_was_queued(deadline);
        let (left_behind, staying) = self.end_threads(deadline);
        // Another thread may have woken a task and not pushed it yet. If a thread is left behind
        // this is not repeated: that thread may hold such tasks, and drops them when user code
        // returns.
        let still = self.cancel_all();
        if still > 0 && left_behind == 0 {
            self.cancel_until_gone();
        }
        self.complete_shutdown();
        let (mut left, mut held, exempt) = (0, Vec::new(), self.exempted());
        let pinned = staying.iter().map(|host| host.live());
        for live in pinned.chain([&self.live]) {
            left += live.cells();
            live.describe_cells(&exempt, |actor, _| held.push(actor));
        }
        self.trace_end();
        self.set_report(alive, (left, held), left_behind);
    }

    /// Waits until all actors have ended, at most until the deadline. Warns of those that take long.
    fn let_actors_end(&self, deadline: Option<Instant>) {
        let have_ended = |state: &Progress| self.cells() <= state.exempt_cells();
        let patience = Instant::now() + PATIENCE;
        if deadline.is_none_or(|deadline| patience < deadline) {
            self.shutdown.wait_until(Some(patience), have_ended);
            self.warn_of_actors_that_stay();
        }
        self.shutdown.wait_until(deadline, have_ended);
    }

    /// Ends the shutdown: removes all names, ends all watches, and sets the report as `ShutdownState` does.
    pub(crate) fn set_report(
        &self,
        alive: usize,
        left: (usize, Vec<TaskInfo>),
        left_behind: usize,
    ) {
        // Also if there never were any names: one that comes from now on must find a closed table.
        self.directory_made().close();
        self.viewers.end();
        self.shutdown.set_report(alive, left, left_behind);
    }

    /// Completes the shutdown: from now on a thread that schedules a runnable drops it.
    pub(crate) fn complete_shutdown(&self) {
        self.shutdown.complete();
        self.drain();
    }

    /// Cancels until nothing is left, or until the rest no longer shrinks, since a policy may keep
    /// some.
    fn cancel_until_gone(&self) {
        let (mut left, mut until) = (usize::MAX, Instant::now());
        loop {
            let still = self.cancel_all();
            if still < left {
                (left, until) = (still, Instant::now() + TURN_ENDS);
            }
            if still == 0 || Instant::now() > until {
                return;
            }
            yield_now();
        }
    }

    /// Lets everything that was queued run, even beyond the deadline, as long as the queue shrinks.
    fn let_run_what_was_queued(&self, deadline: Option<Instant>) {
        // A worker that reports adds to what is known to be queued, which is progress as well.
        let left = || (self.shutdown.workers_to_report(), self.before());
        let mut seen = (usize::MAX, usize::MAX);
        loop {
            let now = Cell::new(seen);
            self.shutdown.wait_until(a_turn_after(deadline), |_| {
                now.set(left());
                now.get() == (0, 0) || now.get() < seen
            });
            if now.get() == (0, 0) || now.get() >= seen {
                return;
            }
            seen = now.get();
        }
    }

    pub(crate) fn cells(&self) -> usize {
        self.live.cells() + self.hosts.cells()
    }

    /// Returns how many runnables that were queued before the shutdown have not run.
    fn before(&self) -> usize {
        self.scheduler.shutdown_queue.before() + self.hosts.before()
    }

    /// Closes all mailboxes and refuses everything new. Returns the number of live actors.
    pub(crate) fn ask_to_stop(&self) -> usize {
        self.live.close_to_cells();
        self.hosts.close_to_cells();
        let alive = self.cells();
        self.live.stop_cells();
        self.hosts.stop_cells();
        self.scheduler
            .shutdown_queue
            .mark_before(self.scheduler.take_all());
        self.scheduler.interrupt();
        alive
    }

    /// Ends workers, blocking threads and pinned threads. Returns how many did not come back, and
    /// the pinned threads on which something may still live.
    fn end_threads(&self, deadline: Option<Instant>) -> (usize, Vec<Arc<dyn HostThread>>) {
        self.shutdown.finish();
        if !mutant("sleepers_are_not_woken_at_the_end") {
            self.scheduler.interrupt();
        }
        self.declared.end();
        self.viewers.end();
        self.shutdown.progress();
        self.hosts.finish();
        // From now on no worker fires timers. A thread that still waits for a deadline, in a drop
        // or in a nested `block_on`, uses the timers of the process.
        self.timers.close();
        // Cancelled first, since a thread may wait for something that a cancelled task releases.
        self.cancel_all();
        let turn_ends = a_turn_after(deadline);
        self.drain_until(turn_ends, |_| self.hosts.all_ended());
        let (pinned, staying) = self.hosts.let_go();
        self.drain_until(turn_ends, Progress::all_out);
        let workers = self.shutdown.not_out();
        // Left to the drain: the drop of one may wait for that of another.
        let jobs = self.blocking.close().map(Runnable::into_raw);
        self.scheduler.shutdown_queue.push(jobs);
        self.drain_until(turn_ends, |_| self.blocking.threads() == 0);
        let blocking = self.blocking.threads();
        self.drain_until(turn_ends, |_| !self.viewers.has_thread());
        let walking = usize::from(self.viewers.has_thread());
        let leaving = self.threads.join(a_turn_after(deadline), || self.drain());
        (pinned + workers + blocking + walking + leaving, staying)
    }

    /// Waits until `done`, at most until `deadline`. Drops what is pushed meanwhile: there may be no
    /// worker to take it, and a thread that is awaited may wait for that drop. What another thread
    /// drains is left to that thread, which may not come back.
    pub(super) fn drain_until(&self, deadline: Option<Instant>, done: impl Fn(&Progress) -> bool) {
        let must_drain = Cell::new(true);
        while must_drain.get() {
            self.shutdown.wait_until(deadline, |state| {
                let is_done = done(state);
                let has_left = self.scheduler.has_late()
                    || state.has_undrained()
                        && self.scheduler.has_left()
                        && !mutant("a_late_push_to_a_policy_is_not_drained");
                let has_late = has_left && !self.shutdown.is_draining();
                must_drain.set(!is_done && has_late);
                is_done || has_late
            });
            self.drain();
        }
    }

    /// Cancels and drops everything that is neither exempt nor held by a thread. Returns how many
    /// actors and tasks are held.
    pub(crate) fn cancel_all(&self) -> usize {
        let still = self.cancel_queued();
        // A thread that does not come back keeps an actor, but not the messages of that actor. They
        // are refused only now, since the drop of a message may wait for the end of the actor.
        self.live.refuse_cells(&self.shutdown.exempted());
        still
    }

    /// Does the same, but leaves the messages of what is held. A worker may hold it in its own queue.
    pub(crate) fn cancel_queued(&self) -> usize {
        let spare = self.shutdown.exempted();
        for runnable in self.shutdown.unspare() {
            self.drop_unneeded(runnable);
        }
        self.drain();
        self.live.cancel_cells(&spare);
        // A round may free what another task held. If none has ended, the rest is held elsewhere.
        let mut left = usize::MAX;
        loop {
            self.live.wake_tasks(&spare);
            self.drain();
            let still = self.live.others(&spare);
            if still == 0 || still >= left {
                return still;
            }
            left = still;
        }
    }

    /// Notes that a host has made progress: its phase has changed, or something there has ended.
    pub(crate) fn host_progressed(&self) {
        self.shutdown.progress();
    }

    /// Returns the tasks that await the shutdown.
    pub(crate) fn exempted(&self) -> Vec<TaskKey> {
        self.shutdown.exempted()
    }

    pub(crate) fn had_its_turn(&self, key: TaskKey) {
        self.shutdown.had_its_turn(key);
    }

    /// Waits until the shutdown is over, except for the tasks that await it.
    pub(crate) fn wait_for_report(&self) {
        self.shutdown.wait_until(None, Progress::is_reported);
    }
}

impl Inner {
    /// Drops a runnable that no worker will run, unless its task is exempt.
    pub(crate) fn drop_unneeded(&self, runnable: Runnable) {
        if let Some(unneeded) = self.shutdown.spare(runnable) {
            contain(|| drop(unneeded));
        }
    }

    /// Drops every runnable that is in no worker's queue, once no worker is left to run them.
    ///
    /// One thread drains at a time. The same loop drops a runnable that a drop pushes. So a chain
    /// of tasks that hold each other does not become a recursion.
    pub(crate) fn drain(&self) {
        while self.scheduler.has_left() && self.shutdown.begin_drain() {
            let kept = self.scheduler.len_of_other();
            let before = self.shutdown.late();
            let drains = draining::begin(self);
            let has_dropped = self.drop_left();
            drop(drains);
            self.shutdown.end_drain();
            if mutant("drain_looks_once") {
                return;
            }
            if !mutant("drain_ends_without_fence") {
                // SeqCst pairs with the fence after the push of a thread that saw this drain in
                // progress.
                fence(Ordering::SeqCst);
            }
            // A thread that has pushed meanwhile, or was the last worker, left the drain to this one.
            let stuck = kept.is_some() && kept == self.scheduler.len_of_other();
            let stuck = stuck && before == self.shutdown.late();
            if !has_dropped && stuck && self.scheduler.shutdown_queue.len() == 0 {
                // The policy does not return the runnables that it holds. Another one may have come.
                return self.shutdown.progress();
            }
        }
    }

    /// Drops what is left, in the one thread that drains. Returns whether there was any.
    pub(super) fn drop_left(&self) -> bool {
        let mut has_dropped = false;
        while let Some(runnable) = self.take_left() {
            has_dropped = true;
            self.drop_unneeded(runnable);
        }
        has_dropped
    }

    fn take_left(&self) -> Option<Runnable> {
        let are_workers_gone = self.shutdown.are_workers_gone();
        self.scheduler.take_left(self, are_workers_gone)
    }
}

impl Runtime {
    /// Shuts the runtime down: stops every actor, cancels whatever remains, and ends the threads.
    ///
    /// From the first poll on, the runtime accepts nothing new. Actors get
    /// [`grace`](crate::Builder::grace) to handle the messages that they accepted, while plain
    /// tasks continue to run. The wait ends when the last actor has ended or the grace is over.
    /// Tasks that were queued before the call still get their turn. Then all remaining actors and
    /// tasks are cancelled.
    ///
    /// After one second it [warns](crate::Warning::ShutdownWaits) of the actors that have not ended.
    /// The report names those that were cancelled.
    ///
    /// A thread that user code does not return within the grace and about one more second is left
    /// behind, and counted in the report. So is a thread that takes more than half a second, after
    /// the grace, to drop its thread-locals.
    ///
    /// The task that awaits this future is exempt. The shutdown does not wait for it, and does not
    /// cancel it before it has the report. Its worker ends when the task next suspends. A second
    /// call returns the same report.
    ///
    /// # Cancel safety
    /// Dropping the future after its first poll does not stop the shutdown. Another call returns
    /// the report.
    pub async fn shutdown(&self) -> ShutdownReport {
        let runtime = self.inner.clone();
        Closed {
            runtime,
            begun: false,
            exempt: None,
            ticket: Default::default(),
        }
        .await
    }
}

/// The future of [`Runtime::shutdown`](crate::Runtime::shutdown).
struct Closed {
    runtime: Arc<Inner>,
    begun: bool,
    /// The task that polled this last, if it belongs to the runtime.
    exempt: Option<TaskKey>,
    ticket: Ticket,
}

impl Closed {
    /// Exempts the task that polls this, and no longer the task that polled it before.
    fn exempt_this(&mut self) {
        let here = context::with(|context| {
            let context = context?;
            let ours = Arc::ptr_eq(context.runtime, &self.runtime);
            context.running.get().filter(|_| ours)
        });
        if here == self.exempt {
            return;
        }
        if let Some(key) = here {
            self.runtime.shutdown.exempt(key);
        }
        if let Some(key) = std::mem::replace(&mut self.exempt, here) {
            self.runtime.shutdown.exempt_no_more(key);
        }
    }
}

impl Future for Closed {
    type Output = ShutdownReport;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ShutdownReport> {
        let this = self.get_mut();
        this.runtime.check_process();
        let shutdown = &this.runtime.clone().shutdown;
        if shutdown.report().is_none() {
            this.exempt_this();
            if !this.begun {
                this.begun = true;
                this.runtime.begin_close(this.runtime.options.grace);
            }
            ready!(shutdown.poll_report(&mut this.ticket, cx));
        }
        Poll::Ready(shutdown.report().expect("the report was awaited"))
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        if !self.runtime.is_here() {
            return;
        }
        // A task that no longer waits is like any other. A task that has the report is in its last
        // turn now, and ends when it next suspends.
        if let Some(key) = self.exempt.take() {
            self.runtime.shutdown.exempt_no_more(key);
        }
        self.runtime.shutdown.leave_report(&mut self.ticket);
    }
}

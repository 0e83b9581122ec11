//! The steps of a shutdown: stop everything, cancel the rest, then join the threads.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::instant::{Instant, RealTime};
use crate::runtime::context::{self, Role, ThreadContext};
use crate::runtime::handle::Runtime;
use crate::runtime::host::{HostContext, HostThread};
use crate::runtime::inner::Inner;
use crate::runtime::shutdown_state::Progress;
use crate::sync::{mutant, yield_now};
use crate::task::TaskKey;
use crate::waiters::Ticket;

/// How long a thread may take, beyond the grace, for each of three things: to run what was queued,
/// to return from its turn, and to drop its thread-locals. A slower thread is left behind. A
/// shorter time would leave threads behind that are only busy.
const TURN_ENDS: Duration = Duration::from_millis(500);

/// Returns the time of one turn after the deadline or, if that has passed, after now.
fn a_turn_after(deadline: Option<Instant>) -> Option<Instant> {
    deadline.map(|deadline| deadline.max(Instant::now()) + TURN_ENDS)
}

/// Starts a thread that shuts the runtime down.
fn start_thread(runtime: Arc<Inner>, grace: Duration) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("greenroom-shutdown".into());
    let thread = runtime.threads.with_stack(thread);
    let body = move || match runtime.options.around.clone() {
        None => runtime.close(grace),
        // A shutdown that was begun must not be lost.
        Some(around) => around
            .run(|| runtime.close(grace))
            .unwrap_or_else(|_| runtime.close(grace)),
    };
    thread.spawn(body).map(drop)
}

impl Inner {
    /// Shuts down on this thread and waits until that is done. A second call waits for the first.
    ///
    /// In a process other than that of the runtime's threads there is nothing to shut down.
    pub(crate) fn close(self: &Arc<Self>, grace: Duration) {
        if !self.is_here() {
            return;
        }
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
        self.shutdown
            .wait_until(deadline, |state| self.cells() <= state.exempt_cells());
        self.let_run_what_was_queued(deadline);
        let (left_behind, staying) = self.end_threads(deadline);
        // Another thread may have woken a task and not pushed it yet. If a thread is left behind
        // this is not repeated: that thread may hold such tasks, and drops them when user code
        // returns.
        let still = self.cancel_all();
        if still > 0 && left_behind == 0 {
            self.cancel_until_gone();
        }
        self.settle(still);
        let pinned: usize = staying.iter().map(|host| host.live().cells()).sum();
        let left = self.live.cells() + pinned;
        self.trace_end();
        self.set_report(alive, left, left_behind);
    }

    /// Ends the shutdown: removes all names, and sets the report as `ShutdownState` does.
    pub(crate) fn set_report(&self, alive: usize, left: usize, left_behind: usize) {
        // Also if there never were any names: one that comes from now on must find a closed table.
        self.directory_made().close();
        self.shutdown.set_report(alive, left, left_behind);
    }

    /// Settles the shutdown: from now on a thread that schedules a runnable drops it, and a thread
    /// that comes back late cancels everything. At the last check `still` actors and tasks were
    /// held by threads, and such a task may have been left pending since.
    pub(crate) fn settle(&self, still: usize) {
        self.shutdown.settle();
        if still > 0 && !mutant("settled_without_a_last_look") {
            self.cancel_all();
        } else {
            self.drain();
        }
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
        let left = || (self.shutdown.not_told(), self.before());
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
        if !mutant("sleepers_do_not_hear_of_the_end") {
            self.scheduler.interrupt();
        }
        self.declared.end();
        self.shutdown.progress();
        self.hosts.finish();
        // From now on no worker fires timers. A thread that still waits for a deadline, in a drop
        // or in a nested `block_on`, uses the timers of the process.
        self.timers.close();
        // Cancelled first, since a thread may wait for something that a cancelled task releases.
        self.cancel_all();
        let turn_ends = a_turn_after(deadline);
        self.shutdown
            .wait_until(turn_ends, |_| self.hosts.all_ended());
        let (pinned, staying) = self.hosts.let_go();
        let workers = self.shutdown.wait_for_workers(turn_ends);
        let blocking = self.blocking.close(turn_ends);
        let leaving = self.threads.join(a_turn_after(deadline));
        (pinned + workers + blocking + leaving, staying)
    }

    /// Cancels and drops everything that is neither exempt nor held by a thread. Returns how many
    /// actors and tasks are held.
    pub(crate) fn cancel_all(&self) -> usize {
        let spare = self.shutdown.exempted();
        for runnable in self.shutdown.unspare() {
            self.drop_unneeded(runnable);
        }
        self.drain();
        self.live.cancel_cells(&spare);
        let mut left = usize::MAX;
        loop {
            self.live.wake_tasks(&spare);
            self.drain();
            let still = self.live.others(&spare);
            if still == 0 || still >= left {
                // A thread that does not come back keeps an actor, but not the messages of that
                // actor. They are refused only now, since the drop of a message may wait for the
                // end of the actor.
                self.live.refuse_cells(&spare);
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

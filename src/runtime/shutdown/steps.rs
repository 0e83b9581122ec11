//! The steps of a shutdown: all is asked to stop, then cancelled, then threads are joined.

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

/// How long a thread may take to come back from the turn that it is in, beyond the grace: to run what
/// was queued, to end, and then to drop its thread-locals. A thread that is slower is left behind; shorter
/// would leave behind what is merely busy.
const TURN_ENDS: Duration = Duration::from_millis(500);

/// Time for a turn from the deadline or, if that is over, from now.
fn a_turn_after(deadline: Option<Instant>) -> Option<Instant> {
    deadline.map(|deadline| deadline.max(Instant::now()) + TURN_ENDS)
}

/// Has a thread of its own shut down.
fn start_thread(runtime: Arc<Inner>, grace: Duration) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("greenroom-shutdown".into());
    thread.spawn(move || runtime.close(grace)).map(drop)
}

impl Inner {
    /// Shuts down on this thread and waits for it; a second call waits for the first.
    ///
    /// There is nothing to shut down in another process than that of its threads.
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

    /// Shuts down on this thread, with the time that actors have by the runtime's options.
    pub(crate) fn close_in_order(self: &Arc<Self>) {
        self.close(self.options.grace);
    }

    /// Starts the shutdown on a thread of its own, or shuts down here if there is none to be had.
    pub(crate) fn begin_close(self: &Arc<Self>, grace: Duration) {
        // What drives a simulation goes on with that.
        if !self.engine().begin_close(self, grace) && start_thread(self.clone(), grace).is_err() {
            self.close(grace);
        }
    }

    /// The same on the thread of a stage, which goes on meanwhile: actors there may finish.
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
        // Somebody may have woken a task and not brought it here yet. Not so if a thread is left
        // behind: that may have some in its hands, and drops them when user code gives it back.
        let still = self.cancel_all();
        if still > 0 && left_behind == 0 {
            self.cancel_until_gone();
        }
        self.settle(still);
        let pinned: usize = staying.iter().map(|host| host.live().cells()).sum();
        let left = self.live.cells() + pinned;
        self.shutdown.set_report(alive, left, left_behind);
    }

    /// From now on whoever schedules something drops it, and a thread that comes back late cancels all. At the
    /// last look so much was in the hands of threads, and one may have left that at rest since.
    pub(crate) fn settle(&self, still: usize) {
        self.shutdown.settle();
        if still > 0 && !mutant("settled_without_a_last_look") {
            self.cancel_all();
        } else {
            self.drain();
        }
    }

    /// Cancels until nothing is left, or as long as it gets less: a policy may keep something.
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

    /// What was queued has its run, even when the time is over, as long as it gets less.
    fn let_run_what_was_queued(&self, deadline: Option<Instant>) {
        // Whoever tells adds to what is known to be queued, and that is getting on as well.
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

    /// How much of what was queued before the shutdown has not had its run.
    fn before(&self) -> usize {
        self.scheduler.shutdown_queue.before() + self.hosts.before()
    }

    /// Closes all mailboxes and lets nothing new begin; says how many actors live.
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

    /// Ends workers, blocking threads and pinned threads; says how many did not come back, and on
    /// which pinned threads something may still live.
    fn end_threads(&self, deadline: Option<Instant>) -> (usize, Vec<Arc<dyn HostThread>>) {
        self.shutdown.finish();
        if !mutant("sleepers_do_not_hear_of_the_end") {
            self.scheduler.interrupt();
        }
        self.declared.end();
        self.shutdown.progress();
        self.hosts.finish();
        // From now on no worker looks at deadlines: who still waits for one, in a drop or a nested
        // `block_on`, goes to the process's timers.
        self.timers.close();
        // First, since a thread may be waiting for something that a cancelled task gives free.
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

    /// Cancels and drops all that is left, but for what is exempt or in the hands of a thread; says
    /// how much that is.
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
                // A thread that does not come back keeps an actor, but not what was sent to it. Only now, since
                // the drop of a message may wait for the end of the actor.
                self.live.refuse_cells(&spare);
                return still;
            }
            left = still;
        }
    }

    /// Notes that a host has come on, or something there has ended.
    pub(crate) fn host_progressed(&self) {
        self.shutdown.progress();
    }

    /// The tasks that await the shutdown.
    pub(crate) fn exempted(&self) -> Vec<TaskKey> {
        self.shutdown.exempted()
    }

    pub(crate) fn had_its_turn(&self, key: TaskKey) {
        self.shutdown.had_its_turn(key);
    }

    /// Waits until the shutdown is over, but for the tasks that await it.
    pub(crate) fn wait_for_report(&self) {
        self.shutdown.wait_until(None, Progress::is_reported);
    }
}

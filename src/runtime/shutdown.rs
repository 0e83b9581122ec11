//! The shutdown of a runtime: everybody is asked to stop, then cancelled, then threads are joined.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::Runtime;
use super::current::{self, Place, Role};
use super::inner::Inner;
use crate::instant::{Instant, RealTime};
use crate::pinned::{Local, Seat};
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

/// What the shutdown of a runtime came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Actors that lived when it began and ended by themselves.
    pub ended: usize,
    /// Actors that were cancelled.
    pub cancelled: usize,
    /// Messages that were accepted and never handled.
    pub unhandled: usize,
    /// Threads that user code did not give back in time. They end when it does.
    pub left_behind: usize,
}

impl Inner {
    /// Shuts down on this thread and waits for it; a second call waits for the first.
    ///
    /// There is nothing to shut down in another process than that of its threads.
    pub(super) fn close(self: &Arc<Self>, grace: Duration) {
        if !self.is_here() {
            return;
        }
        if let Some(simulation) = self.simulation() {
            return simulation.close(self, grace);
        }
        match current::stage_of(self) {
            Some(stage) if !current::is_inside(self) => self.close_from(&stage, grace),
            _ => self.close_here(grace),
        }
    }

    /// The same on the thread of a stage, which goes on meanwhile: actors there may finish.
    fn close_from(self: &Arc<Self>, stage: &Local, grace: Duration) {
        let runtime = self.clone();
        let thread = std::thread::Builder::new().name("greenroom-shutdown".into());
        match thread.spawn(move || runtime.close(grace)) {
            Ok(_) => Runtime::not_counting(self.clone()).block_on(async {
                let mut ticket = Ticket::default();
                std::future::poll_fn(|cx| self.closing.poll_report(&mut ticket, cx)).await;
            }),
            Err(_unavailable) => {
                stage.end();
                self.close_here(grace);
            }
        }
    }

    fn close_here(self: &Arc<Self>, grace: Duration) {
        let _time = RealTime::enter();
        let place = Place::new(self, Role::Closing);
        let _entered = place.enter();
        if !self.closing.begin() {
            return self.wait_for_report();
        }
        let deadline = Instant::now().checked_add(grace);
        let alive = self.ask_to_stop();
        self.closing
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
        let pinned: usize = staying.iter().map(|seat| seat.registry.cells()).sum();
        let left = self.registry.cells() + pinned;
        self.closing.set_report(alive, left, left_behind);
    }

    /// From now on whoever schedules something drops it, and a thread that comes back late cancels all. At the
    /// last look so much was in the hands of threads, and one may have left that at rest since.
    pub(super) fn settle(&self, still: usize) {
        self.closing.settle();
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
        let left = || (self.closing.not_told(), self.before());
        let mut seen = (usize::MAX, usize::MAX);
        loop {
            let now = Cell::new(seen);
            self.closing.wait_until(a_turn_after(deadline), |_| {
                now.set(left());
                now.get() == (0, 0) || now.get() < seen
            });
            if now.get() == (0, 0) || now.get() >= seen {
                return;
            }
            seen = now.get();
        }
    }

    pub(super) fn cells(&self) -> usize {
        self.registry.cells() + self.seats.cells()
    }

    /// How much of what was queued before the shutdown has not had its run.
    fn before(&self) -> usize {
        self.left.before() + self.seats.before()
    }

    /// Closes all mailboxes and lets nothing new begin; says how many actors live.
    pub(super) fn ask_to_stop(&self) -> usize {
        self.registry.close_to_cells();
        self.seats.close_to_cells();
        let alive = self.cells();
        self.registry.stop_cells();
        self.seats.stop_cells();
        self.left.mark_before(self.policy.take_all());
        self.policy.interrupt();
        alive
    }

    /// Ends workers, blocking threads and pinned threads; says how many did not come back, and on
    /// which pinned threads something may still live.
    fn end_threads(&self, deadline: Option<Instant>) -> (usize, Vec<Arc<Seat>>) {
        self.closing.finish();
        if !mutant("sleepers_do_not_hear_of_the_end") {
            self.policy.interrupt();
        }
        self.quiescence.end();
        self.closing.progress();
        self.seats.finish();
        // From now on no worker looks at deadlines: who still waits for one, in a drop or a nested
        // `block_on`, goes to the process's timers.
        self.timers.close();
        // First, since a thread may be waiting for something that a cancelled task gives free.
        self.cancel_all();
        let turn_ends = a_turn_after(deadline);
        self.closing
            .wait_until(turn_ends, |_| self.seats.all_ended());
        let (pinned, staying) = self.seats.let_go();
        let workers = self.closing.wait_for_workers(turn_ends);
        let blocking = self.blocking.close(turn_ends);
        let leaving = self.blocking.crew.join(a_turn_after(deadline));
        (pinned + workers + blocking + leaving, staying)
    }

    /// Cancels and drops all that is left, but for what is exempt or in the hands of a thread; says
    /// how much that is.
    pub(super) fn cancel_all(&self) -> usize {
        let spare = self.closing.exempted();
        for runnable in self.closing.unspare() {
            self.drop_unneeded(runnable);
        }
        self.drain();
        self.registry.cancel_cells(&spare);
        let mut left = usize::MAX;
        loop {
            self.registry.wake_tasks(&spare);
            self.drain();
            let still = self.registry.others(&spare);
            if still == 0 || still >= left {
                // A thread that does not come back keeps an actor, but not what was sent to it. Only now, since
                // the drop of a message may wait for the end of the actor.
                self.registry.refuse_cells(&spare);
                return still;
            }
            left = still;
        }
    }
}

/// The future of [`Runtime::shutdown`](super::Runtime::shutdown).
pub(super) struct Closed {
    pub(super) runtime: Arc<Inner>,
    pub(super) begun: bool,
    /// The task that polled this last, if it is one of the runtime's.
    pub(super) exempt: Option<TaskKey>,
    pub(super) ticket: Ticket,
}

impl Closed {
    /// Has the task that polls this exempted, and no longer the one that did before.
    fn exempt_this(&mut self) {
        let here = current::with(|place| {
            let place = place?;
            let ours = Arc::ptr_eq(place.runtime, &self.runtime);
            place.running.get().filter(|_| ours)
        });
        if here == self.exempt {
            return;
        }
        if let Some(key) = here {
            self.runtime.closing.exempt(key);
        }
        if let Some(key) = std::mem::replace(&mut self.exempt, here) {
            self.runtime.closing.exempt_no_more(key);
        }
    }

    /// Starts the shutdown on a thread of its own, or here if there is none to be had.
    fn begin(&mut self) {
        self.begun = true;
        if let Some(simulation) = self.runtime.simulation() {
            return simulation.begin_close(&self.runtime, self.runtime.options().grace);
        }
        let runtime = self.runtime.clone();
        let close = move || {
            let grace = runtime.options().grace;
            runtime.close(grace);
        };
        let thread = std::thread::Builder::new().name("greenroom-shutdown".into());
        if let Err(_unavailable) = thread.spawn(close.clone()) {
            close();
        }
    }
}

impl Future for Closed {
    type Output = ShutdownReport;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ShutdownReport> {
        let this = self.get_mut();
        this.runtime.check_process();
        let closing = &this.runtime.clone().closing;
        if closing.report().is_none() {
            this.exempt_this();
            if !this.begun {
                this.begin();
            }
            ready!(closing.poll_report(&mut this.ticket, cx));
        }
        Poll::Ready(closing.report().expect("waited for it"))
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        if !self.runtime.is_here() {
            return;
        }
        // A task that no longer waits is like any other. One that has its report is in its last
        // turn now, and ends when it next suspends.
        if let Some(key) = self.exempt.take() {
            self.runtime.closing.exempt_no_more(key);
        }
        self.runtime.closing.leave_report(&mut self.ticket);
    }
}

//! A worker thread's own part of the scheduler.

use super::duties::DriverWait;
use super::duties::Duties;
use super::duties::SchedulerOwner;
use super::policy::{Policy, PolicyView, Stealing, StealingWorker};
use super::policy_impl::{ErasedWorker, OtherPolicy, PolicyImpl};
use super::queues::runnable;
use super::ring::Queued;
use super::shared::Scheduler;
use crate::contain::contain;
use crate::sync::mutant;
use crate::task::Runnable;

/// A worker's side of the policy. It never leaves the worker's thread.
pub(crate) struct WorkerLocal<'a> {
    scheduler: &'a Scheduler,
    owner: &'a dyn SchedulerOwner,
    index: usize,
    side: Side<'a>,
    /// Where the worker waits, if it has a driver.
    driven: Option<DriverWait>,
}

/// The policy's data of this worker. Two variants, so that the hot path needs one comparison.
enum Side<'a> {
    Stealing(&'a Stealing, StealingWorker),
    /// `None`: there are no workers, and the owner runs what is ready.
    Erased(Option<(&'a OtherPolicy, Box<dyn ErasedWorker + 'a>)>),
}

impl<'a> WorkerLocal<'a> {
    pub(crate) fn new(
        scheduler: &'a Scheduler,
        owner: &'a dyn SchedulerOwner,
        index: usize,
    ) -> Self {
        let side = match &scheduler.policy {
            PolicyImpl::Stealing(stealing) => Side::Stealing(stealing, stealing.worker(index)),
            PolicyImpl::Other(other) => Side::Erased(Some((other, other.policy().worker(index)))),
            PolicyImpl::Elsewhere(_) => Side::Erased(None),
        };
        WorkerLocal {
            scheduler,
            owner,
            index,
            side,
            driven: None,
        }
    }

    /// Makes the worker wait in a driver.
    pub(crate) fn drive(&mut self) {
        self.driven = Some(DriverWait::new());
    }

    /// Returns where the worker waits, if it has a driver.
    pub(crate) fn driven(&self) -> Option<&DriverWait> {
        self.driven.as_ref()
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// Returns the duties of this worker.
    pub(crate) fn duties(&self) -> Duties<'_> {
        let duties = self.scheduler.duties(self.owner, self.index);
        duties.driven(self.driven.as_ref())
    }

    /// Enqueues an entry that was woken on this worker; `again`: it was woken during its own turn.
    #[inline]
    pub(crate) fn push(&self, entry: Queued, again: bool) {
        match &self.side {
            Side::Stealing(_, worker) => worker.local.push(entry, again),
            Side::Erased(_) => self.push_erased(runnable(entry), again),
        }
    }

    #[inline(never)]
    fn push_erased(&self, runnable: Runnable, again: bool) {
        match &self.side {
            Side::Erased(Some((other, worker))) => {
                other.enqueue(&self.scheduler.activity, || match again {
                    true => worker.resume_later(runnable),
                    false => worker.internal_enqueue(runnable),
                });
            }
            _ => self.owner.push_elsewhere(runnable, again),
        }
    }

    /// Returns whether this worker's queues and the injector are empty, so that it may keep running
    /// its current task.
    pub(crate) fn is_alone(&self) -> bool {
        match &self.side {
            Side::Stealing(_, worker) => worker.local.is_alone() && !self.owner.is_closing(),
            Side::Erased(_) => false,
        }
    }

    /// Takes the next runnable, or returns `None` if there are other duties. Parks until there is
    /// either.
    #[inline(always)]
    pub(super) fn dequeue(&self, duties: &Duties<'_>) -> Option<Runnable> {
        match &self.side {
            Side::Stealing(stealing, worker) => stealing.dequeue_own(worker, duties),
            Side::Erased(side) => {
                let (other, worker) = side.as_ref()?;
                other.dequeue_or_rest(self.index, &**worker, duties)
            }
        }
    }

    /// Takes the next runnable for a driven worker, which waits in its driver.
    ///
    /// Inlining [`dequeue`](WorkerLocal::dequeue) into a second loop would slow down the first one.
    #[inline(never)]
    pub(super) fn dequeue_driven(&self, duties: &Duties<'_>) -> Option<Runnable> {
        match &self.side {
            Side::Stealing(stealing, worker) => Policy::dequeue(*stealing, worker, duties),
            Side::Erased(side) => {
                let (other, worker) = side.as_ref()?;
                other.dequeue_or_rest(self.index, &**worker, duties)
            }
        }
    }

    /// Continues a wait in the driver (DRIVEN-1); returns a runnable that was found when the wait
    /// ended.
    pub(super) fn resume(&self, duties: &Duties<'_>) -> Option<Runnable> {
        match &self.side {
            Side::Stealing(stealing, worker) => stealing.resume(worker, duties),
            Side::Erased(side) => {
                let (other, _) = side.as_ref()?;
                other.parking.resume(self.index, duties);
                if !duties.is_waiting() {
                    duties.wakes_up();
                }
                None
            }
        }
    }

    /// Notes that no sleeper may know of the next deadline. The worker keeps it if it sleeps next, and
    /// otherwise hands it over before it runs anything else (`sleep.md`).
    pub(crate) fn set_unkept_deadline(&self) {
        // With another policy each worker that sleeps keeps it.
        if let Side::Stealing(_, worker) = &self.side {
            worker.set_unkept_deadline();
        }
    }

    /// Ends what this worker was about when its loop panicked: a sleep, a search, a watch.
    #[cold]
    pub(crate) fn recover(&self) {
        if mutant("a_panic_leaves_the_search") {
            return;
        }
        match &self.side {
            Side::Stealing(stealing, worker) => stealing.recover(worker, &self.duties()),
            Side::Erased(Some((other, _))) => other.parking.recover(self.index),
            Side::Erased(None) => {}
        }
        if let Some(driven) = &self.driven {
            driven.wake();
        }
        self.duties().wakes_up();
    }

    /// Gives up the deadline and the queue of this worker, since this thread stops being the
    /// worker.
    pub(crate) fn hand_over(&self) {
        let Side::Stealing(stealing, worker) = &self.side else {
            return;
        };
        if worker.take_unkept_deadline() {
            let duties = self.duties();
            let view = PolicyView::new(stealing, &duties);
            stealing.queues.sleep.hand_over(&view);
        }
        worker.local.disown();
    }

    /// Takes the queue back, since no other thread has taken over the worker.
    pub(crate) fn take_back(&self) {
        if let Side::Stealing(_, worker) = &self.side {
            worker.local.own();
        }
    }

    /// Takes all remaining runnables that only this worker can take.
    pub(crate) fn drain(&self) -> Vec<Runnable> {
        std::iter::from_fn(|| self.take_left()).collect()
    }

    /// Takes one of these.
    pub(super) fn take_left(&self) -> Option<Runnable> {
        match &self.side {
            Side::Stealing(_, worker) => worker.local.drain().next().map(runnable),
            Side::Erased(_) => self.dequeue(&self.duties().last()),
        }
    }

    /// Calls one of the policy's functions that observe turns.
    pub(crate) fn hook(&self, call: impl FnOnce(&dyn ErasedWorker)) {
        if let Side::Erased(Some((_, worker))) = &self.side {
            contain(|| call(&**worker));
        }
    }
}

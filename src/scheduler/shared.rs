//! The state that the workers of a runtime share: the policy, the counters, the shutdown queue.

use std::any::Any;
use std::sync::Arc;

use super::activity::ActivityCount;
use super::counters::Counters;
use super::duties::{Duties, SchedulerOwner};
use super::injector::Injector;
use super::policy::{Policy, Setup};
use super::policy_impl::PolicyImpl;
use super::queues::runnable;
use super::ring::Queued;
#[cfg(all(test, greenroom_loom))]
use super::{choose, policy::Stealing};
use crate::contain::contain;
use crate::task::Runnable;

/// A scheduler, which decides where a runnable is queued and which one a worker runs next.
pub(crate) struct Scheduler {
    pub(crate) policy: PolicyImpl,
    pub(crate) counters: Box<[Counters]>,
    /// In a shutdown: runnables that were queued before it, and those that are pushed from outside
    /// during it.
    pub(crate) shutdown_queue: Injector,
    pub(crate) activity: Arc<ActivityCount>,
}

impl Scheduler {
    /// Creates a scheduler for workers that are started later; returns why the policy cannot be
    /// used.
    pub(crate) fn new(
        policy: PolicyImpl,
        workers: usize,
        highest_priority: u8,
    ) -> Result<Self, String> {
        let activity = Arc::new(ActivityCount::new());
        let setup = Setup::new(workers, highest_priority, Some(activity.clone()));
        Ok(Scheduler::with(policy.start(setup)?, workers, activity))
    }

    /// Creates a scheduler with the default policy, whose workers are not counted as activity.
    #[cfg(all(test, greenroom_loom))]
    pub(crate) fn uncounted(workers: usize) -> Self {
        let policy = choose(Stealing::default()).start(Setup::new(workers, 0, None));
        let policy = policy.expect("the default policy goes with any runtime");
        Scheduler::with(policy, workers, Arc::new(ActivityCount::new()))
    }

    fn with(policy: PolicyImpl, workers: usize, activity: Arc<ActivityCount>) -> Self {
        let workers = match &policy {
            PolicyImpl::Elsewhere(_) => 1,
            _ => workers,
        };
        Scheduler {
            policy,
            counters: (0..workers).map(|_| Counters::default()).collect(),
            shutdown_queue: Injector::new(),
            activity,
        }
    }

    /// Takes the engine that the policy has brought to run all tasks instead of workers.
    pub(crate) fn take_engine(&mut self) -> Option<Box<dyn Any + Send + Sync>> {
        match &mut self.policy {
            PolicyImpl::Elsewhere(engine) => engine.take(),
            _ => None,
        }
    }

    /// Returns the duties of a worker.
    pub(crate) fn duties<'a>(&'a self, owner: &'a dyn SchedulerOwner, worker: usize) -> Duties<'a> {
        Duties::new(owner, &self.counters, worker)
    }

    /// Enqueues a runnable from outside the workers.
    pub(crate) fn push_outside(&self, owner: &dyn SchedulerOwner, runnable: Runnable) {
        match &self.policy {
            PolicyImpl::Stealing(stealing) => stealing.central_enqueue(runnable),
            PolicyImpl::Other(other) => {
                other.enqueue(&self.activity, || other.policy().central_enqueue(runnable));
            }
            PolicyImpl::Elsewhere(_) => owner.push_elsewhere(runnable, false),
        }
    }

    /// Wakes all parked workers, so that they check their duties.
    pub(crate) fn interrupt(&self) {
        match &self.policy {
            PolicyImpl::Stealing(stealing) => stealing.interrupt(),
            PolicyImpl::Other(other) => {
                contain(|| other.policy().interrupt());
                other.parking.wake_all();
            }
            PolicyImpl::Elsewhere(_) => {}
        }
    }

    /// Returns whether a runnable is queued outside the workers' own queues.
    pub(crate) fn has_left(&self) -> bool {
        self.has_late() || self.len_of_other().is_some_and(|len| len > 0)
    }

    /// Returns whether a runnable is left that came after the workers, or that no worker will take.
    pub(crate) fn has_late(&self) -> bool {
        self.shutdown_queue.len() > 0
            || match &self.policy {
                PolicyImpl::Stealing(stealing) => stealing.queues.has_outside(),
                PolicyImpl::Other(_) | PolicyImpl::Elsewhere(_) => false,
            }
    }

    /// Returns how many runnables a policy other than the default holds. It may never return them.
    pub(crate) fn len_of_other(&self) -> Option<usize> {
        match &self.policy {
            PolicyImpl::Stealing(_) | PolicyImpl::Elsewhere(_) => None,
            PolicyImpl::Other(other) => Some(other.len()),
        }
    }

    /// Takes all runnables from the default policy, on behalf of a stuck worker. Other policies
    /// cannot be emptied without a worker.
    pub(crate) fn take_all(&self) -> Vec<Queued> {
        match &self.policy {
            PolicyImpl::Stealing(stealing) => stealing.queues.take_all(),
            PolicyImpl::Other(_) | PolicyImpl::Elsewhere(_) => Vec::new(),
        }
    }

    /// Returns whether a runnable is queued that is not counted as activity.
    pub(crate) fn has_uncounted(&self) -> bool {
        self.shutdown_queue.len() > 0
            || match &self.policy {
                PolicyImpl::Stealing(stealing) => {
                    let queues = &stealing.queues;
                    queues.has_work() || queues.has_any(usize::MAX)
                }
                PolicyImpl::Other(_) | PolicyImpl::Elsewhere(_) => false,
            }
    }

    /// Takes one remaining runnable when no worker is left to run it.
    ///
    /// `are_workers_gone`: no worker exists. Before that, an erased policy is left to its workers:
    /// it may rely on one worker at a time for each index.
    pub(crate) fn take_left(
        &self,
        owner: &dyn SchedulerOwner,
        are_workers_gone: bool,
    ) -> Option<Runnable> {
        let left = self.shutdown_queue.pop().map(runnable);
        left.or_else(|| match &self.policy {
            PolicyImpl::Stealing(stealing) => stealing.queues.pop_outside().map(runnable),
            PolicyImpl::Other(other) if are_workers_gone => {
                (0..self.counters.len()).find_map(|index| {
                    let mut found = None;
                    contain(|| {
                        let worker = other.policy().worker(index);
                        found = other.dequeue(&*worker, &self.duties(owner, index).last());
                    });
                    found
                })
            }
            PolicyImpl::Other(_) | PolicyImpl::Elsewhere(_) => None,
        })
    }

    /// Returns the lengths of the injector, of each worker's queue, and of all other queues, as
    /// hints.
    pub(crate) fn lens(&self) -> (usize, Vec<usize>, usize) {
        match &self.policy {
            PolicyImpl::Stealing(stealing) => {
                let (injector, own) = stealing.queues.lens();
                (injector, own, self.shutdown_queue.len())
            }
            PolicyImpl::Other(other) => {
                let elsewhere = other.len() + self.shutdown_queue.len();
                (0, vec![0; self.counters.len()], elsewhere)
            }
            PolicyImpl::Elsewhere(_) => (0, vec![0], self.shutdown_queue.len()),
        }
    }
}

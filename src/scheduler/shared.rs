//! What the workers of a runtime share: the policy, their counters, the queue of a shutdown.

use std::sync::Arc;

use super::activity::ActivityCount;
use super::counters::Counters;
use super::duties::Duties;
use super::injector::Injector;
use super::owner::Owner;
use super::policy::{Policy, Setup};
use super::policy_impl::{Choice, PolicyImpl};
use super::queues::runnable;
use super::ring::Entry;
use crate::contain::contain;
use crate::task::Runnable;

/// Decides where a runnable goes, and which one a worker runs next.
pub(crate) struct Scheduler {
    pub(crate) policy: PolicyImpl,
    pub(crate) counters: Box<[Counters]>,
    /// In a shutdown: what was queued before it, and what comes from outside after that.
    pub(crate) shutdown_queue: Injector,
    pub(crate) activity: Arc<ActivityCount>,
}

impl Scheduler {
    /// Makes one for workers that have yet to be started; or says why the policy can't be.
    pub(crate) fn new(
        policy: Box<dyn Choice>,
        workers: usize,
        highest_priority: u8,
    ) -> Result<Self, String> {
        let activity = Arc::new(ActivityCount::new());
        let policy = policy.start(Setup {
            workers,
            highest_priority,
            activity: Some(activity.clone()),
        })?;
        Ok(Scheduler::with(policy, workers, activity))
    }

    /// Makes one without workers, whose owner takes what is ready.
    pub(crate) fn elsewhere() -> Self {
        Scheduler::with(PolicyImpl::Elsewhere, 1, Arc::new(ActivityCount::new()))
    }

    fn with(policy: PolicyImpl, workers: usize, activity: Arc<ActivityCount>) -> Self {
        Scheduler {
            policy,
            counters: (0..workers).map(|_| Counters::default()).collect(),
            shutdown_queue: Injector::new(),
            activity,
        }
    }

    pub(crate) fn duties<'a>(&'a self, owner: &'a dyn Owner, worker: usize) -> Duties<'a> {
        Duties::new(owner, &self.counters, worker)
    }

    /// Takes a runnable from outside the workers.
    pub(crate) fn push_outside(&self, owner: &dyn Owner, runnable: Runnable) {
        match &self.policy {
            PolicyImpl::Stealing(stealing) => stealing.central_enqueue(runnable),
            PolicyImpl::Other(other) => {
                other.enqueue(&self.activity, || other.policy().central_enqueue(runnable));
            }
            PolicyImpl::Elsewhere => owner.push_elsewhere(runnable, false),
        }
    }

    /// Has every worker that is parked look at its duties.
    pub(crate) fn interrupt(&self) {
        match &self.policy {
            PolicyImpl::Stealing(stealing) => stealing.interrupt(),
            PolicyImpl::Other(other) => {
                contain(|| other.policy().interrupt());
                other.parking.wake_all();
            }
            PolicyImpl::Elsewhere => {}
        }
    }

    /// A deadline has become the earliest; `by_worker`: on a worker, which owes it a keeper.
    pub(crate) fn notify_deadline(&self, by_worker: bool) {
        match &self.policy {
            PolicyImpl::Stealing(stealing) => stealing.queues.sleep.notify_deadline(by_worker),
            PolicyImpl::Other(_) | PolicyImpl::Elsewhere => self.interrupt(),
        }
    }

    /// Whether something is in no worker's queue.
    pub(crate) fn has_left(&self) -> bool {
        self.shutdown_queue.len() > 0
            || match &self.policy {
                PolicyImpl::Stealing(stealing) => stealing.queues.has_outside(),
                PolicyImpl::Other(other) => other.len() > 0,
                PolicyImpl::Elsewhere => false,
            }
    }

    /// How much a policy has, which may not give it, if it is not the default.
    pub(crate) fn len_of_other(&self) -> Option<usize> {
        match &self.policy {
            PolicyImpl::Stealing(_) | PolicyImpl::Elsewhere => None,
            PolicyImpl::Other(other) => Some(other.len()),
        }
    }

    /// Takes all that a worker that is stuck might have run, if it can be reached.
    pub(crate) fn take_all(&self) -> Vec<Entry> {
        match &self.policy {
            PolicyImpl::Stealing(stealing) => stealing.queues.take_all(),
            PolicyImpl::Other(_) | PolicyImpl::Elsewhere => Vec::new(),
        }
    }

    /// Whether something is queued that is not counted as activity.
    pub(crate) fn has_uncounted(&self) -> bool {
        self.shutdown_queue.len() > 0
            || match &self.policy {
                PolicyImpl::Stealing(stealing) => {
                    let queues = &stealing.queues;
                    queues.has_work() || queues.has_any(usize::MAX)
                }
                PolicyImpl::Other(_) | PolicyImpl::Elsewhere => false,
            }
    }

    /// Takes one of what is left when no worker is there any more to run it.
    ///
    /// `are_workers_gone`: as long as there is a worker, that takes what an erased policy has left, since such a
    /// policy may have one worker at a time for each index.
    pub(crate) fn take_left(&self, owner: &dyn Owner, are_workers_gone: bool) -> Option<Runnable> {
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
            PolicyImpl::Other(_) | PolicyImpl::Elsewhere => None,
        })
    }

    /// How much comes from outside, how much waits for each worker, and how much waits elsewhere; hints.
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
            PolicyImpl::Elsewhere => (0, vec![0], self.shutdown_queue.len()),
        }
    }
}

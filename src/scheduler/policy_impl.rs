//! The policy of a scheduler: the default is called directly, any other through a trait object.
//!
//! # Invariants
//! - POLICY-1: each runnable of an erased policy is counted as activity from before it is enqueued
//!   until its turn has ended or it is dropped (ACTIVITY-1).

use std::any::Any;

use super::activity::ActivityCount;
use super::duties::Duties;
use super::parking::Parking;
use super::policy::{Policy, Setup, Stealing};
use crate::contain::{attempt, contain};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::mutant;
use crate::task::{Runnable, TaskInfo};

/// A policy and its state.
pub(crate) enum PolicyImpl {
    Stealing(Stealing),
    Other(OtherPolicy),
    /// There are no workers: the owner runs what is ready, with this engine until it is taken.
    Elsewhere(Option<Box<dyn Any + Send + Sync>>),
}

/// Any policy other than the default.
pub(crate) struct OtherPolicy {
    policy: Box<dyn ErasedPolicy>,
    pub(super) parking: Parking,
    /// The number of runnables that the policy holds.
    queued: AtomicUsize,
}

impl OtherPolicy {
    pub(super) fn new(policy: Box<dyn ErasedPolicy>, workers: usize) -> Self {
        OtherPolicy {
            policy,
            parking: Parking::new(workers),
            queued: AtomicUsize::new(0),
        }
    }

    pub(super) fn policy(&self) -> &dyn ErasedPolicy {
        &*self.policy
    }

    /// Counts a runnable, lets `enqueue` add it to the policy, and wakes a worker.
    pub(super) fn enqueue(&self, activity: &ActivityCount, enqueue: impl FnOnce()) {
        if !mutant("counted_after_the_enqueue") {
            activity.inc();
        }
        // Release pairs with the Acquire in `len`. Before the enqueue, so that the count is never
        // too low.
        self.queued.fetch_add(1, Ordering::Release);
        contain(enqueue);
        if mutant("counted_after_the_enqueue") {
            activity.inc();
        }
        self.parking.notify();
    }

    /// Takes a runnable from the policy, and returns `None` if that panics.
    pub(super) fn dequeue(
        &self,
        worker: &dyn ErasedWorker,
        duties: &Duties<'_>,
    ) -> Option<Runnable> {
        let mut found = None;
        contain(|| found = worker.dequeue(duties));
        if found.is_some() {
            // Release pairs with the Acquire in `len`.
            self.queued.fetch_sub(1, Ordering::Release);
        }
        found
    }

    /// Takes a runnable from the policy; if there is none, parks the worker until there is one.
    #[inline(never)]
    pub(super) fn dequeue_or_rest(
        &self,
        me: usize,
        worker: &dyn ErasedWorker,
        duties: &Duties<'_>,
    ) -> Option<Runnable> {
        let dequeue = || {
            let found = self.dequeue(worker, duties);
            // The policy may have parked the worker.
            duties.wakes_up();
            found
        };
        dequeue().or_else(|| {
            // A call of `block_on` in the policy may have displaced this thread.
            if duties.is_displaced() || duties.must_rise() {
                return None;
            }
            self.parking.rest(me, duties, dequeue)
        })
    }

    /// Notes that the policy has dropped a runnable.
    pub(crate) fn lost_one(&self) {
        // Release pairs with the Acquire in `len`.
        self.queued.fetch_sub(1, Ordering::Release);
    }

    /// Returns how many runnables the policy holds.
    pub(crate) fn len(&self) -> usize {
        // Acquire pairs with the Release of each change.
        self.queued.load(Ordering::Acquire)
    }
}

/// Returns the policy that a builder was given, before the runtime exists. The default is recognised
/// by its type, so that it is called directly.
pub(crate) fn choose<P: Policy>(policy: P) -> PolicyImpl {
    let policy: Box<dyn Any> = Box::new(policy);
    match policy.downcast::<Stealing>() {
        Ok(stealing) => PolicyImpl::Stealing(*stealing),
        Err(other) => {
            let other = other.downcast::<P>().expect("it is a `P`");
            PolicyImpl::Other(OtherPolicy::new(other, 0))
        }
    }
}

impl PolicyImpl {
    /// Prepares the policy for a runtime; returns why it cannot be used.
    pub(super) fn start(self, mut setup: Setup) -> Result<PolicyImpl, String> {
        let mut policy = match self {
            PolicyImpl::Stealing(mut stealing) => {
                Policy::start(&mut stealing, &setup)?;
                return Ok(PolicyImpl::Stealing(stealing));
            }
            PolicyImpl::Other(other) => other.policy,
            PolicyImpl::Elsewhere(_) => unreachable!("no policy was chosen"),
        };
        setup.activity = None;
        let started = attempt(|| policy.start(&setup));
        started.unwrap_or_else(|panic| Err(format!("panicked: {panic}")))?;
        // A policy that delegates to a simulation has workers.
        if let Some((owner, engine)) = setup.engine.take()
            && owner == (&*policy as &dyn Any).type_id()
        {
            return Ok(PolicyImpl::Elsewhere(Some(engine)));
        }
        let other = OtherPolicy::new(policy, setup.workers);
        Ok(PolicyImpl::Other(other))
    }
}

/// [`Policy`] as an object-safe trait.
pub(super) trait ErasedPolicy: Any + Send + Sync {
    fn start(&mut self, setup: &Setup) -> Result<(), String>;
    fn central_enqueue(&self, runnable: Runnable);
    fn worker(&self, index: usize) -> Box<dyn ErasedWorker + '_>;
    fn interrupt(&self);
}

/// A policy's functions for one worker, as an object-safe trait.
pub(crate) trait ErasedWorker {
    fn internal_enqueue(&self, runnable: Runnable);
    fn resume_later(&self, runnable: Runnable);
    fn dequeue(&self, duties: &Duties<'_>) -> Option<Runnable>;
    fn before_resume(&self, task: &TaskInfo);
    fn after_resume(&self, task: &TaskInfo);
    fn after_completion(&self, task: &TaskInfo);
}

impl<P: Policy> ErasedPolicy for P {
    fn start(&mut self, setup: &Setup) -> Result<(), String> {
        Policy::start(self, setup)
    }

    fn central_enqueue(&self, runnable: Runnable) {
        Policy::central_enqueue(self, runnable);
    }

    fn worker(&self, index: usize) -> Box<dyn ErasedWorker + '_> {
        Box::new((self, Policy::worker(self, index)))
    }

    fn interrupt(&self) {
        Policy::interrupt(self);
    }
}

impl<P: Policy> ErasedWorker for (&P, P::Worker) {
    fn internal_enqueue(&self, runnable: Runnable) {
        self.0.internal_enqueue(&self.1, runnable);
    }

    fn resume_later(&self, runnable: Runnable) {
        self.0.resume_later(&self.1, runnable);
    }

    fn dequeue(&self, duties: &Duties<'_>) -> Option<Runnable> {
        self.0.dequeue(&self.1, duties)
    }

    fn before_resume(&self, task: &TaskInfo) {
        self.0.before_resume(&self.1, task);
    }

    fn after_resume(&self, task: &TaskInfo) {
        self.0.after_resume(&self.1, task);
    }

    fn after_completion(&self, task: &TaskInfo) {
        self.0.after_completion(&self.1, task);
    }
}

//! The policy of a runtime, as the rest of it sees it: the default is called directly, any other
//! through a table.
//!
//! # Invariants
//! - J1: each runnable that another policy has is counted in the pulse from before it is enqueued
//!   until its turn has ended or it is dropped (K1 in quiescence.rs).

use std::any::Any;

use super::current;
use super::inner::Inner;
use super::policy::{Duties, Policy, Setup, Simulated, Stealing};
use super::queues::runnable;
use super::rest::Rest;
use super::ring::Entry;
use super::simulation::{RunsOn, Simulation};
use crate::contain::{attempt, contain};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::mutant;
use crate::task::{Runnable, TaskInfo};

/// A policy and what it takes to use it.
pub(super) enum Chosen {
    Stealing(Stealing),
    Other(Other),
    /// Not a policy among workers, but one thread that does everything.
    Simulated(Box<Simulation>),
}

pub(super) struct Other {
    policy: Box<dyn Table>,
    rest: Rest,
    /// How many runnables it has.
    queued: AtomicUsize,
}

impl Other {
    fn enqueue(&self, inner: &Inner, enqueue: impl FnOnce()) {
        if !mutant("counted_after_the_enqueue") {
            inner.rise();
        }
        // Release pairs with the Acquire in `len`; before the enqueue, so it is never too few.
        self.queued.fetch_add(1, Ordering::Release);
        contain(enqueue);
        if mutant("counted_after_the_enqueue") {
            inner.rise();
        }
        self.rest.notify();
    }

    fn dequeue(&self, desk: &dyn Desk, duties: &Duties<'_>) -> Option<Runnable> {
        let mut found = None;
        contain(|| found = desk.dequeue(duties));
        if found.is_some() {
            // Release: as above.
            self.queued.fetch_sub(1, Ordering::Release);
        }
        found
    }

    /// The same; if there is nothing, rests until there is.
    #[inline(never)]
    fn dequeue_or_rest(&self, me: usize, desk: &dyn Desk, duties: &Duties<'_>) -> Option<Runnable> {
        let dequeue = || {
            let found = self.dequeue(desk, duties);
            // It may have parked in there.
            duties.wakes_up();
            found
        };
        dequeue().or_else(|| {
            // In there something may have waited in `block_on`, for which another thread came.
            let displaced = current::with(|place| place.is_some_and(|place| place.is_displaced()));
            if displaced || duties.must_return() {
                return None;
            }
            self.rest.rest(me, duties, dequeue)
        })
    }

    /// The policy has dropped one that it was given.
    pub(super) fn lost_one(&self) {
        // Release: as above.
        self.queued.fetch_sub(1, Ordering::Release);
    }

    pub(super) fn len(&self) -> usize {
        // Acquire pairs with the Releases above.
        self.queued.load(Ordering::Acquire)
    }
}

/// What a builder was given.
pub(super) trait Choice: Send + Sync {
    fn start(self: Box<Self>, setup: Setup) -> Result<Chosen, String>;

    fn is_simulated(&self) -> bool {
        false
    }
}

/// A policy of the user's, or one of ours that is not the default.
pub(super) struct Custom<P>(pub(super) P);

/// The default is known by its type, so that it is called directly; and so is the simulation.
pub(super) fn choose<P: Policy>(policy: P) -> Box<dyn Choice> {
    let policy: Box<dyn Any> = Box::new(policy);
    let policy = match policy.downcast::<Stealing>() {
        Ok(stealing) => return stealing,
        Err(other) => other,
    };
    match policy.downcast::<Simulated>() {
        Ok(simulated) => simulated,
        Err(other) => Box::new(Custom(*other.downcast::<P>().expect("it is a `P`"))),
    }
}

impl Choice for Stealing {
    fn start(mut self: Box<Self>, setup: Setup) -> Result<Chosen, String> {
        Policy::start(&mut *self, &setup)?;
        Ok(Chosen::Stealing(*self))
    }
}

impl Choice for Simulated {
    fn start(self: Box<Self>, _setup: Setup) -> Result<Chosen, String> {
        Ok(Chosen::Simulated(Box::new(Simulation::new(
            self.plan,
            self.script,
        ))))
    }

    fn is_simulated(&self) -> bool {
        true
    }
}

impl<P: Policy> Choice for Custom<P> {
    fn start(mut self: Box<Self>, mut setup: Setup) -> Result<Chosen, String> {
        setup.pulse = None;
        let started = attempt(|| self.0.start(&setup));
        started.unwrap_or_else(|panic| Err(format!("panicked: {panic}")))?;
        Ok(Chosen::Other(Other {
            policy: self,
            rest: Rest::new(setup.workers),
            queued: AtomicUsize::new(0),
        }))
    }
}

/// [`Policy`] without its types.
pub(super) trait Table: Send + Sync {
    fn central_enqueue(&self, runnable: Runnable);
    fn worker(&self, index: usize) -> Box<dyn Desk + '_>;
    fn interrupt(&self);
}

/// A worker's side of it.
pub(super) trait Desk {
    fn internal_enqueue(&self, runnable: Runnable);
    fn resume_later(&self, runnable: Runnable);
    fn dequeue(&self, duties: &Duties<'_>) -> Option<Runnable>;
    fn before_resume(&self, task: &TaskInfo);
    fn after_resume(&self, task: &TaskInfo);
    fn after_completion(&self, task: &TaskInfo);
}

impl<P: Policy> Table for Custom<P> {
    fn central_enqueue(&self, runnable: Runnable) {
        self.0.central_enqueue(runnable);
    }

    fn worker(&self, index: usize) -> Box<dyn Desk + '_> {
        Box::new((&self.0, self.0.worker(index)))
    }

    fn interrupt(&self) {
        self.0.interrupt();
    }
}

impl<P: Policy> Desk for (&P, P::Worker) {
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

impl Chosen {
    /// Takes a runnable from outside the workers.
    pub(super) fn push_outside(&self, inner: &Inner, runnable: Runnable) {
        match self {
            Chosen::Stealing(stealing) => stealing.central_enqueue(runnable),
            Chosen::Other(other) => {
                other.enqueue(inner, || other.policy.central_enqueue(runnable));
            }
            Chosen::Simulated(simulation) => {
                simulation.push(inner, runnable, false, &RunsOn::Workers);
            }
        }
    }

    /// Has every worker that is parked look at its duties.
    pub(super) fn interrupt(&self) {
        match self {
            Chosen::Stealing(stealing) => stealing.interrupt(),
            Chosen::Other(other) => {
                contain(|| other.policy.interrupt());
                other.rest.wake_all();
            }
            Chosen::Simulated(_) => {}
        }
    }

    /// A deadline has become the earliest; `by_worker`: on a worker, which owes it a keeper.
    pub(super) fn notify_deadline(&self, by_worker: bool) {
        match self {
            Chosen::Stealing(stealing) => stealing.queues.sleep.notify_deadline(by_worker),
            Chosen::Other(_) | Chosen::Simulated(_) => self.interrupt(),
        }
    }

    /// Whether something is in no worker's queue.
    pub(super) fn has_left(&self) -> bool {
        match self {
            Chosen::Stealing(stealing) => stealing.queues.has_outside(),
            Chosen::Other(other) => other.len() > 0,
            Chosen::Simulated(_) => false,
        }
    }

    /// How much a policy has, which may not give it, if it is not the default.
    pub(super) fn len_of_other(&self) -> Option<usize> {
        match self {
            Chosen::Stealing(_) | Chosen::Simulated(_) => None,
            Chosen::Other(other) => Some(other.len()),
        }
    }

    /// Takes all that a worker that is stuck might have run, if it can be reached.
    pub(super) fn take_all(&self) -> Vec<Entry> {
        match self {
            Chosen::Stealing(stealing) => stealing.queues.take_all(),
            Chosen::Other(_) | Chosen::Simulated(_) => Vec::new(),
        }
    }

    /// Whether something is queued that is not counted in the pulse.
    pub(super) fn has_uncounted(&self) -> bool {
        match self {
            Chosen::Stealing(stealing) => {
                let queues = &stealing.queues;
                queues.has_work() || queues.has_any(usize::MAX)
            }
            Chosen::Other(_) | Chosen::Simulated(_) => false,
        }
    }

    /// Takes one of what is left when no worker is there any more to run it.
    pub(super) fn take_left(&self, inner: &Inner) -> Option<Runnable> {
        match self {
            Chosen::Stealing(stealing) => stealing.queues.pop_outside().map(runnable),
            // A worker that is still there takes what is left itself, and there may be only one for
            // each index.
            Chosen::Other(_) if !inner.closing.are_workers_gone() => None,
            Chosen::Simulated(_) => None,
            Chosen::Other(other) => (0..inner.options().workers).find_map(|index| {
                let mut found = None;
                contain(|| {
                    let desk = other.policy.worker(index);
                    found = other.dequeue(&*desk, &Duties::last(inner, index));
                });
                found
            }),
        }
    }
}

/// What a worker's thread has of the policy.
pub(crate) struct Local<'a> {
    inner: &'a Inner,
    index: usize,
    own: Own<'a>,
}

/// Two variants, so that telling them apart is one comparison where it counts.
enum Own<'a> {
    Stealing(&'a Stealing, <Stealing as Policy>::Worker),
    Apart(Apart<'a>),
}

enum Apart<'a> {
    Other(&'a Other, Box<dyn Desk + 'a>),
    Simulated(&'a Simulation),
}

impl Apart<'_> {
    #[inline(never)]
    fn push(&self, inner: &Inner, runnable: Runnable, again: bool) {
        match self {
            Apart::Other(other, desk) => other.enqueue(inner, || match again {
                true => desk.resume_later(runnable),
                false => desk.internal_enqueue(runnable),
            }),
            Apart::Simulated(simulation) => {
                simulation.push(inner, runnable, again, &RunsOn::Workers);
            }
        }
    }

    #[inline(never)]
    fn dequeue(&self, index: usize, duties: &Duties<'_>) -> Option<Runnable> {
        match self {
            Apart::Other(other, desk) => other.dequeue_or_rest(index, &**desk, duties),
            Apart::Simulated(_) => unreachable!("no worker of a simulation asks"),
        }
    }
}

impl<'a> Local<'a> {
    pub(super) fn new(inner: &'a Inner, index: usize) -> Self {
        let own = match &inner.policy {
            Chosen::Stealing(stealing) => Own::Stealing(stealing, stealing.worker(index)),
            Chosen::Other(other) => Own::Apart(Apart::Other(other, other.policy.worker(index))),
            Chosen::Simulated(simulation) => Own::Apart(Apart::Simulated(simulation)),
        };
        Local { inner, index, own }
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// Takes an entry that was woken on this worker; `again`: in its own run.
    #[inline]
    pub(super) fn push(&self, entry: Entry, again: bool) {
        match &self.own {
            Own::Stealing(_, worker) => worker.local.push(entry, again),
            Own::Apart(apart) => apart.push(self.inner, runnable(entry), again),
        }
    }

    /// Whether nothing waits for this worker, and it need not look.
    pub(super) fn is_alone(&self) -> bool {
        match &self.own {
            Own::Stealing(_, worker) => worker.local.is_alone() && !self.inner.closing.has_begun(),
            Own::Apart(_) => false,
        }
    }

    /// The next runnable, or nothing when there are duties; parks until there is either.
    #[inline(always)]
    pub(super) fn dequeue(&self, duties: &Duties<'_>) -> Option<Runnable> {
        match &self.own {
            Own::Stealing(stealing, worker) => stealing.dequeue_own(worker, duties),
            Own::Apart(apart) => apart.dequeue(self.index, duties),
        }
    }

    /// A deadline came up that this worker keeps itself if it sleeps next.
    pub(super) fn owe_keeper(&self) {
        match &self.own {
            Own::Stealing(_, worker) => worker.owe_keeper(),
            Own::Apart(_) => self.inner.policy.interrupt(),
        }
    }

    /// This thread goes on without being the worker: it keeps no deadline any more, and no queue.
    pub(super) fn hand_over(&self) {
        let Own::Stealing(stealing, worker) = &self.own else {
            return;
        };
        if worker.owed_keeper() {
            let duties = Duties::new(self.inner, self.index);
            let view = super::policy::Seen::new(stealing, &duties);
            stealing.queues.sleep.hand_over(&view);
        }
        worker.local.disown();
    }

    /// Nobody has taken it over.
    pub(super) fn take_back(&self) {
        if let Own::Stealing(_, worker) = &self.own {
            worker.local.own();
        }
    }

    /// Takes all that is left for this worker, and for nobody else.
    pub(super) fn drain(&self) -> Vec<Runnable> {
        match &self.own {
            Own::Stealing(_, worker) => worker.local.drain().map(runnable).collect(),
            Own::Apart(Apart::Other(..)) => {
                let duties = Duties::last(self.inner, self.index);
                std::iter::from_fn(|| self.dequeue(&duties)).collect()
            }
            Own::Apart(Apart::Simulated(_)) => Vec::new(),
        }
    }

    /// Calls one of the functions of the policy that are told of runs.
    pub(super) fn hook(&self, call: impl FnOnce(&dyn Desk)) {
        if let Own::Apart(Apart::Other(_, desk)) = &self.own {
            contain(|| call(&**desk));
        }
    }
}

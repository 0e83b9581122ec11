//! The link between a restartable actor and its supervisor.
//!
//! The supervisor gives orders, and the actor reports what it did. An actor with a bond begins no
//! incarnation unless it was ordered to run.
//!
//! # Invariants
//! - BOND-1: the supervisor gives no order while [`BondOrder::Wait`] is not answered. The actor answers
//!   each with one [`BondReport::Down`], or ends.
//! - BOND-2: an actor that reports a failure has no order any more, unless it was ordered to wait
//!   meanwhile. So an order to run or to give up is given after that report was seen.

use std::any::Any;
use std::panic::RefUnwindSafe;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use crate::actor::context::Context;
use crate::actor::deferred::after_effects;
use crate::contain::KeptWaker;
use crate::runtime;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU32, Ordering};

/// What a supervisor wants of an actor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BondOrder {
    /// Drop the incarnation, if there is one, report that, and begin no other.
    Wait = 1,
    /// Have an incarnation.
    Run,
    /// End with the last result. It is for an actor that waits after its own failure.
    GiveUp,
}

/// No order: the actor waits for the next one.
const NONE: u32 = 0;

/// What an actor reports to its supervisor.
#[derive(Debug)]
pub(crate) enum BondReport {
    /// A new incarnation begins: the one with this number.
    Starting(u64),
    /// The incarnation was polled for the first time.
    Started,
    /// The actor has no incarnation any more, as ordered. Its context is back.
    Down,
    /// The incarnation has ended, with this text if it panicked. Its context is back, and the actor
    /// waits. By its own rules it is to be restarted after this delay; `None` if its own intensity
    /// or its delays are used up.
    Failed(Option<Arc<str>>, Option<Duration>),
}

/// The link, which the supervisor and the actor share.
pub(crate) struct Bond {
    /// The last order, or [`NONE`].
    order: AtomicU32,
    /// The waker of the actor, once it was polled.
    waker: Mutex<Option<Arc<KeptWaker>>>,
    report: Arc<dyn Fn(BondReport) + Send + Sync>,
}

// Its lock is not held while user code runs.
impl RefUnwindSafe for Bond {}

impl Bond {
    /// Creates the bond of an actor that waits. `report` is called after the effects
    /// of the actor's turn so far.
    pub(crate) fn new(report: impl Fn(BondReport) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Bond {
            order: AtomicU32::new(NONE),
            waker: Mutex::new(None),
            report: Arc::new(report),
        })
    }

    /// Takes the bond of this actor, if it has a supervisor.
    pub(super) fn of<M>(context: &Context<M>) -> Option<Arc<Self>> {
        let bond: Arc<dyn Any + Send + Sync> = context.core().mailbox.take_bond()?;
        bond.downcast().ok()
    }

    /// Gives an order. It replaces the one before.
    pub(crate) fn give(&self, order: BondOrder) {
        runtime::context::apply_effects();
        // Release pairs with the Acquire in `order`. The lock orders this with `register`: either
        // the actor sees the order, or its waker is here.
        self.order.store(order as u32, Ordering::Release);
        let waker = self.waker.lock().clone();
        if let Some(waker) = waker {
            waker.wake_by_ref();
        }
    }

    /// Returns whether this is the last order.
    #[inline]
    pub(super) fn is_ordered(&self, order: BondOrder) -> bool {
        // Acquire pairs with the Release in `give`.
        self.order.load(Ordering::Acquire) == order as u32
    }

    /// Stores the waker of the actor, for later orders. Once is enough: all turns of a cell have the
    /// same waker (`Header::waker`).
    pub(super) fn register(&self, waker: &Waker) {
        if self.waker.lock().is_none() {
            let waker = Arc::new(KeptWaker::new(waker));
            *self.waker.lock() = Some(waker);
        }
    }

    /// Drops the waker, since the actor ends.
    pub(super) fn leave(&self) {
        let waker = self.waker.lock().take();
        drop(waker);
    }

    /// Reports a failure, after which the actor waits for the next order.
    pub(super) fn fail(&self, failure: BondReport) {
        self.fulfil(BondOrder::Run);
        self.report(failure);
    }

    /// Reports that the actor has no incarnation, if that was ordered and not reported yet.
    pub(super) fn answer(&self) {
        if self.fulfil(BondOrder::Wait) {
            self.report(BondReport::Down);
        }
    }

    /// Ends this order. Returns false if the last order was another one.
    fn fulfil(&self, order: BondOrder) -> bool {
        // Acquire, as in `order`. A report that follows publishes what was done.
        self.order
            .compare_exchange(order as u32, NONE, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    pub(super) fn report(&self, report: BondReport) {
        let tell = self.report.clone();
        after_effects(move || tell(report));
    }
}

//! The link between a restartable actor and its supervisor.
//!
//! The supervisor gives orders, and the actor reports what it did. An actor with a bond begins no
//! incarnation unless its last order was [`Order::Run`].

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use crate::mailbox::wake_foreign;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU32, Ordering};

/// What a supervisor wants of an actor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// Drop the incarnation, if there is one, and begin no other.
    Wait,
    /// Have an incarnation.
    Run,
    /// End with the last result. It is for an actor that waits after its own failure.
    GiveUp,
}

/// What an actor tells its supervisor.
#[derive(Debug)]
pub(crate) enum Report {
    /// A new incarnation was polled for the first time. It is the one with this number.
    Begun(u64),
    /// The incarnation was dropped by order, and its context is back.
    Down,
    /// The incarnation has ended, with this text if it panicked. Its context is back, and the actor
    /// waits. By its own rules it is to be restarted after this delay; `None` if its own intensity
    /// is used up.
    Failed(Option<Arc<str>>, Option<Duration>),
}

/// The link, which the supervisor and the actor share.
pub(crate) struct Bond {
    order: AtomicU32,
    /// The waker of the actor, once it was polled.
    waker: Mutex<Option<Waker>>,
    report: Box<dyn Fn(Report) + Send + Sync>,
}

impl Bond {
    /// Creates the bond of an actor that waits. `report` is called in the actor's turn.
    pub(crate) fn new(report: impl Fn(Report) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Bond {
            order: AtomicU32::new(Order::Wait as u32),
            waker: Mutex::new(None),
            report: Box::new(report),
        })
    }

    /// Gives an order. It replaces the one before.
    pub(crate) fn give(&self, order: Order) {
        // Release pairs with the Acquire in `order`. The lock orders this with `register`: either
        // the actor sees the order, or its waker is here.
        self.order.store(order as u32, Ordering::Release);
        let waker = self.waker.lock().clone();
        if let Some(waker) = waker {
            wake_foreign(waker);
        }
    }

    /// Returns the last order.
    #[inline]
    pub(super) fn order(&self) -> Order {
        // Acquire pairs with the Release in `give`.
        match self.order.load(Ordering::Acquire) {
            order if order == Order::Run as u32 => Order::Run,
            order if order == Order::Wait as u32 => Order::Wait,
            _ => Order::GiveUp,
        }
    }

    /// Stores the waker of the actor, for later orders.
    pub(super) fn register(&self, waker: &Waker) {
        let mut stored = self.waker.lock();
        if stored.is_none() {
            *stored = Some(waker.clone());
        }
    }

    /// Drops the waker, since the actor ends.
    pub(super) fn leave(&self) {
        let waker = self.waker.lock().take();
        drop(waker);
    }

    /// Reports a failure, and waits for the next order.
    pub(super) fn fail(&self, failure: Report) {
        // Relaxed: the next order is given after the report.
        self.order.store(Order::Wait as u32, Ordering::Relaxed);
        self.report(failure);
    }

    pub(super) fn report(&self, report: Report) {
        (self.report)(report);
    }
}

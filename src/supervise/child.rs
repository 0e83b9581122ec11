//! A child as its supervisor sees it: an actor, or another supervisor, and its status.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::actor::{Address, Bond, BondOrder, Handle, Join, Supervised};
use crate::contain::contain;
use crate::instant::Instant;
use crate::sync::Mutex;
use crate::task::TaskInfo;

/// A child without its message type.
pub(super) trait ErasedChild: Send + Sync {
    fn info(&self) -> TaskInfo;

    fn order(&self, order: BondOrder);

    /// Asks the child to end by itself. One that waits does so once it was ordered to run.
    fn stop(&self);

    /// Asks the child to end after the message in hand.
    fn stop_now(&self);

    fn kill(&self);

    /// Waits until the child has ended, and returns its number.
    fn ended(&self, number: u64) -> BoxFuture<'static, u64>;

    /// Joins a child that has ended, or the actors for which a supervisor has given up. A fault that
    /// is not joined is reported when the last pointer to its actor is dropped.
    fn take_fault(&self);

    /// Returns the actors whose faults [`take_fault`](ErasedChild::take_fault) joins. None of them is a supervisor, so
    /// no chain of these pointers is as long as a tree is deep.
    fn faulted(self: Arc<Self>) -> Vec<Arc<dyn ErasedChild>>;

    /// Returns whether the child is killed after the grace period. A supervisor is not: its own
    /// children are.
    fn has_grace(&self) -> bool;
}

/// Waits until an actor has ended, and returns the number. This does not keep the actor open.
pub(super) fn ended<M: Send + 'static>(
    address: &Address<M>,
    number: u64,
) -> BoxFuture<'static, u64> {
    let address = address.downgrade();
    Box::pin(async move {
        address.closed().await;
        number
    })
}

/// An actor in a tree. The address keeps it open.
pub(super) struct ActorChild<M, T> {
    address: Address<M>,
    bond: Arc<Bond>,
    /// The right to its result, until it was taken.
    join: Mutex<Option<Join<M, T>>>,
}

impl<M, T> ActorChild<M, T> {
    pub(super) fn new(child: Handle<M, T>, bond: Arc<Bond>) -> Arc<Self> {
        Arc::new(ActorChild {
            address: child.address(),
            bond,
            join: Mutex::new(Some(child.join())),
        })
    }
}

impl<M: Send + 'static, T: Send + 'static> ErasedChild for ActorChild<M, T> {
    fn info(&self) -> TaskInfo {
        self.address.info()
    }

    fn order(&self, order: BondOrder) {
        self.bond.give(order);
    }

    fn stop(&self) {
        self.address.stop();
    }

    fn stop_now(&self) {
        self.address.stop_now();
    }

    fn kill(&self) {
        self.address.kill();
    }

    fn ended(&self, number: u64) -> BoxFuture<'static, u64> {
        ended(&self.address, number)
    }

    fn take_fault(&self) {
        let join = self.join.lock().take();
        contain(|| drop(join.and_then(Join::now_or_never)));
    }

    fn faulted(self: Arc<Self>) -> Vec<Arc<dyn ErasedChild>> {
        vec![self]
    }

    fn has_grace(&self) -> bool {
        true
    }
}

/// A child of a supervisor, as [`Supervisor::children`](super::Supervisor::children) lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChildStatus {
    /// The [`id`](crate::Address::id) of its address.
    pub id: u64,
    /// Its [`name`](crate::Address::name), if it has one.
    pub name: Option<String>,
    /// The [number](crate::Context::incarnation_number) of its incarnation: 0 for the first.
    pub incarnation: u64,
    /// How often it was restarted, for any reason. A restart counts when it begins, so one that a
    /// back-off delays does not count yet.
    pub restarts: u64,
    /// What it does now.
    pub state: ChildState,
    /// The text of its last fault, if it had any.
    pub last_fault: Option<String>,
}

/// What a child of a supervisor does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChildState {
    /// It waits to begin for the first time.
    Starting,
    /// It runs. A child that begins is in this state before it answers anything.
    Running,
    /// It waits before its restart.
    BackingOff {
        /// The time that is left.
        left: Duration,
    },
    /// Its last incarnation ends, or the next one is about to begin.
    Restarting,
    /// It was asked to stop.
    Stopping,
}

/// The status of a child, as the supervisor keeps it.
pub(super) struct ChildRecord {
    pub(super) info: TaskInfo,
    pub(super) incarnation: u64,
    pub(super) restarts: u64,
    pub(super) state: ChildState,
    /// The end of its back-off, while it has one.
    pub(super) until: Option<Instant>,
    last_fault: Option<Arc<str>>,
    has_begun: bool,
    /// It has reported a failure, and has not begun since.
    pub(super) has_failed: bool,
    /// It was ordered to begin, and to do nothing else.
    pub(super) is_to_begin: bool,
    _supervised: Supervised,
}

impl ChildRecord {
    /// Describes a child of the supervisor with this number, which has just been added.
    pub(super) fn new(info: TaskInfo, supervisor: u64) -> Self {
        ChildRecord {
            _supervised: Supervised::new(info.id(), supervisor),
            info,
            incarnation: 0,
            restarts: 0,
            state: ChildState::Starting,
            until: None,
            last_fault: None,
            has_begun: false,
            has_failed: false,
            is_to_begin: false,
        }
    }

    /// Notes that the incarnation with this number begins.
    ///
    /// It may answer before the supervisor has seen its report, so its state changes here. An order
    /// that was given meanwhile goes before.
    pub(super) fn begin(&mut self, incarnation: u64) {
        self.incarnation = incarnation;
        self.restarts += u64::from(self.has_begun);
        (self.has_begun, self.has_failed) = (true, false);
        if self.is_to_begin {
            self.state = ChildState::Running;
        }
    }

    /// Notes that the incarnation has failed, with this text if it panicked.
    pub(super) fn fail(&mut self, text: Option<&Arc<str>>) {
        self.has_failed = true;
        self.last_fault = text.cloned().or(self.last_fault.take());
    }

    pub(super) fn public(&self) -> ChildStatus {
        ChildStatus {
            id: self.info.id(),
            name: self.info.name().map(Into::into),
            incarnation: self.incarnation,
            restarts: self.restarts,
            state: match (self.state, self.left()) {
                (ChildState::Restarting, Some(left)) => ChildState::BackingOff { left },
                (state, _) => state,
            },
            last_fault: self.last_fault.as_deref().map(Into::into),
        }
    }

    /// Returns what is left of the back-off.
    fn left(&self) -> Option<Duration> {
        let left = self.until? - Instant::now();
        (!left.is_zero()).then_some(left)
    }
}

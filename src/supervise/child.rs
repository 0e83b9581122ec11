//! A child as its supervisor sees it: an actor, or another supervisor.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::actor::{Address, Bond, BondOrder, Handle, Join};
use crate::contain::contain;
use crate::sync::Mutex;
use crate::task::TaskInfo;

/// A child without its message type.
pub(super) trait ErasedChild: Send + Sync {
    fn info(&self) -> TaskInfo;

    fn order(&self, order: BondOrder);

    /// Asks the child to end by itself. One that waits does so once it was ordered to run.
    fn stop(&self);

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

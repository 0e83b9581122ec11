//! The stopped world: every value behind a lock, for a task that runs alone.
//!
//! No task of a looper has begun and no guard is left, so each value is in its slot. The world
//! takes out those that it needs, and puts them back at its end. They are in a tree that only grows
//! while it is shared, so that several can be borrowed at once.

use std::any::Any;
use std::cell::OnceCell;
use std::sync::Arc;

use super::access::{Access, Requested};
use super::error::{LockDetail, LockError};
use super::lock::Guarded;
use super::place::{Place, Slot};
use super::want::Wants;

/// The stopped world, as a task of [`stop_the_world`](super::Controller::stop_the_world) gets it.
///
/// It reaches every value of the controller, whether a looper keeps its lock or not.
pub struct World {
    controller: u64,
    values: Branch,
}

/// A value that the world has taken out, and those that came after it.
#[derive(Default)]
struct Branch(OnceCell<Box<Node>>);

struct Node {
    lock: u64,
    value: Box<dyn Taken>,
    branches: [Branch; FAN_OUT],
}

const FAN_OUT: usize = 16;

/// A value that goes back into its slot when it is dropped.
trait Taken: Any + Send {
    fn value(&self) -> &dyn Any;
    fn value_mut(&mut self) -> &mut dyn Any;
}

struct FromSlot<T: Send + Sync + 'static> {
    place: Arc<Place<Slot<T>>>,
    value: Option<Arc<T>>,
}

impl<T: Send + Sync> Taken for FromSlot<T> {
    fn value(&self) -> &dyn Any {
        let value = self.value.as_deref();
        value.expect("a value is here until the end")
    }

    fn value_mut(&mut self) -> &mut dyn Any {
        let value = self.value.as_mut().and_then(Arc::get_mut);
        value.expect("the world has the only pointer to a value")
    }
}

impl<T: Send + Sync> Drop for FromSlot<T> {
    fn drop(&mut self) {
        self.place.value.put(self.value.take());
    }
}

impl World {
    pub(super) fn new(controller: u64) -> Self {
        World {
            controller,
            values: Branch::default(),
        }
    }

    /// Returns a value.
    ///
    /// # Errors
    /// [`LockError::Closed`] if the lock was closed and its value given back, and
    /// [`LockError::Foreign`] if it belongs to another controller.
    pub fn get<T: Send + Sync>(&self, guarded: &Guarded<T>) -> Result<&T, LockError> {
        self.judge(guarded.place())?;
        let node = self
            .values
            .node(guarded.place(), guarded.place().identity.id);
        let value = node.and_then(|node| node.value.value().downcast_ref());
        value.ok_or_else(|| LockError::Closed(detail(guarded.place())))
    }

    /// Returns a value, to change it.
    ///
    /// # Errors
    /// As [`get`](World::get).
    pub fn get_mut<T: Send + Sync>(&mut self, guarded: &Guarded<T>) -> Result<&mut T, LockError> {
        self.get(guarded)?;
        let place = guarded.place();
        let node = self.values.node_mut(place.identity.id);
        let value = node.and_then(|node| node.value.value_mut().downcast_mut());
        value.ok_or_else(|| LockError::Closed(detail(place)))
    }

    /// Calls `task` with several values at once, some of them to be changed.
    ///
    /// ```
    /// use greenroom::looper::Controller;
    ///
    /// greenroom::run(async {
    ///     let controller = Controller::builder().build().unwrap();
    ///     let (left, right) = (controller.guarded(1), controller.guarded(2));
    ///     let swap = controller.stop_the_world(move |world| {
    ///         let both = (left.exclusive(), right.exclusive());
    ///         world.with(both, |(left, right)| std::mem::swap(left, right))?;
    ///         Ok::<_, greenroom::looper::LockError>((*world.get(&left)?, *world.get(&right)?))
    ///     });
    ///     assert_eq!(swap.unwrap().await.unwrap(), Ok((2, 1)));
    /// });
    /// ```
    ///
    /// # Errors
    /// As [`get`](World::get), and [`LockError::AlreadyHeld`] if a lock is twice in the set. Then
    /// `task` is not called.
    pub fn with<A: Access, R>(
        &mut self,
        access: A,
        task: impl FnOnce(A::Given<'_>) -> R,
    ) -> Result<R, LockError> {
        // All values go back into their slots.
        self.values = Branch::default();
        let mut wants = Requested(Wants::default());
        access.add_to(&mut wants);
        let wants = wants.0.as_slice();
        for (at, want) in wants.iter().enumerate() {
            self.judge(&*want.place)?;
            let is_same = |other: &super::want::Want| Arc::ptr_eq(&other.place, &want.place);
            if wants[..at].iter().any(is_same) {
                return Err(LockError::AlreadyHeld(detail(&*want.place)));
            }
            if want.place.state().is_over {
                return Err(LockError::Closed(detail(&*want.place)));
            }
        }
        let mut owned = access.open(None);
        Ok(task(A::give(&mut owned)))
    }

    fn judge<V: ?Sized>(&self, place: &Place<V>) -> Result<(), LockError> {
        if place.controller == self.controller {
            return Ok(());
        }
        Err(LockError::Foreign(detail(place)))
    }
}

fn detail<V: ?Sized>(place: &Place<V>) -> LockDetail {
    LockDetail::new(&"the world", &place.identity)
}

impl Branch {
    /// Returns the node of a lock, whose value is taken out of its slot if need be. Returns `None`
    /// if the slot is empty.
    fn node<T: Send + Sync + 'static>(
        &self,
        place: &Arc<Place<Slot<T>>>,
        path: u64,
    ) -> Option<&Node> {
        if let Some(node) = self.0.get() {
            if node.lock == place.identity.id {
                return Some(node);
            }
            return node.branches[path as usize % FAN_OUT].node(place, path / FAN_OUT as u64);
        }
        let value = place.value.take()?;
        Some(self.0.get_or_init(|| {
            Box::new(Node {
                lock: place.identity.id,
                value: Box::new(FromSlot {
                    place: place.clone(),
                    value: Some(value),
                }),
                branches: Default::default(),
            })
        }))
    }

    /// Returns the node of a lock whose value was taken out.
    fn node_mut(&mut self, lock: u64) -> Option<&mut Node> {
        let (mut branch, mut path) = (self, lock);
        loop {
            let node = branch.0.get_mut()?;
            if node.lock == lock {
                return Some(node);
            }
            branch = &mut node.branches[path as usize % FAN_OUT];
            path /= FAN_OUT as u64;
        }
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

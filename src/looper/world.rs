//! The stopped world: every value behind a lock, for a task that runs alone.
//!
//! No task of a looper has begun and no guard is left, so each value is in its lock. The world
//! takes out those that it needs, and puts them back at its end. They are in a tree that only grows
//! while it is shared, so that several can be borrowed at once.

use std::any::Any;
use std::cell::OnceCell;
use std::sync::Arc;

use super::cell::LockCell;
use super::claim::Access;
use super::error::{LockDetail, LockError};
use super::handle::set_of;
use super::lock::Guarded;
use super::monitor::Monitor;

/// The stopped world, as a task of [`stop_the_world`](super::Controller::stop_the_world) gets it.
///
/// It reaches every value of the controller, whether a looper keeps its lock or not.
pub struct World {
    controller: u64,
    values: OnceCell<Box<WorldValue>>,
}

/// A value that the world has taken out, and those that came after it. At its end it goes back.
struct WorldValue {
    lock: Arc<LockCell>,
    value: Option<Arc<dyn Any + Send + Sync>>,
    branches: [OnceCell<Box<WorldValue>>; FAN_OUT],
}

const FAN_OUT: usize = 16;

impl World {
    pub(super) fn new(monitor: &Monitor) -> Self {
        World {
            controller: monitor.id,
            values: OnceCell::new(),
        }
    }

    /// Returns a value.
    ///
    /// # Errors
    /// [`LockError::Closed`] if the lock was closed and its value given back, and
    /// [`LockError::Foreign`] if it belongs to another controller.
    pub fn get<T: Send + Sync>(&self, guarded: &Guarded<T>) -> Result<&T, LockError> {
        let lock = guarded.cell();
        self.judge(lock)?;
        let value = taken(&self.values, lock).and_then(|it| it.value.as_ref()?.downcast_ref());
        value.ok_or_else(|| LockError::Closed(detail(lock)))
    }

    /// Returns a value, to change it.
    ///
    /// # Errors
    /// As [`get`](World::get).
    pub fn get_mut<T: Send + Sync>(&mut self, guarded: &Guarded<T>) -> Result<&mut T, LockError> {
        self.get(guarded)?;
        let lock = guarded.cell();
        let value = taken_mut(&mut self.values, lock.id).map(|it| {
            let value = it.value.as_mut().and_then(Arc::get_mut);
            value.expect("the world has the only pointer to a value")
        });
        let value = value.and_then(|value| value.downcast_mut());
        value.ok_or_else(|| LockError::Closed(detail(lock)))
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
        // All values go back into their locks.
        self.values = OnceCell::new();
        let set = set_of(&access);
        for (at, want) in set.iter().enumerate() {
            let lock = &want.lock;
            self.judge(lock)?;
            if at > 0 && Arc::ptr_eq(&set[at - 1].lock, lock) {
                return Err(LockError::AlreadyHeld(detail(lock)));
            }
            if lock.with(|state| state.is_over) {
                return Err(LockError::Closed(detail(lock)));
            }
        }
        let mut owned = access.open(None);
        Ok(task(A::give(&mut owned)))
    }

    fn judge(&self, lock: &LockCell) -> Result<(), LockError> {
        if lock.monitor.id == self.controller {
            return Ok(());
        }
        Err(LockError::Foreign(detail(lock)))
    }
}

fn detail(lock: &LockCell) -> LockDetail {
    LockDetail::new(&"the world", lock)
}

/// Returns the value of a lock, which is taken out of it if need be. Returns `None` if the lock has
/// none any more.
fn taken<'a>(root: &'a OnceCell<Box<WorldValue>>, lock: &Arc<LockCell>) -> Option<&'a WorldValue> {
    // The digits of the lock's number lead through the tree, which only grows.
    let (mut branch, mut path) = (root, lock.id);
    while let Some(taken) = branch.get() {
        if Arc::ptr_eq(&taken.lock, lock) {
            return Some(taken);
        }
        branch = &taken.branches[path as usize % FAN_OUT];
        path /= FAN_OUT as u64;
    }
    let value = lock.take_value()?;
    Some(branch.get_or_init(|| {
        Box::new(WorldValue {
            lock: lock.clone(),
            value: Some(value),
            branches: Default::default(),
        })
    }))
}

/// Returns the value of a lock that was taken out.
fn taken_mut(root: &mut OnceCell<Box<WorldValue>>, lock: u64) -> Option<&mut WorldValue> {
    let (mut branch, mut path) = (root, lock);
    loop {
        let taken = branch.get_mut()?;
        if taken.lock.id == lock {
            return Some(taken);
        }
        branch = &mut taken.branches[path as usize % FAN_OUT];
        path /= FAN_OUT as u64;
    }
}

impl Drop for WorldValue {
    fn drop(&mut self) {
        self.lock.put(self.value.take());
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

//! Locks and guarded values, as programs hold them.
//!
//! A lock lives as long as a handle, a holder or a waiter has it.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::cell::LockCell;
use super::claim::{Claim, Exclusive, Shared};
use super::error::{LockDetail, LockError};
use super::job::with_current;
use super::monitor::Monitor;
use super::table::LooperTable;
use crate::sync::{Mutex, mutant};

/// A lock of a [`Controller`](super::Controller) without a value.
///
/// Any number of loopers hold it shared, or one holds it exclusively. A clone is the same lock.
#[derive(Clone)]
pub struct Lock(Arc<LockCell>);

/// A value behind a lock of a [`Controller`](super::Controller).
///
/// A clone is the same lock and the same value.
pub struct Guarded<T: Send + Sync + 'static> {
    lock: Lock,
    values: PhantomData<fn() -> T>,
}

impl Lock {
    pub(super) fn new(monitor: &Arc<Monitor>, name: Option<Box<str>>) -> Self {
        Lock(LockCell::new(monitor.clone(), name, None))
    }

    pub(super) fn cell(&self) -> &Arc<LockCell> {
        &self.0
    }

    /// Requests the lock together with other loopers.
    pub fn shared(&self) -> Claim<()> {
        Claim::new(&self.0, false)
    }

    /// Requests the lock for one looper alone.
    pub fn exclusive(&self) -> Claim<()> {
        Claim::new(&self.0, true)
    }

    /// Requires that the looper keeps the lock, in either mode.
    pub fn held_shared(&self) -> Claim<()> {
        self.shared().held()
    }

    /// Requires that the looper keeps the lock for itself.
    pub fn held_exclusive(&self) -> Claim<()> {
        self.exclusive().held()
    }

    /// Closes the lock, and waits until it is free.
    ///
    /// The tasks in its line have it before. Later requests get [`LockError::Closed`]. A second
    /// call returns at once. So does a call by a task whose looper holds the lock, or by one of the
    /// world.
    ///
    /// # Cancel safety
    /// The lock stays closed when the future is dropped.
    #[doc(alias = "safeDelete")]
    pub async fn close(&self) {
        if close(&self.0) && !is_own(&self.0) {
            is_over(&self.0, || ()).await;
        }
    }

    /// Returns the number of the lock, which no other lock or looper of its controller has.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Returns the name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }
}

impl<T: Send + Sync + 'static> Guarded<T> {
    pub(super) fn new(monitor: &Arc<Monitor>, name: Option<Box<str>>, value: T) -> Self {
        let value: Arc<dyn Any + Send + Sync> = Arc::new(value);
        Guarded {
            lock: Lock(LockCell::new(monitor.clone(), name, Some(value))),
            values: PhantomData,
        }
    }

    pub(super) fn cell(&self) -> &Arc<LockCell> {
        self.lock.cell()
    }

    /// Requests the value together with other loopers.
    pub fn shared(&self) -> Claim<Shared<T>> {
        Claim::new(self.cell(), false)
    }

    /// Requests the value for one looper alone.
    pub fn exclusive(&self) -> Claim<Exclusive<T>> {
        Claim::new(self.cell(), true)
    }

    /// Requests a value whose lock the looper keeps, in either mode.
    pub fn held_shared(&self) -> Claim<Shared<T>> {
        self.shared().held()
    }

    /// Requests a value whose lock the looper keeps for itself.
    pub fn held_exclusive(&self) -> Claim<Exclusive<T>> {
        self.exclusive().held()
    }

    /// Closes the lock, waits until it is free, and returns the value.
    ///
    /// The tasks in its line have it before. Later requests get [`LockError::Closed`].
    ///
    /// # Errors
    /// [`LockError::Closed`] if the lock was closed before. [`LockError::AlreadyHeld`] in a task
    /// whose looper holds it, and in one of the world; then the lock stays open.
    ///
    /// # Cancel safety
    /// The lock stays closed when the future is dropped. The value is dropped with the last handle.
    ///
    /// ```
    /// use greenroom::looper::Controller;
    ///
    /// greenroom::run(async {
    ///     let controller = Controller::builder().build().unwrap();
    ///     let words = controller.guarded(vec!["first"]);
    ///     let looper = controller.looper();
    ///     let second = looper.with(words.exclusive()).post(|words| words.push("second"));
    ///     assert_eq!(words.close().await, Ok(vec!["first", "second"]));
    ///     second.unwrap().await.unwrap();
    /// });
    /// ```
    #[doc(alias = "safeDelete")]
    pub async fn close(&self) -> Result<T, LockError> {
        let lock = self.cell();
        if is_own(lock) {
            return Err(LockError::AlreadyHeld(caller(lock)));
        }
        if !close(lock) {
            return Err(LockError::Closed(caller(lock)));
        }
        let value = Mutex::new(None);
        is_over(lock, || *value.lock() = lock.take_value()).await;
        let value = value.lock().take().and_then(|value| value.downcast().ok());
        let value = value.and_then(Arc::into_inner);
        value.ok_or_else(|| LockError::Closed(caller(lock)))
    }

    /// Returns the number of the lock, which no other lock or looper of its controller has.
    pub fn id(&self) -> u64 {
        self.lock.id()
    }

    /// Returns the name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.lock.name()
    }
}

/// Closes a lock. Returns whether it was open.
fn close(lock: &LockCell) -> bool {
    lock.monitor.look(|_| lock.with(|state| state.close()))
}

/// Returns whether the task that runs here keeps the lock from being free: its looper holds it, or
/// it is one of the world.
fn is_own(lock: &LockCell) -> bool {
    let is_own = with_current(|job| {
        let own = &job.looper;
        let holds = || lock.with(|state| state.is_held_by(own.key));
        own.monitor.id == lock.monitor.id && (own.is_world() || holds())
    });
    is_own == Some(true)
}

/// Waits until a closed lock is free. Then calls `take`, before the world may stop.
async fn is_over(lock: &LockCell, take: impl Fn()) {
    let monitor = &lock.monitor;
    let closer = monitor.look(|_| lock.with(|state| state.closer()));
    if let Some(closer) = closer {
        let is_unused = || monitor.look(|_| lock.with(|state| state.is_unused()));
        closer.until(is_unused).await;
    }
    // The world may have the value out while it runs. The value is taken in the section that looks.
    let is_over = |table: &LooperTable| {
        let is_over = table.is_lock_over(lock);
        if is_over && !mutant("a_value_is_taken_when_the_world_may_stop") {
            take();
        }
        is_over
    };
    monitor.waiters.until(|| monitor.look(is_over)).await;
    if mutant("a_value_is_taken_when_the_world_may_stop") {
        take();
    }
}

/// Returns the detail of an error of the task that runs here.
fn caller(lock: &LockCell) -> LockDetail {
    let looper = with_current(|job| job.looper.to_string());
    let looper = looper.unwrap_or_else(|| "the caller".to_owned());
    LockDetail::new(&looper, lock)
}

impl AsRef<Lock> for Lock {
    fn as_ref(&self) -> &Lock {
        self
    }
}

impl<T: Send + Sync> AsRef<Lock> for Guarded<T> {
    fn as_ref(&self) -> &Lock {
        &self.lock
    }
}

impl<T: Send + Sync> Clone for Guarded<T> {
    fn clone(&self) -> Self {
        Guarded {
            lock: self.lock.clone(),
            values: PhantomData,
        }
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lock({})", self.0)
    }
}

impl<T: Send + Sync> fmt::Debug for Guarded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guarded({})", self.cell())
    }
}

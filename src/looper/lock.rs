//! Locks and guarded values, as programs hold them.
//!
//! A lock lives as long as a handle, a holder or a waiter has it.

use std::fmt;
use std::sync::Arc;

use super::access::Claim;
use super::current;
use super::error::{LockDetail, LockError};
use super::guard::{Exclusive, Shared};
use super::identity::{Identity, Kind};
use super::monitor::Monitor;
use super::place::{Place, Slot};
use super::table::Table;
use crate::sync::{Mutex, mutant};

/// A lock of a [`Controller`](super::Controller) without a value: the `Lock` of MTLL.
///
/// Any number of loopers hold it shared, or one holds it exclusively. A clone is the same lock.
#[derive(Clone)]
pub struct Lock {
    place: Arc<Place<()>>,
    monitor: Arc<Monitor>,
}

/// A value behind a lock of a [`Controller`](super::Controller).
///
/// A clone is the same lock and the same value.
pub struct Guarded<T: Send + Sync + 'static> {
    place: Arc<Place<Slot<T>>>,
    monitor: Arc<Monitor>,
}

/// A [`Lock`] or a [`Guarded`]. This trait is sealed.
pub trait Lockable {
    #[doc(hidden)]
    fn shared_place(&self) -> SharedPlace;
}

/// A lock whose type is erased.
#[doc(hidden)]
pub struct SharedPlace(pub(super) Arc<Place>);

impl Lock {
    pub(super) fn new(monitor: &Arc<Monitor>, name: Option<Box<str>>) -> Self {
        Lock {
            place: new_place(monitor, name, Kind::Lock, ()),
            monitor: monitor.clone(),
        }
    }

    /// Requests the lock together with other loopers.
    pub fn shared(&self) -> Claim<()> {
        Claim::new(&self.place, false)
    }

    /// Requests the lock for one looper alone.
    pub fn exclusive(&self) -> Claim<()> {
        Claim::new(&self.place, true)
    }

    /// Requires that the looper keeps the lock, in either mode.
    pub fn held_shared(&self) -> Claim<()> {
        self.shared().held()
    }

    /// Requires that the looper keeps the lock for itself.
    pub fn held_exclusive(&self) -> Claim<()> {
        self.exclusive().held()
    }

    /// Closes the lock, and waits until it is free: the `safeDelete` of MTLL.
    ///
    /// The tasks in its line have it before. Later requests get [`LockError::Closed`]. A second
    /// call returns at once. So does a call by a task whose looper holds the lock, or by one of the
    /// world.
    ///
    /// # Cancel safety
    /// The lock stays closed when the future is dropped.
    pub async fn close(&self) {
        let place: Arc<Place> = self.place.clone();
        let is_first = self.monitor.change(|table, _| table.close_lock(&place));
        if is_first && !is_own(&place) {
            is_over(&self.monitor, &place, || ()).await;
        }
    }

    /// Returns the number of the lock, which no other lock or looper of its controller has.
    pub fn id(&self) -> u64 {
        self.place.identity.id
    }

    /// Returns the name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.place.identity.name()
    }
}

impl<T: Send + Sync + 'static> Guarded<T> {
    pub(super) fn new(monitor: &Arc<Monitor>, name: Option<Box<str>>, value: T) -> Self {
        Guarded {
            place: new_place(monitor, name, Kind::Guarded, Slot::new(value)),
            monitor: monitor.clone(),
        }
    }

    pub(super) fn place(&self) -> &Arc<Place<Slot<T>>> {
        &self.place
    }

    /// Requests the value together with other loopers.
    pub fn shared(&self) -> Claim<Shared<T>> {
        Claim::new(&self.place, false)
    }

    /// Requests the value for one looper alone.
    pub fn exclusive(&self) -> Claim<Exclusive<T>> {
        Claim::new(&self.place, true)
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
    pub async fn close(&self) -> Result<T, LockError> {
        let place: Arc<Place> = self.place.clone();
        if is_own(&place) {
            return Err(LockError::AlreadyHeld(caller(&place)));
        }
        if !self.monitor.change(|table, _| table.close_lock(&place)) {
            return Err(LockError::Closed(caller(&place)));
        }
        let value = Mutex::new(None);
        let take = || *value.lock() = self.place.value.take();
        is_over(&self.monitor, &place, take).await;
        let value = value.lock().take().and_then(Arc::into_inner);
        value.ok_or_else(|| LockError::Closed(caller(&place)))
    }

    /// Returns the number of the lock, which no other lock or looper of its controller has.
    pub fn id(&self) -> u64 {
        self.place.identity.id
    }

    /// Returns the name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.place.identity.name()
    }
}

fn new_place<V: Send + Sync>(
    monitor: &Monitor,
    name: Option<Box<str>>,
    kind: Kind,
    value: V,
) -> Arc<Place<V>> {
    let id = monitor.change(|table, _| table.number());
    let identity = Identity { id, name, kind };
    Place::new(monitor.id, identity, value)
}

/// Returns whether the task that runs here keeps the lock from being free: its looper holds it, or
/// it is one of the world.
fn is_own(place: &Place) -> bool {
    let is_own = current::with(|job| {
        let seat = job.origin.seat();
        let holds = seat.is_none_or(|seat| place.state().holders.of(seat.key).is_some());
        holds && place.controller == job.origin.hub().id()
    });
    is_own == Some(true)
}

/// Waits until a closed lock is free. Then calls `take`, before the world may stop.
async fn is_over(monitor: &Monitor, place: &Place, take: impl Fn()) {
    let closer = monitor.look(|_| place.state().closer());
    if let Some(closer) = closer {
        let is_unused = || monitor.look(|_| place.state().is_unused());
        closer.until(is_unused).await;
    }
    let is_over = |table: &Table| {
        let is_over = table.is_lock_over(place);
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
fn caller(place: &Place) -> LockDetail {
    let looper = current::with(|job| {
        let seat = job.origin.seat();
        seat.map_or_else(|| "the world".to_owned(), |seat| seat.identity.to_string())
    });
    let looper = looper.unwrap_or_else(|| "the caller".to_owned());
    LockDetail::new(&looper, &place.identity)
}

impl Lockable for Lock {
    fn shared_place(&self) -> SharedPlace {
        SharedPlace(self.place.clone())
    }
}

impl<T: Send + Sync> Lockable for Guarded<T> {
    fn shared_place(&self) -> SharedPlace {
        SharedPlace(self.place.clone())
    }
}

impl<T: Send + Sync> Clone for Guarded<T> {
    fn clone(&self) -> Self {
        Guarded {
            place: self.place.clone(),
            monitor: self.monitor.clone(),
        }
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lock({})", self.place.identity)
    }
}

impl<T: Send + Sync> fmt::Debug for Guarded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guarded({})", self.place.identity)
    }
}

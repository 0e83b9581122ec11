//! Owned access to the value of a lock, for async tasks.
//!
//! A guard puts its value back before it gives up the lock. So the next holder of the lock finds
//! the value in its slot, and an exclusive one finds no other pointer to it.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::hub::Hub;
use super::job::Origin;
use super::place::{Place, Slot};

/// Shared access to the value of a [`Guarded`](super::Guarded), which an async task owns.
///
/// The lock is given back when the guard is dropped, unless the looper keeps it. A guard that is
/// carried out of its task keeps the lock, and makes the world wait, while its looper goes on.
pub struct Shared<T: Send + Sync + 'static> {
    /// `None` only while it is dropped.
    value: Option<Arc<T>>,
    pin: Option<Pin>,
}

/// Exclusive access to the value of a [`Guarded`](super::Guarded), which an async task owns.
///
/// As [`Shared`], but with the value to itself. A panic does not poison the value.
pub struct Exclusive<T: Send + Sync + 'static> {
    /// `None` only while it is dropped.
    value: Option<Arc<T>>,
    place: Arc<Place<Slot<T>>>,
    pin: Option<Pin>,
}

/// A claim on a lock that lasts until this is dropped.
pub(super) struct Pin {
    hub: Arc<dyn Hub>,
    place: Arc<Place>,
    ticket: u32,
}

impl Pin {
    /// Creates the pin of a lock that the looper of a task holds.
    pub(super) fn new<T: Send + Sync + 'static>(
        at: &Origin,
        place: &Arc<Place<Slot<T>>>,
    ) -> Option<Self> {
        let seat = at.seat()?;
        let ticket = seat.hub.ticket(&**place, seat.key);
        Some(Pin {
            hub: seat.hub.clone(),
            place: place.clone(),
            ticket,
        })
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.hub.drop_guard(&self.place, self.ticket);
    }
}

const IN_ITS_SLOT: &str = "the value of a granted lock is in its slot";

impl<T: Send + Sync + 'static> Shared<T> {
    /// Takes a pointer to the value of a lock that was granted.
    pub(super) fn open(place: &Place<Slot<T>>, pin: Option<Pin>) -> Self {
        let value = place.value.share();
        Shared {
            value: Some(value.expect(IN_ITS_SLOT)),
            pin,
        }
    }
}

impl<T: Send + Sync + 'static> Exclusive<T> {
    /// Takes the value of a lock that was granted.
    pub(super) fn open(place: Arc<Place<Slot<T>>>, pin: Option<Pin>) -> Self {
        let value = place.value.take();
        Exclusive {
            value: Some(value.expect(IN_ITS_SLOT)),
            place,
            pin,
        }
    }
}

impl<T: Send + Sync + 'static> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("the guard has its value")
    }
}

impl<T: Send + Sync + 'static> Deref for Exclusive<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("the guard has its value")
    }
}

impl<T: Send + Sync + 'static> DerefMut for Exclusive<T> {
    fn deref_mut(&mut self) -> &mut T {
        let value = self.value.as_mut().and_then(Arc::get_mut);
        value.expect("an exclusive guard has the only pointer")
    }
}

impl<T: Send + Sync + 'static> Drop for Shared<T> {
    fn drop(&mut self) {
        // The pointer goes first. The value is not dropped here: the slot has another pointer, as
        // long as the pin lasts.
        self.value = None;
        self.pin = None;
    }
}

impl<T: Send + Sync + 'static> Drop for Exclusive<T> {
    fn drop(&mut self) {
        self.place.value.put(self.value.take());
        self.pin = None;
    }
}

impl<T: Send + Sync + fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shared").field(&**self).finish()
    }
}

impl<T: Send + Sync + fmt::Debug> fmt::Debug for Exclusive<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Exclusive").field(&**self).finish()
    }
}

//! Requests of locks, and what a task gets for them.
//!
//! A request of a value leads to a guard; a request of a lock without a value leads to `()`. Sets
//! of requests lead to sets of these. A guard puts its value back before it gives up the lock. So
//! the next holder finds the value in the lock, and an exclusive one finds no other pointer to it.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::cell::{LockCell, LooperCell, Want};

/// The locks that a task needs: a [`Claim`], a tuple of up to 8, or a `Vec`.
///
/// A set is taken one lock after the other, in the order in which the locks were made, whatever
/// order it is written in. This trait is sealed: its hidden methods have types without a path.
pub trait Access: Send + Sync + 'static {
    /// What a closure gets: `&T`, `&mut T`, or `()` for a lock without a value.
    type Given<'a>;
    /// What an async task gets: [`Shared`], [`Exclusive`] or `()`.
    type Owned: Send + 'static;

    /// Returns the request, if this is a single one.
    #[doc(hidden)]
    fn want(&self) -> Option<&Want>;
    #[doc(hidden)]
    fn add_to(&self, set: &mut Vec<Want>);
    /// Opens the locks, which were granted. With an owner each guard ends its use of the lock when it is
    /// dropped; without one the table does so after the task.
    #[doc(hidden)]
    fn open(&self, owner: Option<&LooperCell>) -> Self::Owned;
    #[doc(hidden)]
    fn give(owned: &mut Self::Owned) -> Self::Given<'_>;
}

/// A request of one lock, from [`Guarded::shared`](super::Guarded::shared) and the like.
///
/// `G` is what an async task gets for it.
#[must_use = "a request does nothing until it is posted"]
pub struct Claim<G> {
    want: Want,
    grants: PhantomData<fn() -> G>,
}

/// Shared access to the value of a [`Guarded`](super::Guarded), which an async task owns.
///
/// The lock is given back when the guard is dropped, unless the looper keeps it. A guard that is
/// carried out of its task keeps the lock, and makes the world wait, while its looper goes on.
pub struct Shared<T: Send + Sync + 'static> {
    /// `None` only while it is dropped.
    value: Option<Arc<T>>,
    pin: Option<LockPin>,
}

/// Exclusive access to the value of a [`Guarded`](super::Guarded), which an async task owns.
///
/// As [`Shared`], but with the value to itself. A panic does not poison the value.
pub struct Exclusive<T: Send + Sync + 'static> {
    /// `None` only while it is dropped.
    value: Option<Arc<T>>,
    lock: Arc<LockCell>,
    pin: Option<LockPin>,
}

/// A use of a lock that lasts until this is dropped.
struct LockPin {
    lock: Arc<LockCell>,
    looper: u32,
    ticket: u32,
}

impl<G> Claim<G> {
    pub(super) fn new(lock: &Arc<LockCell>, is_exclusive: bool) -> Self {
        Claim {
            want: Want {
                lock: lock.clone(),
                is_exclusive,
                is_kept: false,
                is_held: false,
            },
            grants: PhantomData,
        }
    }

    /// Makes this a claim on a lock that the looper keeps already.
    pub(super) fn held(mut self) -> Self {
        self.want.is_held = true;
        self
    }

    /// Leaves the lock with the looper when the task has ended, until it is
    /// [unlocked](super::Looper::unlock).
    pub fn keep(mut self) -> Self {
        self.want.is_kept = true;
        self
    }
}

impl Access for Claim<()> {
    type Given<'a> = ();
    type Owned = ();

    fn want(&self) -> Option<&Want> {
        Some(&self.want)
    }

    fn add_to(&self, set: &mut Vec<Want>) {
        set.push(self.want.clone());
    }

    fn open(&self, _: Option<&LooperCell>) {}

    fn give((): &mut ()) {}
}

impl<T: Send + Sync + 'static> Access for Claim<Shared<T>> {
    type Given<'a> = &'a T;
    type Owned = Shared<T>;

    fn want(&self) -> Option<&Want> {
        Some(&self.want)
    }

    fn add_to(&self, set: &mut Vec<Want>) {
        set.push(self.want.clone());
    }

    fn open(&self, owner: Option<&LooperCell>) -> Shared<T> {
        Shared {
            value: Some(self.want.lock.share()),
            pin: owner.map(|owner| LockPin::adopt(owner, &self.want.lock)),
        }
    }

    fn give(owned: &mut Shared<T>) -> &T {
        owned
    }
}

impl<T: Send + Sync + 'static> Access for Claim<Exclusive<T>> {
    type Given<'a> = &'a mut T;
    type Owned = Exclusive<T>;

    fn want(&self) -> Option<&Want> {
        Some(&self.want)
    }

    fn add_to(&self, set: &mut Vec<Want>) {
        set.push(self.want.clone());
    }

    fn open(&self, owner: Option<&LooperCell>) -> Exclusive<T> {
        let lock = &self.want.lock;
        Exclusive {
            value: Some(lock.take()),
            lock: lock.clone(),
            pin: owner.map(|owner| LockPin::adopt(owner, lock)),
        }
    }

    fn give(owned: &mut Exclusive<T>) -> &mut T {
        owned
    }
}

impl<A: Access> Access for Vec<A> {
    type Given<'a> = Vec<A::Given<'a>>;
    type Owned = Vec<A::Owned>;

    fn want(&self) -> Option<&Want> {
        None
    }

    fn add_to(&self, set: &mut Vec<Want>) {
        for access in self {
            access.add_to(set);
        }
    }

    fn open(&self, owner: Option<&LooperCell>) -> Self::Owned {
        self.iter().map(|it| it.open(owner)).collect()
    }

    fn give(owned: &mut Self::Owned) -> Self::Given<'_> {
        owned.iter_mut().map(A::give).collect()
    }
}

macro_rules! access_tuple {
    ($($name:ident $at:tt),+) => {
        impl<$($name: Access),+> Access for ($($name,)+) {
            type Given<'a> = ($($name::Given<'a>,)+);
            type Owned = ($($name::Owned,)+);

            fn want(&self) -> Option<&Want> {
                None
            }

            fn add_to(&self, set: &mut Vec<Want>) {
                $(self.$at.add_to(set);)+
            }

            fn open(&self, owner: Option<&LooperCell>) -> Self::Owned {
                ($(self.$at.open(owner),)+)
            }

            fn give(owned: &mut Self::Owned) -> Self::Given<'_> {
                ($($name::give(&mut owned.$at),)+)
            }
        }
    };
}

access_tuple!(A 0);
access_tuple!(A 0, B 1);
access_tuple!(A 0, B 1, C 2);
access_tuple!(A 0, B 1, C 2, D 3);
access_tuple!(A 0, B 1, C 2, D 3, E 4);
access_tuple!(A 0, B 1, C 2, D 3, E 4, F 5);
access_tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
access_tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

impl LockPin {
    /// Takes over the task's use of a lock. It counts nothing: `take_lock` has counted the use in the
    /// `pins` of its hold, and `begin` the guard in the table. The drop ends both.
    fn adopt(looper: &LooperCell, lock: &Arc<LockCell>) -> Self {
        let ticket = |_: &mut _, _: &mut _| lock.with(|state| state.ticket(looper.key));
        LockPin {
            ticket: lock.monitor.change(ticket),
            lock: lock.clone(),
            looper: looper.key,
        }
    }
}

impl Drop for LockPin {
    fn drop(&mut self) {
        self.lock.monitor.change(|table, follow_up| {
            table.drop_guard(&self.lock, self.looper, self.ticket, follow_up);
        });
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
        // The pointer goes first. The value is not dropped here: the lock has another pointer, as
        // long as the pin lasts.
        self.value = None;
        self.pin = None;
    }
}

impl<T: Send + Sync + 'static> Drop for Exclusive<T> {
    fn drop(&mut self) {
        let value = self.value.take();
        self.lock.put(value.map(|value| value as _));
        self.pin = None;
    }
}

impl<G> fmt::Debug for Claim<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("lock", &format_args!("{}", self.want.lock))
            .field("is_exclusive", &self.want.is_exclusive)
            .field("is_kept", &self.want.is_kept)
            .field("is_held", &self.want.is_held)
            .finish()
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

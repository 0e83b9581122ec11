//! Requests of locks, and what a task gets for them.
//!
//! A request of a value leads to a guard; a request of a lock without a value leads to `()`. Sets
//! of requests lead to sets of these.

use std::marker::PhantomData;
use std::sync::Arc;

use super::guard::{Exclusive, Pin, Shared};
use super::job::Origin;
use super::place::{Place, Slot};
use super::want::{Mode, Want, Wants};

/// The locks that a task needs: a [`Claim`], a tuple of up to 8, or a `Vec`.
///
/// A set is taken one lock after the other, in the order in which the locks were made, whatever
/// order it is written in. This trait is sealed: its hidden methods have types without a path.
pub trait Access: Send + 'static {
    /// What a closure gets: `&T`, `&mut T`, or `()` for a lock without a value.
    type Given<'a>;
    /// What an async task gets: [`Shared`], [`Exclusive`] or `()`.
    type Owned: Send + 'static;

    #[doc(hidden)]
    fn add_to(&self, wants: &mut Requested);
    #[doc(hidden)]
    fn open(self, owner: Option<&Granted<'_>>) -> Self::Owned;
    #[doc(hidden)]
    fn give(owned: &mut Self::Owned) -> Self::Given<'_>;
}

/// The locks that were added.
#[doc(hidden)]
pub struct Requested(pub(super) Wants);

/// The job to which the locks were granted.
#[doc(hidden)]
pub struct Granted<'a>(pub(super) &'a Origin);

/// A request of one lock, from [`Guarded::shared`](super::Guarded::shared) and the like.
///
/// `G` is what an async task gets for it.
#[must_use = "a request does nothing until it is posted"]
pub struct Claim<G: Grant> {
    place: Arc<Place<G::Value>>,
    mode: Mode,
    grants: PhantomData<fn() -> G>,
}

impl<G: Grant> Claim<G> {
    pub(super) fn new(place: &Arc<Place<G::Value>>, is_exclusive: bool) -> Self {
        Claim {
            place: place.clone(),
            mode: Mode {
                is_exclusive,
                is_kept: false,
                is_held: false,
            },
            grants: PhantomData,
        }
    }

    /// Makes this a claim on a lock that the looper keeps already.
    pub(super) fn held(mut self) -> Self {
        self.mode.is_held = true;
        self
    }

    /// Leaves the lock with the looper when the task has ended, until it is
    /// [unlocked](super::Looper::unlock).
    pub fn keep(mut self) -> Self {
        self.mode.is_kept = true;
        self
    }
}

impl<G: Grant> std::fmt::Debug for Claim<G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claim")
            .field("lock", &format_args!("{}", self.place.identity))
            .field("is_exclusive", &self.mode.is_exclusive)
            .field("is_kept", &self.mode.is_kept)
            .field("is_held", &self.mode.is_held)
            .finish()
    }
}

/// What a [`Claim`] leads to. This trait is sealed.
pub trait Grant: Send + Sized + 'static {
    #[doc(hidden)]
    type Value: Send + Sync;
    /// What a closure gets.
    type Lent<'a>;

    #[doc(hidden)]
    fn open(place: Opened<Self::Value>, owner: Option<&Granted<'_>>) -> Self;
    #[doc(hidden)]
    fn lend(&mut self) -> Self::Lent<'_>;
}

/// A lock that was granted.
#[doc(hidden)]
pub struct Opened<V>(Arc<Place<V>>);

impl<G: Grant> Access for Claim<G> {
    type Given<'a> = G::Lent<'a>;
    type Owned = G;

    fn add_to(&self, wants: &mut Requested) {
        wants.0.push(Want {
            place: self.place.clone(),
            mode: self.mode,
        });
    }

    fn open(self, owner: Option<&Granted<'_>>) -> G {
        G::open(Opened(self.place), owner)
    }

    fn give(owned: &mut G) -> G::Lent<'_> {
        owned.lend()
    }
}

impl Grant for () {
    type Value = ();
    type Lent<'a> = ();

    fn open(_: Opened<()>, _: Option<&Granted<'_>>) {}

    fn lend(&mut self) {}
}

impl<T: Send + Sync + 'static> Grant for Shared<T> {
    type Value = Slot<T>;
    type Lent<'a> = &'a T;

    fn open(Opened(place): Opened<Slot<T>>, owner: Option<&Granted<'_>>) -> Self {
        let pin = owner.and_then(|owner| Pin::new(owner.0, &place));
        Shared::open(&place, pin)
    }

    fn lend(&mut self) -> &T {
        self
    }
}

impl<T: Send + Sync + 'static> Grant for Exclusive<T> {
    type Value = Slot<T>;
    type Lent<'a> = &'a mut T;

    fn open(Opened(place): Opened<Slot<T>>, owner: Option<&Granted<'_>>) -> Self {
        let pin = owner.and_then(|owner| Pin::new(owner.0, &place));
        Exclusive::open(place, pin)
    }

    fn lend(&mut self) -> &mut T {
        self
    }
}

impl<A: Access> Access for Vec<A> {
    type Given<'a> = Vec<A::Given<'a>>;
    type Owned = Vec<A::Owned>;

    fn add_to(&self, wants: &mut Requested) {
        for access in self {
            access.add_to(wants);
        }
    }

    fn open(self, owner: Option<&Granted<'_>>) -> Self::Owned {
        self.into_iter().map(|it| it.open(owner)).collect()
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

            fn add_to(&self, wants: &mut Requested) {
                $(self.$at.add_to(wants);)+
            }

            fn open(self, owner: Option<&Granted<'_>>) -> Self::Owned {
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

//! The kinds of work that a job can have.
//!
//! Each keeps the closure or the future as it came, so that a job that is not accepted gives it
//! back.

use std::future::Future;

use super::access::{Access, Granted};
use super::job::{Begun, Origin, Work};
use super::world::World;

/// A closure without locks.
pub(super) struct Plain<F>(pub(super) F);

impl<F, R> Work for Plain<F>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    type Output = R;

    fn begin(self, _: &Origin) -> Begun<R> {
        Begun::Done((self.0)())
    }
}

/// A closure that gets what its locks guard.
pub(super) struct With<A, F>(pub(super) A, pub(super) F);

impl<A, F, R> Work for With<A, F>
where
    A: Access,
    F: FnOnce(A::Given<'_>) -> R + Send + 'static,
    R: Send + 'static,
{
    type Output = R;

    fn begin(self, _: &Origin) -> Begun<R> {
        let mut owned = self.0.open(None);
        Begun::Done((self.1)(A::give(&mut owned)))
    }
}

/// A future without locks.
pub(super) struct Later<Fut>(pub(super) Box<Fut>);

impl<Fut> Work for Later<Fut>
where
    Fut: Future<Output: Send + 'static> + Send + 'static,
{
    type Output = Fut::Output;

    fn begin(self, _: &Origin) -> Begun<Fut::Output> {
        Begun::Future(Box::into_pin(self.0))
    }
}

/// A function that makes a future, which owns what its locks guard.
pub(super) struct LaterWith<A, F>(pub(super) A, pub(super) F);

impl<A, F, Fut> Work for LaterWith<A, F>
where
    A: Access,
    F: FnOnce(A::Owned) -> Fut + Send + 'static,
    Fut: Future<Output: Send + 'static> + Send + 'static,
{
    type Output = Fut::Output;

    fn begin(self, at: &Origin) -> Begun<Fut::Output> {
        Begun::Future(Box::pin((self.1)(self.0.open(Some(&Granted(at))))))
    }
}

/// A closure that runs alone.
pub(super) struct Alone<F>(pub(super) F);

impl<F, R> Work for Alone<F>
where
    F: FnOnce(&mut World) -> R + Send + 'static,
    R: Send + 'static,
{
    type Output = R;

    fn begin(self, at: &Origin) -> Begun<R> {
        Begun::Done((self.0)(&mut World::new(at.hub().id())))
    }
}

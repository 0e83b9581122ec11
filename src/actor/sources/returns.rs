//! The inputs of `on_return`: the end of an actor, of a task, or of any other future.
//!
//! Each yields one result, or the fault that replaced it.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use crate::actor::handle::Handle;
use crate::contain::{Step, attempt_or_clear, contain};
use crate::error::Fault;
use crate::task::Task;

/// An argument of [`Context::on_return`](crate::Context::on_return): a [`Handle`], a [`Task`] or
/// any other future that is `Send`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a handle nor a future that is `Send`",
    note = "`on_return` takes a `Handle`, a `Task` or any other future that is `Send`"
)]
pub trait Returns {
    /// The type of the result, if there is no fault.
    type Value: Send + 'static;

    /// Converts this into a future that returns every fault as a value.
    fn returned(self) -> Returned<Self::Value>;
}

/// A future whose output is a result, or the fault that replaced it.
pub type Returned<T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send>>;

impl<M: Send + 'static, T: Send + 'static> Returns for Handle<M, T> {
    type Value = T;

    fn returned(self) -> Returned<T> {
        Box::pin(self.join())
    }
}

impl<F> Returns for F
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    type Value = F::Output;

    fn returned(self) -> Returned<F::Output> {
        let mut future = Some(self);
        // Awaiting a cancelled task would panic; here it is a fault.
        let any: &mut dyn Any = &mut future;
        if let Some(task) = any.downcast_mut::<Option<Task<F::Output>>>() {
            let task = task.take().expect("set above").fallible();
            return Box::pin(async { caught(task).await?.ok_or(Fault::Cancelled) });
        }
        Box::pin(caught(future.expect("not a task, so not taken")))
    }
}

/// Returns a future that catches the panics of `future`.
fn caught<F: Future>(future: F) -> impl Future<Output = Result<F::Output, Fault>> {
    let mut future = Some(Box::pin(future));
    poll_fn(move |cx| {
        let mut polled = Poll::Pending;
        // A future that panics is dropped while the panic unwinds.
        let attempted = attempt_or_clear(&mut |step| match (step, &mut future) {
            (Step::Clear, future) => *future = None,
            (Step::Run, Some(future)) => polled = future.as_mut().poll(cx),
            (Step::Run, None) => {}
        });
        let polled = match (attempted, polled) {
            (Ok(()), Poll::Pending) => return Poll::Pending,
            (Ok(()), Poll::Ready(value)) => Ok(value),
            (Err(panic), _) => Err(Fault::Panicked(panic)),
        };
        contain(|| future = None);
        Poll::Ready(polled)
    })
}

//! What an actor may wait for while it goes on reading: an actor's end, a task's, any future's.
//!
//! Whatever it is, it gives a result once, or the fault that came instead.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use crate::actor::handle::Handle;
use crate::contain::{attempt_on, contain};
use crate::error::Fault;
use crate::task::Task;

/// What [`Context::on_return`](crate::Context::on_return) takes: a [`Handle`], a [`Task`] or any
/// other future.
#[diagnostic::on_unimplemented(
    message = "`{Self}` returns nothing to wait for",
    note = "a handle, a task or another future that is `Send` does"
)]
pub trait Returns {
    /// What it gives if nothing goes wrong.
    type Value: Send + 'static;

    /// The same as a future that gives every fault as a value.
    fn returned(self) -> Returned<Self::Value>;
}

/// A future with the result of something that may fault.
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
        // A task that was cancelled is a fault, where awaiting it would be a panic.
        let any: &mut dyn Any = &mut future;
        if let Some(task) = any.downcast_mut::<Option<Task<F::Output>>>() {
            let task = task.take().expect("put there just now").fallible();
            return Box::pin(async { caught(task).await?.ok_or(Fault::Cancelled) });
        }
        Box::pin(caught(future.expect("it was no task, so it is still here")))
    }
}

/// The future with its panics as faults.
fn caught<F: Future>(future: F) -> impl Future<Output = Result<F::Output, Fault>> {
    let mut future = Some(Box::pin(future));
    poll_fn(move |cx| {
        let polled = attempt_on(
            &mut future,
            |future| Some(future.as_mut()?.as_mut().poll(cx)),
            |future| *future = None,
        );
        let polled = match polled {
            Ok(None | Some(Poll::Pending)) => return Poll::Pending,
            Ok(Some(Poll::Ready(value))) => Ok(value),
            Err(panic) => Err(Fault::Panicked(panic)),
        };
        contain(|| future = None);
        Poll::Ready(polled)
    })
}

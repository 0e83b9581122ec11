//! The result of a task or of any other future, or the fault that replaced it.
//!
//! Each future yields one of the two, once.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use crate::contain::{Step, attempt_or_clear, contain};
use crate::error::Fault;
use crate::task::Task;

/// A future whose output is a result, or the fault that replaced it.
type Returned<T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send>>;

/// Returns a future that returns every fault of `future` as a value, also the end of a cancelled task.
pub(super) fn returned<F>(future: F) -> Returned<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let mut future = Some(future);
    // Awaiting a cancelled task would panic; here it is a fault.
    let any: &mut dyn Any = &mut future;
    if let Some(task) = any.downcast_mut::<Option<Task<F::Output>>>() {
        let task = task.take().expect("set above").fallible();
        return Box::pin(async { caught(task).await?.ok_or(Fault::Cancelled) });
    }
    Box::pin(caught(future.expect("not a task, so not taken")))
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

//! A request that owns all that it needs, behind one pointer.
//!
//! # Invariants
//! - REQUEST-1: the lead of the ask points into the cell of the actor, or into the box of a mapped
//!   address. The address keeps either where it is, and is dropped after the ask.
#![expect(
    unsafe_code,
    reason = "an ask beside the address that it borrows; see REQUEST-1"
)]

use std::fmt;
use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::address::Address;
use super::ask::Ask;
use super::lead::Lead;
use super::reply::Reply;
use crate::error::AskError;

/// A request to an actor, as [`Ask`], but owned: it borrows nothing and can be moved
/// anywhere.
///
/// [`Address::request`] creates a request. The message is sent by the first poll. A request holds an
/// address of the actor, so it keeps the actor open.
///
/// # Errors
/// As [`Address::ask`].
///
/// # Cancel safety
/// As [`Address::ask`]: dropping the request makes its [`Reply::is_wanted`] return false, and loses
/// nothing else.
#[must_use = "futures do nothing unless polled"]
pub struct Request<T>(Box<dyn Asking<T>>);

// As for `Ask`.
impl<T> UnwindSafe for Request<T> {}
impl<T> RefUnwindSafe for Request<T> {}

impl<M: Send + 'static> Address<M> {
    /// Creates a request with the message that `question` builds from a [`Reply`].
    ///
    /// It does what [`ask`](Address::ask) does, but borrows nothing. So it can be given to
    /// [`Context::on_answer`](crate::Context::on_answer), to [`concurrently`](crate::concurrently())
    /// or to another task.
    ///
    /// ```
    /// use greenroom::{Context, Reply, concurrently, spawn};
    ///
    /// async fn doubler(mut cx: Context<(u32, Reply<u32>)>) {
    ///     while let Some((number, reply)) = cx.recv().await {
    ///         reply.send(number * 2);
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let doubler = spawn!(doubler(_));
    ///     let requests = [1, 2, 3].map(|number| doubler.request(move |reply| (number, reply)));
    ///     assert_eq!(concurrently(requests).await, [Ok(2), Ok(4), Ok(6)]);
    /// });
    /// ```
    pub fn request<T, F>(&self, question: F) -> Request<T>
    where
        T: Send + 'static,
        F: FnOnce(Reply<T>) -> M + Send + 'static,
    {
        let address = self.clone();
        // SAFETY: (REQUEST-1) the address is kept as long as the ask.
        let lead = unsafe { std::mem::transmute::<Lead<'_, M>, Lead<'static, M>>(address.lead()) };
        Request(Box::new(OwnedAsk {
            ask: Ask::new(lead, question),
            _address: address,
        }))
    }
}

/// An ask whose types are not known.
trait Asking<T>: Send {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, AskError>>;
    fn limit(&mut self, duration: Duration);
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// (REQUEST-1) The fields are dropped in this order.
struct OwnedAsk<M: 'static, T, F> {
    ask: Ask<'static, M, T, F>,
    _address: Address<M>,
}

impl<M, T, F> Asking<T> for OwnedAsk<M, T, F>
where
    M: Send + 'static,
    T: Send,
    F: FnOnce(Reply<T>) -> M + Send,
{
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, AskError>> {
        Pin::new(&mut self.ask).poll(cx)
    }

    fn limit(&mut self, duration: Duration) {
        self.ask.limit(duration);
    }

    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.ask, f)
    }
}

impl<T> Request<T> {
    /// Limits the request to `duration`, measured from the first poll, as [`Ask::timeout`] does.
    ///
    /// # Panics
    /// As [`Ask::timeout`].
    pub fn timeout(mut self, duration: Duration) -> Self {
        self.0.limit(duration);
        self
    }
}

impl<T> Request<T> {
    /// Sends the message, and returns the answer if it is there at once.
    pub(super) fn poll_once(&mut self) -> Option<Result<T, AskError>> {
        match self.0.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    }
}

impl<T> Future for Request<T> {
    type Output = Result<T, AskError>;

    /// Sends the message on the first poll, then waits for the answer.
    ///
    /// # Panics
    /// As [`Address::ask`].
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(cx)
    }
}

impl<T> fmt::Debug for Request<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

//! A request that owns all that it needs, behind one pointer.
//!
//! # Invariants
//! - REQUEST-1: the recipient of the ask points into the cell of the actor, or into the box of a mapped
//!   address. The address keeps either where it is, and is dropped after the ask.
#![expect(
    unsafe_code,
    reason = "an ask beside the address that it borrows; see REQUEST-1"
)]

use std::fmt;
use std::future::Future;
use std::mem;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::address::Address;
use super::ask::Answer;
use super::ask::{self, Ask};
use super::recipient::RecipientRef;
use super::reply::Reply;
use crate::error::AskError;
use crate::task::TaskInfo;

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
pub struct Request<T> {
    phase: RequestPhase<T>,
    limit: Option<Duration>,
}

/// A request begins small, since most are sent by `on_answer`, which keeps the answer alone.
enum RequestPhase<T> {
    /// Not sent.
    Question(Box<dyn Questioning<T>>),
    /// Polled.
    Asking(Box<dyn Asking<T>>),
    Over,
}

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
        Request {
            phase: RequestPhase::Question(Box::new(Question { address, question })),
            limit: None,
        }
    }
}

/// What [`on_answer`](crate::Context::on_answer) takes: a [`Request`]. This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "`on_answer` takes a request, which borrows nothing",
    label = "this is no `Request`",
    note = "write `address.request(..)` for `address.ask(..)`",
    note = "with `handlers!`: `counter.request(CounterMessage::total)` for `counter.total()`, and \
            `counter.request(|reply| CounterMessage::find(key, reply))` for `counter.find(key)`",
    note = "`on_return` takes any other future"
)]
pub trait OwnedRequest<T>: Into<Request<T>> + sealed::SealedRequest {}

impl<T> OwnedRequest<T> for Request<T> {}

impl<T> sealed::SealedRequest for Request<T> {}

mod sealed {
    pub trait SealedRequest {}
}

struct Question<M, F> {
    address: Address<M>,
    question: F,
}

/// A question whose types are not known.
trait Questioning<T>: Send {
    /// Sends the message. `launch` is called with the answer, and the actor that is asked, before
    /// the message is delivered.
    fn send(self: Box<Self>, launch: &mut dyn FnMut(Answer<T>, TaskInfo)) -> Launched<T>;
    fn ask(self: Box<Self>, limit: Option<Duration>) -> Box<dyn Asking<T>>;
}

/// What [`Request::send`] did.
pub(super) enum Launched<T> {
    Delivered,
    /// There is no room. The request waits for it with the answer that was launched.
    Full(Box<dyn Asking<T>>),
    /// The mailbox is closed. The message is kept, since its drop would complete the reply.
    Closed(AskError, Box<dyn Asking<T>>),
}

impl<M, T, F> Questioning<T> for Question<M, F>
where
    M: Send + 'static,
    T: Send + 'static,
    F: FnOnce(Reply<T>) -> M + Send + 'static,
{
    fn send(self: Box<Self>, launch: &mut dyn FnMut(Answer<T>, TaskInfo)) -> Launched<T> {
        let Question { address, question } = *self;
        let (message, answer, asked) = ask::begin(address.recipient(), question);
        // Before the message is sent, since its reply may come at once.
        launch(answer, asked);
        match address.tell(message) {
            Ok(()) => Launched::Delivered,
            Err(refused) => {
                let closed = refused
                    .is_closed()
                    .then(|| address.recipient().closed_error());
                let kept = OwnedAsk::boxed(address, |recipient| {
                    Ask::<_, T, F>::unsent(recipient, refused.into_inner())
                });
                match closed {
                    None => Launched::Full(kept),
                    Some(error) => Launched::Closed(error, kept),
                }
            }
        }
    }

    fn ask(self: Box<Self>, limit: Option<Duration>) -> Box<dyn Asking<T>> {
        let Question { address, question } = *self;
        OwnedAsk::boxed(address, |recipient| {
            Ask::new(recipient, question).limited(limit)
        })
    }
}

/// An ask whose types are not known.
pub(super) trait Asking<T>: Send {
    fn wait_for_room(&mut self, answer: Answer<T>);
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, AskError>>;
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// (REQUEST-1) The fields are dropped in this order.
struct OwnedAsk<M: 'static, T, F> {
    ask: Ask<'static, M, T, F>,
    _address: Address<M>,
}

impl<M, T, F> OwnedAsk<M, T, F>
where
    M: Send + 'static,
    T: Send + 'static,
    F: FnOnce(Reply<T>) -> M + Send + 'static,
{
    fn boxed(
        address: Address<M>,
        ask: impl FnOnce(RecipientRef<'static, M>) -> Ask<'static, M, T, F>,
    ) -> Box<dyn Asking<T>> {
        // SAFETY: (REQUEST-1) the address is kept as long as the ask.
        let recipient = unsafe {
            mem::transmute::<RecipientRef<'_, M>, RecipientRef<'static, M>>(address.recipient())
        };
        Box::new(OwnedAsk {
            ask: ask(recipient),
            _address: address,
        })
    }
}

impl<M, T, F> Asking<T> for OwnedAsk<M, T, F>
where
    M: Send + 'static,
    T: Send,
    F: FnOnce(Reply<T>) -> M + Send,
{
    fn wait_for_room(&mut self, answer: Answer<T>) {
        self.ask.wait_for_room(answer);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, AskError>> {
        Pin::new(&mut self.ask).poll(cx)
    }

    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.ask, f)
    }
}

impl<T> Request<T> {
    /// Limits the request to `duration`, measured from the first poll, as [`Ask::timeout`] does.
    /// It has no effect after the first poll.
    ///
    /// # Panics
    /// As [`Ask::timeout`].
    pub fn timeout(mut self, duration: Duration) -> Self {
        self.limit = Some(duration);
        self
    }

    /// Creates the request of an ask that waits for room.
    pub(super) fn of(asking: Box<dyn Asking<T>>) -> Self {
        Request {
            phase: RequestPhase::Asking(asking),
            limit: None,
        }
    }

    /// Takes the limit of a request that was not polled.
    pub(super) fn take_limit(&mut self) -> Option<Duration> {
        match self.phase {
            RequestPhase::Question(_) => self.limit.take(),
            _ => None,
        }
    }

    /// Sends the message, or returns a request that was polled before.
    pub(super) fn send(
        self,
        launch: &mut dyn FnMut(Answer<T>, TaskInfo),
    ) -> Result<Launched<T>, Self> {
        match self.phase {
            RequestPhase::Question(question) => Ok(question.send(launch)),
            _ => Err(self),
        }
    }
}

impl<T> Future for Request<T> {
    type Output = Result<T, AskError>;

    /// Sends the message on the first poll, then waits for the answer.
    ///
    /// # Panics
    /// As [`Address::ask`].
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let RequestPhase::Question(_) = this.phase
            && let RequestPhase::Question(question) =
                mem::replace(&mut this.phase, RequestPhase::Over)
        {
            this.phase = RequestPhase::Asking(question.ask(this.limit));
        }
        match &mut this.phase {
            RequestPhase::Asking(asking) => asking.poll(cx),
            _ => panic!("a request polled after its question has panicked"),
        }
    }
}

impl<T> fmt::Debug for Request<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.phase {
            RequestPhase::Asking(asking) => asking.fmt(f),
            _ => f.write_str("Ask(not sent)"),
        }
    }
}

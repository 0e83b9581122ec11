//! `RemoteAsk`: a question to an actor of another node, and the wait for its answer.
//!
//! While it waits, the runtime here is not quiescent, so deadlock detection does not end asks that
//! wait for another machine.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use greenroom::{AskError, Reply, Runtime};

use crate::error::RemoteAskError;
use crate::link::{Link, LossCause, Outgoing};
use crate::remote::Remote;

/// A question that is sent when it is awaited, from [`RemoteAddress::ask`].
///
/// [`RemoteAddress::ask`]: crate::RemoteAddress::ask
///
/// It waits until the question is accepted here, in the order of all senders, and then for the
/// answer. Every ask ends: if the reply is dropped, the actor ends, its node is lost, or the answer
/// cannot be decoded. An actor that keeps a reply on a node that lives keeps the asker waiting: set
/// a [time-out](RemoteAsk::timeout).
///
/// # Errors
/// [`RemoteAskError`] says which of them left the question unhandled.
///
/// # Panics
/// As the `Serialize` of the message.
///
/// # Cancel safety
/// Dropping the future makes [`Reply::is_wanted`] false on the other node. The question may be
/// handled nevertheless.
///
/// # In an actor
/// An actor that receives meanwhile gives the ask, with a clone of the address, to
/// [`on_return`](greenroom::Context::on_return):
///
/// ```
/// # use greenroom::{Context, Fault, Reply, spawn};
/// # use greenroom_cluster::{Node, Remote, RemoteAddress, RemoteAskError};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Double(u32, #[serde(with = "greenroom_cluster::reply")] Reply<u32>);
/// # impl Remote for Double {
/// #     const KIND: &'static str = "double/1";
/// # }
/// # async fn doubler(mut cx: Context<Double>) {
/// #     while let Some(Double(number, reply)) = cx.recv().await {
/// #         reply.send(2 * number);
/// #     }
/// # }
/// enum Message {
///     Answered(Result<Result<u32, RemoteAskError>, Fault>),
/// }
///
/// async fn front(mut cx: Context<Message>, far: RemoteAddress<Double>) -> u32 {
///     for number in [10, 11] {
///         let far = far.clone();
///         let asked = async move { far.ask(|reply| Double(number, reply)).await };
///         cx.on_return(asked, Message::Answered);
///     }
///     let mut sum = 0;
///     while let Some(Message::Answered(answer)) = cx.recv().await {
///         if let Ok(Ok(answer)) = answer {
///             sum += answer;
///         }
///     }
///     sum
/// }
///
/// # greenroom::run(async {
/// let node = Node::builder("here").open().await?;
/// let doubler = spawn!(doubler(_));
/// let _published = node.publish("doubler", &doubler)?;
/// let far = node.lookup("doubler").await?;
/// assert_eq!(spawn!(front(_, far)).join().await?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[must_use = "an ask does nothing unless it is awaited"]
pub struct RemoteAsk<'a, M, T, F> {
    stream: &'a Arc<Outgoing>,
    question: F,
    timeout: Option<Duration>,
    types: PhantomData<fn(T) -> M>,
}

impl<M, T, F> fmt::Debug for RemoteAsk<'_, M, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteAsk")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl<'a, M, T, F> RemoteAsk<'a, M, T, F>
where
    M: Remote,
    F: FnOnce(Reply<T>) -> M,
{
    pub(crate) fn new(stream: &'a Arc<Outgoing>, question: F) -> Self {
        RemoteAsk {
            stream,
            question,
            timeout: None,
            types: PhantomData,
        }
    }

    /// Sets how long the ask waits in all, from its first poll on. Without it there is no limit.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    async fn answer(self) -> Result<T, RemoteAskError> {
        let _hold = Runtime::try_current().map(|runtime| runtime.keep_alive());
        let timeout = self.timeout;
        let answer = ask(self.stream, self.question);
        match timeout {
            None => answer.await,
            Some(timeout) => match greenroom::time::timeout(timeout, answer).await {
                Ok(answer) => answer,
                Err(_) => Err(RemoteAskError::TimedOut),
            },
        }
    }
}

async fn ask<M: Remote, T>(
    stream: &Arc<Outgoing>,
    question: impl FnOnce(Reply<T>) -> M,
) -> Result<T, RemoteAskError> {
    let permit = stream.permit().await?;
    let (reply, answer) = Reply::pair();
    let cause = LossCause::of(&answer);
    let (link, asks) = {
        let message = question(reply);
        Outgoing::send(permit, &message, Some(cause.clone()))?
    };
    // Gives up the ask when the future is dropped. One that is complete is forgotten already, and
    // other replies in the question have askers of their own.
    let _given_up = AskGuard { link, asks };
    match answer.await {
        Ok(answer) => Ok(answer),
        Err(AskError::Refused(refusal)) => Err(RemoteAskError::Refused(refusal)),
        Err(other) => {
            let why = cause.take();
            Err(why.unwrap_or_else(|| RemoteAskError::NoReply(other.to_string())))
        }
    }
}

/// Gives up the asks of a question whose askers are gone.
struct AskGuard {
    link: Arc<Link>,
    asks: Vec<u64>,
}

impl Drop for AskGuard {
    fn drop(&mut self) {
        self.asks.iter().for_each(|ask| self.link.unwanted(*ask));
    }
}

impl<'a, M, T, F> IntoFuture for RemoteAsk<'a, M, T, F>
where
    M: Remote,
    T: Send + 'a,
    F: FnOnce(Reply<T>) -> M + Send + 'a,
{
    type Output = Result<T, RemoteAskError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.answer())
    }
}

//! The next message of a context as a future, and all messages as a stream.
//!
//! When the future of `recv` ends or is dropped, nothing wakes its task for the actor any more.

use futures_core::Stream;
use std::future::Future;
use std::panic::UnwindSafe;
use std::pin::Pin;
use std::task::Poll;

use super::{Context, end_wait};

impl<M> Context<M> {
    /// Receives the next message; returns `None` when the mailbox is closed and empty.
    ///
    /// The mailbox is closed by [`stop`](crate::Address::stop) and by a shutdown. `recv` itself
    /// closes it when it finds no message, while no address and no [source](Context::attach) is
    /// left. After it has returned `None`, the actor stays closed. A killed actor is dropped while
    /// it waits here, instead of receiving `None`. After a [`stop_now`](crate::Address::stop_now) it
    /// returns `None` although messages are left.
    ///
    /// A closed actor first receives what was accepted. Then `recv` stops its
    /// [children](Context::adopt) and returns their results, and only then `None`.
    ///
    /// `recv` yields after [`batch`](crate::Builder::batch) messages in one poll of the actor, so
    /// that other tasks can run. If another task or thread polls it, it yields after 32 messages,
    /// counted together with the other contexts that are polled there.
    ///
    /// # Cancel safety
    /// Cancel safe: if the future is dropped before it completes, no message was taken. So a
    /// [`timeout`](crate::time::timeout()) may limit the wait:
    ///
    /// ```
    /// use greenroom::time::{TimedOut, timeout};
    /// use greenroom::{Context, spawn};
    /// use std::time::Duration;
    ///
    /// async fn session(mut cx: Context<&'static str>) -> &'static str {
    ///     loop {
    ///         match timeout(Duration::from_millis(1), cx.recv()).await {
    ///             Ok(Some(text)) => println!("{text}"),
    ///             Ok(None) => return "closed",
    ///             Err(TimedOut) => return "idle",
    ///         }
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let session = spawn!(session(_));
    ///     let _keeps_open = session.address();
    ///     assert_eq!(session.join().await.unwrap(), "idle");
    /// });
    /// ```
    ///
    /// A `select!` of `futures` or tokio loses no message either:
    ///
    /// ```
    /// use futures::{FutureExt, SinkExt, StreamExt, channel::mpsc, select};
    /// use greenroom::{Context, spawn};
    /// async fn add(mut cx: Context<u64>, mut more: mpsc::Receiver<u64>, mut sum: u64) -> u64 {
    ///     loop {
    ///         sum += select! {
    ///             message = cx.recv().fuse() => match message {
    ///                 Some(number) => number,
    ///                 None => return sum,
    ///             },
    ///             number = more.select_next_some() => number,
    ///         };
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let (mut other, more) = mpsc::channel(0);
    ///     let total = spawn!(add(_, more, 0), capacity = 1);
    ///     for number in 1..=1000 {
    ///         other.send(number).await.unwrap();
    ///         total.send(number).await.unwrap();
    ///     }
    ///     other.flush().await.unwrap(); // the last one was received
    ///     assert_eq!(total.join().await.unwrap(), 1_001_000);
    /// });
    /// ```
    #[must_use = "nothing is received before it is awaited: `cx.recv().await`"]
    pub fn recv(&mut self) -> impl Future<Output = Option<M>> + use<'_, M> {
        Recv { context: self }
    }
}

/// The future of [`Context::recv`].
pub struct Recv<'a, M> {
    context: &'a mut Context<M>,
}

// As for `CoreArc`; a source that panics is dropped.
impl<M> UnwindSafe for Recv<'_, M> {}

impl<M> Future for Recv<'_, M> {
    type Output = Option<M>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Option<M>> {
        self.context.poll_recv(cx.waker())
    }
}

impl<M> Drop for Recv<'_, M> {
    #[inline]
    fn drop(&mut self) {
        let (core, reader) = self.context.parts();
        end_wait(core, reader);
    }
}

/// A stream of the messages, which ends when [`recv`](Context::recv) returns `None`.
///
/// ```
/// use futures::StreamExt;
/// use greenroom::{Context, spawn};
///
/// async fn longest(cx: Context<String>) -> usize {
///     cx.map(|text| text.len()).fold(0, |longest, len| async move { longest.max(len) }).await
/// }
///
/// greenroom::run(async {
///     let longest = spawn!(longest(_));
///     longest.tell("green".into()).unwrap();
///     longest.tell("room".into()).unwrap();
///     assert_eq!(longest.join().await.unwrap(), 5);
/// });
/// ```
impl<M> Stream for Context<M> {
    type Item = M;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Option<M>> {
        // The last poll of the stream may have left a wait in the mailbox, without a note here. The
        // note lets this poll end that wait. It is cleared again while the stream is pending, so
        // that dropping an unpolled `recv` does not end the stream's wait.
        self.parts().1.set_waits();
        let polled = self.poll_recv(cx.waker());
        if polled.is_pending() {
            self.parts().1.take_waits();
        }
        polled
    }
}

//! A context as the future of its next message, and as a stream of all.
//!
//! When the future of `recv` ends or is dropped, nothing wakes its task for the actor any more.

use futures_core::Stream;
use std::future::Future;
use std::panic::UnwindSafe;
use std::pin::Pin;
use std::task::Poll;

use super::{Context, end_wait};

/// The future of [`Context::recv`].
pub struct Recv<'a, M> {
    pub(super) context: &'a mut Context<M>,
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

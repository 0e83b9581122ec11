//! A context as a stream of its messages.

use std::pin::Pin;
use std::task::Poll;

use futures_core::Stream;

use super::Context;

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

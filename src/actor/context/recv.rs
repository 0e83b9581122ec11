//! The future of `recv`.
//!
//! When it ends or is dropped, nothing wakes its task for the actor any more.

use std::fmt;
use std::future::Future;
use std::panic::UnwindSafe;
use std::pin::Pin;
use std::task::Poll;

use super::{Context, done};

/// The future of [`Context::recv`].
#[must_use = "nothing is received before it is awaited: `cx.recv().await`"]
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
        done(core, reader);
    }
}

impl<M> fmt::Debug for Recv<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Recv").field(&self.context).finish()
    }
}

//! One call of a handler, whose panic becomes a value.
//!
//! # Invariants
//! - HANDLING-1: once polled, a future is not moved until it is dropped in place.
#![expect(
    unsafe_code,
    reason = "a future that is polled in place; see HANDLING-1"
)]

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::contain::{Panic, attempt, attempt_on};

/// The future of a call of a handler. Returns the panic of the call or of its future, which was
/// dropped while the panic unwound.
#[must_use = "futures do nothing unless polled"]
pub(super) enum Handling<Fut> {
    Running(Fut),
    /// The call has panicked before there was a future.
    Failed(Panic),
    Gone,
}

impl<Fut: Future<Output = ()>> Handling<Fut> {
    /// Calls a handler.
    #[inline]
    pub(super) fn new(handler: impl FnOnce() -> Fut) -> Self {
        match attempt(handler) {
            Ok(future) => Handling::Running(future),
            Err(panic) => Handling::Failed(panic),
        }
    }

    /// Takes the panic of the call.
    #[cold]
    fn take_panic(&mut self) -> Panic {
        match std::mem::replace(self, Handling::Gone) {
            Handling::Failed(panic) => panic,
            _ => unreachable!("a handler is not polled after its end"),
        }
    }
}

impl<Fut: Future<Output = ()>> Future for Handling<Fut> {
    type Output = Result<(), Panic>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Panic>> {
        // SAFETY: (HANDLING-1) a future is only polled and overwritten here.
        let this = unsafe { self.get_unchecked_mut() };
        let poll = |this: &mut Self| {
            let Handling::Running(future) = this else {
                return Poll::Ready(Err(this.take_panic()));
            };
            // SAFETY: (HANDLING-1) it is pinned, as this is.
            let polled = unsafe { Pin::new_unchecked(future) }.poll(cx);
            if polled.is_ready() {
                *this = Handling::Gone;
            }
            polled.map(Ok)
        };
        attempt_on(this, poll, |this| *this = Handling::Gone)
            .unwrap_or_else(|panic| Poll::Ready(Err(panic)))
    }
}

//! The contents of a cell over its life: the actor, then its future, then its result.
//!
//! # Invariants
//! - LIFECYCLE-1: once `Running`, the future is not moved until it is dropped in place.
//! - LIFECYCLE-2: user code (the call, the poll, the drops) may panic; no panic leaves this module.
#![expect(
    unsafe_code,
    reason = "the future is pinned inside the cell; see LIFECYCLE-1"
)]

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::contain::{Panic, attempt, attempt_on, contain};
use crate::error::Fault;
use crate::task::quota::Quota;

pub(super) enum Lifecycle<F, Fut, T> {
    /// Not polled yet: the function or closure that returns the future.
    Waiting(F),
    /// The future, and the number of messages that its next turn may handle. The quota's byte lies
    /// beside the tag.
    Running(Fut, Quota),
    Ended(Result<T, Fault>),
    Gone,
}

impl<F, Fut, T> Lifecycle<F, Fut, T>
where
    Fut: Future<Output = T>,
{
    /// Polls the future, which `begin` creates on the first call. While a panic unwinds, this calls
    /// `panicked` and drops the future.
    ///
    /// # Safety
    /// The lifecycle is not moved any more (LIFECYCLE-1).
    pub(super) unsafe fn poll(
        &mut self,
        begin: impl FnOnce(F) -> Fut,
        panicked: impl Fn(),
        cx: &mut Context<'_>,
    ) -> Poll<Result<T, Fault>> {
        let poll = |lifecycle: &mut Self| {
            if let Lifecycle::Waiting(_) = lifecycle {
                let Lifecycle::Waiting(actor) = std::mem::replace(lifecycle, Lifecycle::Gone)
                else {
                    unreachable!("checked just now")
                };
                *lifecycle = Lifecycle::Running(begin(actor), Quota::WHOLE);
            }
            match lifecycle {
                // SAFETY: (LIFECYCLE-1) guaranteed by the caller.
                Lifecycle::Running(future, _) => unsafe { Pin::new_unchecked(future) }.poll(cx),
                _ => unreachable!("an actor is polled only while it has a future"),
            }
        };
        let clear = |lifecycle: &mut Self| {
            panicked();
            lifecycle.clear();
        };
        match attempt_on(self, poll, clear) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
            Err(panic) => Poll::Ready(Err(Fault::Panicked(panic))),
        }
    }

    #[inline]
    pub(super) fn quota(&mut self) -> Quota {
        match self {
            Lifecycle::Running(_, quota) => *quota,
            _ => Quota::WHOLE,
        }
    }

    pub(super) fn set_quota(&mut self, next: Quota) {
        if let Lifecycle::Running(_, quota) = self {
            *quota = next;
        }
    }

    pub(super) fn has_begun(&self) -> bool {
        !matches!(self, Lifecycle::Waiting(_))
    }

    /// Drops the contents.
    pub(super) fn clear(&mut self) {
        let this: *mut Self = self;
        // SAFETY: (LIFECYCLE-1) dropped in place, then overwritten without a second drop, even
        // after a panic.
        unsafe {
            contain(|| this.drop_in_place());
            this.write(Lifecycle::Gone);
        }
    }

    /// Stores the result. The earlier contents were dropped before.
    pub(super) fn keep(&mut self, result: Result<T, Fault>) {
        debug_assert!(matches!(self, Lifecycle::Gone));
        *self = Lifecycle::Ended(result);
    }

    /// Returns the result, for a look.
    pub(super) fn result(&self) -> Option<&Result<T, Fault>> {
        match self {
            Lifecycle::Ended(result) => Some(result),
            _ => None,
        }
    }

    pub(super) fn take_result(&mut self) -> Option<Result<T, Fault>> {
        match std::mem::replace(self, Lifecycle::Gone) {
            Lifecycle::Ended(result) => Some(result),
            _ => None,
        }
    }
}

/// The future of one call: of what the function has returned. A panic of either is a fault.
///
/// It is no [`Lifecycle`], since each message of an actor in struct form is one call.
#[must_use = "futures do nothing unless polled"]
pub(super) enum Attempt<Fut> {
    Running(Fut),
    /// The function has panicked.
    Failed(Panic),
    Gone,
}

impl<Fut: Future> Attempt<Fut> {
    /// Calls the function.
    #[inline]
    pub(super) fn new(call: impl FnOnce() -> Fut) -> Self {
        match attempt(call) {
            Ok(future) => Attempt::Running(future),
            Err(panic) => Attempt::Failed(panic),
        }
    }

    /// Takes the panic of the function.
    #[cold]
    fn take_panic(&mut self) -> Panic {
        match std::mem::replace(self, Attempt::Gone) {
            Attempt::Failed(panic) => panic,
            _ => unreachable!("a call is polled only until its end"),
        }
    }
}

impl<Fut: Future> Future for Attempt<Fut> {
    type Output = Result<Fut::Output, Fault>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: (LIFECYCLE-1) it is pinned, and is polled and overwritten in place.
        let this = unsafe { self.get_unchecked_mut() };
        let poll = |this: &mut Self| match this {
            // SAFETY: (LIFECYCLE-1) as above.
            Attempt::Running(future) => unsafe { Pin::new_unchecked(future) }.poll(cx).map(Ok),
            _ => Poll::Ready(Err(this.take_panic())),
        };
        let polled = attempt_on(this, poll, |this| *this = Attempt::Gone);
        let polled = polled.unwrap_or_else(|panic| Poll::Ready(Err(panic)));
        if polled.is_ready() {
            contain(|| *this = Attempt::Gone);
        }
        polled.map(|result| result.map_err(Fault::Panicked))
    }
}

//! What a cell holds in the course of its life: the actor, then its future, then its result.
//!
//! # Invariants
//! - LIFECYCLE-1: once `Running`, the future is not moved until it is dropped in place.
//! - LIFECYCLE-2: user code (the call, the poll, the drops) may panic; none of its panics gets out of here.
#![expect(
    unsafe_code,
    reason = "the future is pinned inside the cell; see LIFECYCLE-1"
)]

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::contain::{attempt_on, contain};
use crate::error::Fault;
use crate::task::quota::Quota;

pub(super) enum Lifecycle<F, Fut, T> {
    /// Not polled yet: the function or closure that makes the future.
    Waiting(F),
    /// With how many messages its next turn may handle; the byte lies beside the tag.
    Running(Fut, Quota),
    Ended(Result<T, Fault>),
    Gone,
}

impl<F, Fut, T> Lifecycle<F, Fut, T>
where
    Fut: Future<Output = T>,
{
    /// Polls the future, made by `begin` at the first time. If that panics, the future is dropped while that
    /// unwinds, after a call of `panicked`.
    ///
    /// # Safety
    /// The lifecycle stays where it is for the rest of its life (LIFECYCLE-1).
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
                    unreachable!("looked at just now")
                };
                *lifecycle = Lifecycle::Running(begin(actor), Quota::WHOLE);
            }
            match lifecycle {
                // SAFETY: (LIFECYCLE-1) the caller's promise.
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

    /// Drops what is there.
    pub(super) fn clear(&mut self) {
        let this: *mut Self = self;
        // SAFETY: (LIFECYCLE-1) dropped in place, then overwritten without another drop, panic or not.
        unsafe {
            contain(|| this.drop_in_place());
            this.write(Lifecycle::Gone);
        }
    }

    /// Keeps the result; what was there is gone.
    pub(super) fn keep(&mut self, result: Result<T, Fault>) {
        debug_assert!(matches!(self, Lifecycle::Gone));
        *self = Lifecycle::Ended(result);
    }

    pub(super) fn take_result(&mut self) -> Option<Result<T, Fault>> {
        match std::mem::replace(self, Lifecycle::Gone) {
            Lifecycle::Ended(result) => Some(result),
            _ => None,
        }
    }
}

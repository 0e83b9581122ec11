//! The contents of a cell, or of an incarnation, over its life: the actor, then its future, then its
//! result.
//!
//! # Invariants
//! - LIFECYCLE-1: once `Running`, the future is not moved until it is dropped in place.
//! - LIFECYCLE-2: user code (the call, the poll, the drops) may panic; no panic leaves this module.
//! - LIFECYCLE-3: a part that was moved out is overwritten by `Gone`, without a drop.
#![expect(
    unsafe_code,
    reason = "the future is pinned inside the cell; see LIFECYCLE-1"
)]

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::contain::{
    Panic, Step, attempt_or_clear_uncounted, attempt_uncounted, contain_mut, contain_uncounted,
};
use crate::error::Fault;
use crate::task::quota::Quota;

pub(super) enum Lifecycle<F, Fut, T> {
    /// Not polled yet: what the future is made of. That is the function or closure of an actor, or the
    /// context of an incarnation.
    Waiting(F),
    /// The future, and the number of messages that its next turn may handle. The quota's byte lies
    /// beside the tag.
    Running(Fut, Quota),
    Ended(Result<T, Fault>),
    Gone,
}

/// What is notified of the end of a future, before the future is dropped.
pub(super) trait Completed {
    /// Notifies it. A panic of an observer is contained here: the future is dropped afterwards.
    fn completed(&self);
}

impl Completed for () {
    fn completed(&self) {}
}

impl<F, Fut, T> Lifecycle<F, Fut, T>
where
    Fut: Future<Output = T>,
{
    /// Polls the future, which `begin` creates on the first call. While a panic unwinds, this
    /// notifies `owner` and drops the future.
    ///
    /// # Safety
    /// The lifecycle is not moved any more (LIFECYCLE-1).
    pub(super) unsafe fn poll(
        &mut self,
        mut begin: impl FnMut(F) -> Fut,
        owner: &impl Completed,
        cx: &mut Context<'_>,
    ) -> Poll<Result<T, Fault>> {
        let mut polled = Poll::Pending;
        let attempted = attempt_or_clear_uncounted(&mut |step| match step {
            Step::Run => {
                if let Lifecycle::Waiting(_) = self {
                    self.begin(&mut begin);
                }
                let Lifecycle::Running(future, _) = self else {
                    unreachable!("an actor is polled only while it has a future")
                };
                // SAFETY: (LIFECYCLE-1) guaranteed by the caller.
                let now = unsafe { Pin::new_unchecked(future) }.poll(cx);
                // SAFETY: (LIFECYCLE-1) `polled` is borrowed here alone, and still `Pending`, which
                // needs no drop. An assignment would drop it, and move a large new value once more.
                unsafe { (&raw mut polled).write(now) };
            }
            Step::Clear => {
                owner.completed();
                self.clear();
            }
        });
        match (attempted, polled) {
            (Ok(()), Poll::Pending) => Poll::Pending,
            (Ok(()), Poll::Ready(value)) => Poll::Ready(Ok(value)),
            (Err(panic), _) => Poll::Ready(Err(Fault::Panicked(panic))),
        }
    }

    /// Creates the future. Not in `poll`, so that no copy of the future stays on the stack while it
    /// is polled.
    #[inline(never)]
    fn begin(&mut self, begin: &mut impl FnMut(F) -> Fut) {
        let Lifecycle::Waiting(actor) = self else {
            unreachable!("checked by the caller")
        };
        let actor: *const F = actor;
        // SAFETY: (LIFECYCLE-3) it is all that this state owns.
        let actor = unsafe { self.move_out(actor) };
        *self = Lifecycle::Running(begin(actor), Quota::WHOLE);
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
            contain_mut(&mut || this.drop_in_place());
            this.write(Lifecycle::Gone);
        }
    }

    /// Stores the result. The earlier contents were dropped before.
    pub(super) fn keep(&mut self, result: Result<T, Fault>) {
        debug_assert!(matches!(self, Lifecycle::Gone));
        let this: *mut Self = self;
        // SAFETY: (LIFECYCLE-3) nothing is left in its place.
        unsafe { this.write(Lifecycle::Ended(result)) };
    }

    /// Returns what was to be called, which never will be.
    #[cold]
    pub(super) fn refuse(&mut self) -> F {
        let Lifecycle::Waiting(actor) = self else {
            unreachable!("it was never run")
        };
        let actor: *const F = actor;
        // SAFETY: (LIFECYCLE-3) it is all that this state owns.
        let actor = unsafe { self.move_out(actor) };
        self.keep(Err(Fault::NotStarted));
        actor
    }

    /// Returns the result, for a look.
    pub(super) fn result(&self) -> Option<&Result<T, Fault>> {
        match self {
            Lifecycle::Ended(result) => Some(result),
            _ => None,
        }
    }

    pub(super) fn take_result(&mut self) -> Option<Result<T, Fault>> {
        let Lifecycle::Ended(result) = self else {
            return None;
        };
        let result: *const Result<T, Fault> = result;
        // SAFETY: (LIFECYCLE-3) it is all that this state owns.
        Some(unsafe { self.move_out(result) })
    }

    /// Moves a part out, and leaves nothing. `mem::replace` would move the room for a large future,
    /// too.
    ///
    /// # Safety
    /// The part is all that the state owns.
    unsafe fn move_out<P>(&mut self, part: *const P) -> P {
        let this: *mut Self = self;
        // SAFETY: (LIFECYCLE-3) it is read once, and no drop of it follows.
        unsafe {
            let part = part.read();
            this.write(Lifecycle::Gone);
            part
        }
    }
}

/// The future of one call: of what the function has returned. A panic of either is a fault.
///
/// It is no [`Lifecycle`], since each message of an actor in struct form is one call. It is made
/// and polled in a turn, or in a [counted](crate::contain::counted) call.
#[must_use = "futures do nothing unless polled"]
pub(super) enum Attempt<Fut> {
    Running(Fut),
    /// A large future. An optimized build creates it where it stays.
    #[cfg(debug_assertions)]
    Boxed(Pin<Box<Fut>>),
    /// The function has panicked.
    Failed(Panic),
    Gone,
}

impl<Fut: Future> Attempt<Fut> {
    /// Calls the function.
    #[inline]
    pub(super) fn new(call: impl FnOnce() -> Fut) -> Self {
        #[cfg(debug_assertions)]
        if const { crate::task::is_large::<Fut>() } {
            return match attempt_uncounted(|| Box::pin(call())) {
                Ok(future) => Attempt::Boxed(future),
                Err(panic) => Attempt::Failed(panic),
            };
        }
        match attempt_uncounted(call) {
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
        let mut polled = Poll::Pending;
        let attempted = attempt_or_clear_uncounted(&mut |step| match (step, &mut *this) {
            (Step::Clear, this) => *this = Attempt::Gone,
            (Step::Run, Attempt::Running(future)) => {
                // SAFETY: (LIFECYCLE-1) as above.
                polled = unsafe { Pin::new_unchecked(future) }.poll(cx).map(Ok);
            }
            #[cfg(debug_assertions)]
            (Step::Run, Attempt::Boxed(future)) => polled = future.as_mut().poll(cx).map(Ok),
            (Step::Run, this) => polled = Poll::Ready(Err(this.take_panic())),
        });
        if let Err(panic) = attempted {
            polled = Poll::Ready(Err(panic));
        }
        if polled.is_ready() {
            contain_uncounted(|| *this = Attempt::Gone);
        }
        polled.map(|result| result.map_err(Fault::Panicked))
    }
}

/// A large future on its own in memory, so that a pointer to it is moved.
///
/// Its name has the types by which an actor is called.
pub(super) struct Large<A, Fut>(Pin<Box<Fut>>, PhantomData<fn(A)>);

impl<A, Fut> Large<A, Fut> {
    pub(super) fn new(future: Fut) -> Self {
        Large(Box::pin(future), PhantomData)
    }
}

impl<A, Fut: Future> Future for Large<A, Fut> {
    type Output = Fut::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Fut::Output> {
        self.0.as_mut().poll(cx)
    }
}

//! The asker's end of a slot: the future of an answer.
//!
//! It takes the outcome once. A second poll usually follows the wake-up by the outcome, so it looks
//! at the slot without the lock.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::reply::{self, AskState, Notified, Reply, ReplySlot, wake_or_drop};
use crate::error::{AskDetail, AskError};
use crate::instant;
use crate::lock::OneshotEnd;
use crate::runtime::deadlock::Listing;
use crate::runtime::{DueEffects, context};
use crate::sync::Process;
use crate::waker::KeptWaker;

/// Creates a reply, and the answer that it will give.
///
/// Give away the reply, and wait for the answer as an asker does. The answer keeps no actor open.
///
/// ```
/// use greenroom::{Context, Reply, spawn};
///
/// async fn doubler(mut cx: Context<(u32, Reply<u32>)>) {
///     while let Some((number, reply)) = cx.recv().await {
///         reply.send(number * 2);
///     }
/// }
///
/// greenroom::run(async {
///     let doubler = spawn!(doubler(_));
///     let (reply, answer) = greenroom::reply();
///     doubler.tell((21, reply)).unwrap();
///     assert_eq!(answer.await, Ok(42));
/// });
/// ```
pub fn reply<T>() -> (Reply<T>, Answer<T>) {
    // In a simulation the outcome may take effect later, which is noted as for a listed ask.
    let listing = instant::is_simulated().then(|| Listing::alone(None));
    let (theirs, ours) = OneshotEnd::pair(AskState::new(listing));
    (Reply::new(theirs), Answer::new(ours, Process::current()))
}

/// The future of the answer of a [`reply`](reply()).
///
/// It completes when the reply was answered, refused or dropped.
///
/// # Errors
/// - [`AskError::NoReply`] if the reply was dropped.
/// - [`AskError::Refused`] if the reply was refused.
///
/// # Cancel safety
/// Dropping the answer makes [`Reply::is_wanted`] return false, and loses nothing else.
#[must_use = "futures do nothing unless polled"]
pub struct Answer<T> {
    /// `None` once the outcome was taken.
    slot: Option<ReplySlot<T>>,
    /// Whether it was polled before.
    has_waited: bool,
    /// The process of the actor that is asked.
    pub(super) process: Process,
}

impl<T> Answer<T> {
    pub(super) fn new(slot: ReplySlot<T>, process: Process) -> Self {
        Answer {
            slot: Some(slot),
            has_waited: false,
            process,
        }
    }

    /// Leaves the waker in the slot. If there is an outcome, wakes it at once: the question may have
    /// completed its reply, or given it to another thread.
    pub(super) fn register(&mut self, waker: KeptWaker) {
        self.has_waited = true;
        let mut waker = Some(waker);
        let Some(end) = &mut self.slot else { return };
        end.with(|slot| match slot {
            AskState::Open(left) => std::mem::swap(left, &mut waker),
            other => {
                other.listing().map(|listing| listing.leave(&mut waker));
            }
        });
        if let Some(unneeded) = waker {
            unneeded.wake();
        }
    }

    /// Returns whether the reply was completed and the outcome not taken.
    pub(super) fn is_complete(&self) -> bool {
        self.slot.as_ref().is_some_and(OneshotEnd::is_alone)
    }

    // Inlined by force: a call and its moves cost 3 % of an ask.
    #[inline(always)]
    pub(super) fn poll_now(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, AskError>> {
        let Some(end) = &mut self.slot else {
            return Poll::Ready(Err(lost_before()));
        };
        // A second poll usually follows the wake-up by the answer, so no waker is needed.
        if self.has_waited && end.is_alone() {
            return Poll::Ready(self.take_outcome());
        }
        self.has_waited = true;
        let mut waker = Some(KeptWaker::new(cx.waker()));
        let is_open = end.with(|slot| match slot {
            AskState::Open(left) => {
                std::mem::swap(left, &mut waker);
                Some(true)
            }
            AskState::Observed(_) => Some(false),
            _ => None,
        });
        match is_open {
            Some(true) => Poll::Pending,
            Some(false) => self.poll_listed(waker),
            None => Poll::Ready(self.take_outcome()),
        }
    }

    /// Takes the outcome and gives up the slot.
    #[inline(always)]
    pub(super) fn take_outcome(&mut self) -> Result<T, AskError> {
        let Some(end) = self.slot.take() else {
            return Err(lost_before());
        };
        let outcome = end.finish(|slot| match std::mem::replace(slot, AskState::Unwanted) {
            AskState::Answered(answer) => Ok(answer),
            other => Err(other),
        });
        outcome.or_else(reply::outcome_of)
    }

    /// Polls an ask that is or was listed. It stays pending if the ask never was.
    #[cold]
    #[inline(never)]
    pub(super) fn poll_listed(
        &mut self,
        mut waker: Option<KeptWaker>,
    ) -> Poll<Result<T, AskError>> {
        let is_over = self.slot.as_mut().is_none_or(|end| {
            end.with(|slot| match slot {
                AskState::Open(_) => false,
                other => {
                    (other.listing()).is_none_or(|listing| listing.leave(&mut waker).is_some())
                }
            })
        });
        if is_over {
            Poll::Ready(self.take_outcome())
        } else {
            Poll::Pending
        }
    }
}

/// Returns the error of an ask whose outcome was taken before.
#[cold]
fn lost_before() -> AskError {
    AskError::NoReply(AskDetail::default())
}

impl<T> Future for Answer<T> {
    type Output = Result<T, AskError>;

    /// Waits until the reply is completed.
    ///
    /// # Panics
    /// If it is polled again after completion.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(self.slot.is_some(), "an answer polled after it was ready");
        let polled = self.poll_now(cx);
        if polled.is_pending() {
            self.process.check();
        }
        polled
    }
}

impl<T> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("ready", &self.slot.is_none())
            .finish()
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        let Some(end) = self.slot.take() else {
            return;
        };
        if self.process.is_current() {
            // Earlier effects of this turn precede the drop, which makes the reply unwanted. In a
            // failed run the listing stays, since the report still looks for the reply's holder.
            let stays = context::simulated(|engine, runtime| {
                engine.apply(runtime, DueEffects::Own);
                engine.has_failed()
            });
            let left = end.finish(|slot| match slot {
                listed if listed.listing().is_some() && stays == Some(true) => AskState::Unwanted,
                _ => std::mem::replace(slot, AskState::Unwanted),
            });
            wake_or_drop(left, Notified::Nobody);
        } else {
            // A thread of the parent process may have held the slot at the fork.
            std::mem::forget(end);
        }
    }
}

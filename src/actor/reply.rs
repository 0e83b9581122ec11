//! A question and the right to answer it: `Ask` waits, `Reply` answers, once.
//!
//! Both ends share one slot behind a lock. Whichever way it ends, the asker hears of it exactly
//! once: an answer, that the reply is gone, or that nobody is left to answer.

#![expect(unsafe_code, reason = "an answer takes the slot out of its reply")]

#[cfg(all(test, greenroom_loom))]
mod loom;

use std::fmt;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pin_project_lite::pin_project;

use super::address::{Address, Sending};
use super::run;
use crate::contain::contain;
use crate::error::AskError;
use crate::lock::Lock;
use crate::runtime::asks::{self, Listing};
use crate::sync::mutant;
use crate::time::Sleep;

enum Slot<T> {
    /// No answer yet; the asker may have left its waker.
    Open(Option<Waker>),
    /// The same, where deadlocks are detected: the waker is left there, and the end by deadlock is
    /// found there, which counts if it came first.
    Listed(Listing),
    Answered(T),
    /// The reply was dropped without an answer.
    Dropped,
    /// The asker is gone, or has its answer.
    Unwanted,
}

/// The right to answer an [`ask`](Address::ask), once.
///
/// It can be sent to another actor, and be used later. Dropping it without an answer gives the
/// asker [`AskError::NoReply`].
#[must_use = "dropping a reply gives the asker an error"]
pub struct Reply<T> {
    slot: Arc<Lock<Slot<T>>>,
}

impl<T> Reply<T> {
    /// Answers. If the asker is gone the answer is dropped.
    pub fn send(self, answer: T) {
        let reply = ManuallyDrop::new(self);
        // SAFETY: the reply is not used any more, nor dropped: that would look at the slot again.
        let slot = unsafe { std::ptr::read(&raw const reply.slot) };
        settle(&slot, Slot::Answered(answer));
    }

    /// Whether the asker still waits; an answer that is costly and unwanted need not be made.
    pub fn is_wanted(&self) -> bool {
        self.slot.with(|slot| match slot {
            Slot::Open(_) => true,
            Slot::Listed(listing) => listing.is_waiting(),
            _ => false,
        })
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        settle(&self.slot, Slot::Dropped);
    }
}

/// The first settlement counts; what is not needed is dropped outside the lock.
fn settle<T>(shared: &Lock<Slot<T>>, outcome: Slot<T>) {
    let previous = shared.with(|slot| match slot {
        Slot::Open(_) => Ok(std::mem::replace(slot, outcome)),
        Slot::Listed(_) => Err(outcome),
        _ => Ok(outcome),
    });
    match previous {
        Ok(Slot::Open(Some(_))) if mutant("asker_is_not_woken") => {}
        Ok(Slot::Open(Some(waker))) => contain(|| waker.wake()),
        Ok(unneeded) => contain(|| drop(unneeded)),
        Err(outcome) => settle_listed(shared, outcome),
    }
}

/// The same for one that is listed, or was until now.
#[cold]
#[inline(never)]
fn settle_listed<T>(shared: &Lock<Slot<T>>, outcome: Slot<T>) {
    let (waker, unneeded) = shared.with(|slot| match slot {
        Slot::Listed(listing) => match listing.settle() {
            Some(waker) => (waker, std::mem::replace(slot, outcome)),
            None => (None, outcome),
        },
        _ => (None, outcome),
    });
    contain(|| drop(unneeded));
    if let Some(waker) = waker {
        contain(|| waker.wake());
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("wanted", &self.is_wanted())
            .finish()
    }
}

/// The asker's end of a slot.
struct Answer<T> {
    slot: Arc<Lock<Slot<T>>>,
    /// It was polled before.
    has_waited: bool,
    /// What it was settled with was taken.
    is_settled: bool,
}

impl<T> Answer<T> {
    fn new(slot: Arc<Lock<Slot<T>>>) -> Self {
        Answer {
            slot,
            has_waited: false,
            is_settled: false,
        }
    }

    // Forced: a call, and what it moves, costs 3 % of an ask.
    #[inline(always)]
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, AskError>> {
        // Whoever polls again has been woken, most likely by the answer: no waker will be needed.
        if self.has_waited
            && let Some(settled) = self.take()
        {
            return Poll::Ready(settled);
        }
        self.has_waited = true;
        let mut waker = Some(cx.waker().clone());
        let mut is_listed = false;
        let polled = self.slot.with(|slot| match slot {
            Slot::Open(left) => {
                std::mem::swap(left, &mut waker);
                None
            }
            Slot::Listed(_) => {
                is_listed = true;
                None
            }
            _ => Some(std::mem::replace(slot, Slot::Unwanted)),
        });
        match polled {
            None if is_listed => self.poll_listed(waker),
            None => Poll::Pending,
            Some(settled) => Poll::Ready(self.open(settled)),
        }
    }

    /// What it was settled with, if it is.
    #[inline(always)]
    fn take(&mut self) -> Option<Result<T, AskError>> {
        let settled = self.slot.with(|slot| match slot {
            Slot::Open(_) | Slot::Listed(_) => None,
            _ => Some(std::mem::replace(slot, Slot::Unwanted)),
        })?;
        Some(self.open(settled))
    }

    #[inline(always)]
    fn open(&mut self, settled: Slot<T>) -> Result<T, AskError> {
        self.is_settled = true;
        match settled {
            Slot::Answered(answer) => Ok(answer),
            _ => Err(AskError::NoReply),
        }
    }

    /// The same for one that is listed, or was until now; with one that is not, nothing is done.
    #[cold]
    #[inline(never)]
    fn poll_listed(&mut self, mut waker: Option<Waker>) -> Poll<Result<T, AskError>> {
        let mut deadlock = None;
        let polled = self.slot.with(|slot| {
            match slot {
                Slot::Open(_) => return None,
                Slot::Listed(listing) => {
                    deadlock = listing.leave(&mut waker);
                    deadlock.as_ref()?;
                }
                _ => {}
            }
            Some(std::mem::replace(slot, Slot::Unwanted))
        });
        match (polled, deadlock) {
            (None, _) => Poll::Pending,
            (Some(Slot::Listed(_)), Some(deadlock)) => {
                Poll::Ready(Err(AskError::Deadlock(deadlock)))
            }
            (Some(settled), _) => Poll::Ready(self.open(settled)),
        }
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        let left = self
            .slot
            .with(|slot| std::mem::replace(slot, Slot::Unwanted));
        contain(|| drop(left));
    }
}

pin_project! {
    /// The future of [`Address::ask`].
    #[must_use = "futures do nothing unless polled"]
    pub struct Ask<'a, M, T, F> {
        step: Step<'a, M, T, F>,
        patience: Option<Duration>,
        // Armed with the first poll.
        #[pin]
        deadline: Option<Sleep>,
    }
}

enum Step<'a, M, T, F> {
    Question(&'a Address<M>, F),
    /// The question waits for room, or was delivered (`None`).
    Waiting(Option<Sending<'a, M>>, Answer<T>),
    Over,
}

impl<'a, M, T, F: FnOnce(Reply<T>) -> M> Ask<'a, M, T, F> {
    pub(super) fn new(address: &'a Address<M>, question: F) -> Self {
        Ask {
            step: Step::Question(address, question),
            patience: None,
            deadline: None,
        }
    }

    /// Gives up with [`AskError::TimedOut`] after `duration`, counted from the first poll.
    ///
    /// A second call replaces the first.
    ///
    /// # Panics
    /// As [`sleep`](crate::time::sleep): the future does, outside any runtime, if the process's timer
    /// thread can't be started.
    pub fn timeout(mut self, duration: Duration) -> Self {
        self.patience = Some(duration);
        self
    }
}

impl<M, T, F: FnOnce(Reply<T>) -> M> Future for Ask<'_, M, T, F> {
    type Output = Result<T, AskError>;

    /// # Panics
    /// If it is polled again after it was ready.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Step::Question(..) = this.step {
            let Step::Question(address, question) = std::mem::replace(this.step, Step::Over) else {
                unreachable!("looked at just now")
            };
            this.deadline.set(this.patience.map(crate::time::sleep));
            let listing = asks::list(|| (run::info(), address.actor().info()));
            let slot = listing.map_or(Slot::Open(None), Slot::Listed);
            let slot = Arc::new(Lock::new(slot));
            let answer = Answer::new(slot.clone());
            *this.step = Step::Waiting(Some(address.send(question(Reply { slot }))), answer);
        }
        let Step::Waiting(send, answer) = this.step else {
            panic!("`ask` polled after it was ready")
        };
        let mut polled = Poll::Pending;
        if let Some(sending) = send {
            match Pin::new(sending).poll(cx) {
                Poll::Ready(Ok(())) => *send = None,
                Poll::Ready(Err(refused)) => {
                    contain(|| drop(refused));
                    polled = Poll::Ready(Err(AskError::Closed));
                }
                // It may be ended as a deadlock before there is room.
                Poll::Pending => polled = answer.poll_listed(Some(cx.waker().clone())),
            }
        }
        if send.is_none() {
            polled = answer.poll(cx);
        }
        if polled.is_pending()
            && let Some(deadline) = this.deadline.as_pin_mut()
        {
            polled = deadline.poll(cx).map(|()| Err(AskError::TimedOut));
        }
        if polled.is_ready() {
            *this.step = Step::Over;
        }
        polled
    }
}

impl<M, T, F> fmt::Debug for Ask<'_, M, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.step {
            Step::Question(..) => "Ask(not sent)",
            Step::Waiting(Some(_), _) => "Ask(waiting for room)",
            Step::Waiting(None, _) => "Ask(waiting for the answer)",
            Step::Over => "Ask(over)",
        })
    }
}

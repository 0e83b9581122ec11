//! A question and the right to answer it: an `Ask` waits, and a `Reply` answers once.
//!
//! Both share one slot, and each owns an end of it. The asker observes exactly one outcome: an
//! answer, a dropped reply, or an end by deadlock.

#[cfg(all(test, greenroom_loom))]
mod loom;

use std::fmt;
use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pin_project_lite::pin_project;

use super::lead::Lead;
use super::sending::SendFuture;
use crate::contain::contain;
use crate::error::{AskError, TellError};
use crate::lock::OneshotEnd;
use crate::runtime::deadlock::Listing;
use crate::runtime::{Deferred, Done, context, list_ask};
use crate::sync::{Process, mutant};
use crate::task::run;
use crate::time::Sleep;
use crate::timers::Kind;

enum AskState<T> {
    /// Not answered yet; the asker may have left its waker.
    Open(Option<Waker>),
    /// Not answered yet, on a runtime that detects deadlocks. The listing holds the waker, and the
    /// end by deadlock if that came first.
    Listed(Listing),
    Answered(T),
    /// Answered (`Some`) or dropped (`None`) in a split turn of a simulation. It takes effect as
    /// that turn's effect with this number.
    Deferred(Option<T>, u32),
    /// The reply was dropped without an answer.
    Dropped,
    /// The asker was dropped, or has its outcome.
    Unwanted,
}

/// The right to answer an [`ask`](crate::Address::ask), once.
///
/// A reply can be sent to another actor, stored, and answered later, from any thread. Dropping it
/// without an answer ends the ask with [`AskError::NoReply`].
///
/// ```
/// use greenroom::{Context, Reply, spawn};
///
/// enum Slot {
///     Set(u32),
///     Get(Reply<u32>),
/// }
///
/// /// Keeps the replies until it has a value.
/// async fn slot(mut cx: Context<Slot>) {
///     let (mut value, mut waiting) = (None, Vec::new());
///     while let Some(message) = cx.recv().await {
///         match message {
///             Slot::Set(number) => value = Some(number),
///             Slot::Get(reply) => waiting.push(reply),
///         }
///         if let Some(value) = value {
///             for reply in waiting.drain(..) {
///                 reply.send(value);
///             }
///         }
///     }
/// }
///
/// greenroom::run(async {
///     let slot = spawn!(slot(_));
///     let set = async { slot.tell(Slot::Set(42)) };
///     let (answer, told) = futures::join!(slot.ask(Slot::Get), set);
///     assert_eq!(answer, Ok(42));
///     told.unwrap();
/// });
/// ```
#[must_use = "dropping a reply without an answer ends the ask with an error"]
pub struct Reply<T> {
    /// `None` once the slot is settled.
    slot: Option<OneshotEnd<AskState<T>>>,
}

impl<T> Reply<T> {
    fn new(slot: OneshotEnd<AskState<T>>) -> Self {
        Reply { slot: Some(slot) }
    }

    /// Sends the answer to the asker, without waiting. If the asker is gone, the answer is dropped.
    pub fn send(mut self, answer: T) {
        self.settle(AskState::Answered(answer));
    }

    /// Returns whether the asker still waits.
    ///
    /// It is false once the ask was dropped or has timed out. An actor can then skip the work for
    /// the answer.
    pub fn is_wanted(&self) -> bool {
        let looked = self.slot.as_ref().and_then(|end| {
            end.look(|slot| match slot {
                AskState::Open(_) => true,
                AskState::Listed(listing) => listing.is_waiting(),
                _ => false,
            })
        });
        looked.unwrap_or(false)
    }

    /// Settles the slot and wakes the asker. Unneeded values are dropped after the lock is
    /// released.
    // Inlined by force, so that the outcome is written in place.
    #[inline(always)]
    fn settle(&mut self, outcome: AskState<T>) {
        let Some(end) = self.slot.take() else {
            return;
        };
        let mut listed = Told::Nobody;
        let previous = end.finish(|slot| match slot {
            AskState::Open(_) => std::mem::replace(slot, outcome),
            AskState::Listed(listing) => {
                let (previous, told) = settle_listed(listing.settle(), slot, outcome);
                listed = told;
                previous
            }
            _ => outcome,
        });
        match previous {
            AskState::Open(Some(_)) if mutant("asker_is_not_woken") => {}
            AskState::Open(Some(waker)) => contain(|| waker.wake()),
            AskState::Open(None) => {}
            unneeded => wake_or_drop(unneeded, listed),
        }
    }
}

/// How the asker is woken after its reply was settled.
enum Told {
    Nobody,
    Now(Waker),
    /// As an effect of a split turn; the waker is there if the asker waits.
    Later(Option<Waker>),
}

#[cold]
#[inline(never)]
fn wake_or_drop<T>(unneeded: AskState<T>, told: Told) {
    match told {
        Told::Later(waker) => {
            let _ = context::simulated(|engine, runtime| {
                engine.defer(runtime, Deferred::Answer(waker))
            });
            contain(|| drop(unneeded));
        }
        Told::Nobody => contain(|| drop(unneeded)),
        Told::Now(waker) => {
            contain(|| drop(unneeded));
            contain(|| waker.wake());
        }
    }
}

/// Settles a listed ask. An end by deadlock wins if it came first.
#[cold]
#[inline(never)]
fn settle_listed<T>(
    settled: Option<Option<Waker>>,
    slot: &mut AskState<T>,
    outcome: AskState<T>,
) -> (AskState<T>, Told) {
    let Some(waker) = settled else {
        return (outcome, Told::Nobody);
    };
    if let (AskState::Listed(listing), AskState::Dropped) = (&*slot, &outcome) {
        let key = listing.key();
        let _ = context::simulated(|engine, _| engine.reply_dropped(key));
    }
    let number = context::simulated(|engine, _| engine.next_effect()).flatten();
    let (outcome, told) = match (number, outcome) {
        (Some(number), AskState::Answered(answer)) => {
            let deferred = AskState::Deferred(Some(answer), number);
            (deferred, Told::Later(waker))
        }
        (Some(number), AskState::Dropped) => (AskState::Deferred(None, number), Told::Later(waker)),
        (_, outcome) => (outcome, waker.map_or(Told::Nobody, Told::Now)),
    };
    (std::mem::replace(slot, outcome), told)
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        self.settle(AskState::Dropped);
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
    /// `None` once the outcome was taken.
    slot: Option<OneshotEnd<AskState<T>>>,
    /// Whether it was polled before.
    has_waited: bool,
    /// The process of the actor that is asked.
    process: Process,
}

impl<T> Answer<T> {
    fn new(slot: OneshotEnd<AskState<T>>, process: Process) -> Self {
        Answer {
            slot: Some(slot),
            has_waited: false,
            process,
        }
    }

    // Inlined by force: a call and its moves cost 3 % of an ask.
    #[inline(always)]
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, AskError>> {
        let Some(end) = &mut self.slot else {
            return Poll::Ready(Err(AskError::NoReply));
        };
        // A second poll usually follows the wake-up by the answer, so no waker is needed.
        if self.has_waited && end.is_alone() {
            return Poll::Ready(self.hear());
        }
        self.has_waited = true;
        let mut waker = Some(cx.waker().clone());
        let is_open = end.with(|slot| match slot {
            AskState::Open(left) => {
                std::mem::swap(left, &mut waker);
                Some(true)
            }
            AskState::Listed(_) => Some(false),
            _ => None,
        });
        match is_open {
            Some(true) => Poll::Pending,
            Some(false) => self.poll_listed(waker),
            None => Poll::Ready(self.hear()),
        }
    }

    /// Takes the outcome and gives up the slot.
    #[inline(always)]
    fn hear(&mut self) -> Result<T, AskError> {
        let Some(end) = self.slot.take() else {
            return Err(AskError::NoReply);
        };
        let settled = end.finish(|slot| match std::mem::replace(slot, AskState::Unwanted) {
            AskState::Answered(answer) => Ok(answer),
            other => Err(other),
        });
        settled.or_else(hear_rare)
    }

    /// Polls an ask that is or was listed. It stays pending if the ask never was.
    #[cold]
    #[inline(never)]
    fn poll_listed(&mut self, mut waker: Option<Waker>) -> Poll<Result<T, AskError>> {
        let is_over = self.slot.as_mut().is_none_or(|end| {
            end.with(|slot| match slot {
                AskState::Open(_) => false,
                AskState::Listed(listing) => listing.leave(&mut waker).is_some(),
                _ => true,
            })
        });
        if is_over {
            Poll::Ready(self.hear())
        } else {
            Poll::Pending
        }
    }
}

/// Returns an outcome that is not a plain answer.
#[cold]
fn hear_rare<T>(settled: AskState<T>) -> Result<T, AskError> {
    match settled {
        AskState::Listed(listing) => Err(listing
            .leave(&mut None)
            .map_or(AskError::NoReply, AskError::Deadlock)),
        AskState::Deferred(answer, number) => {
            let _ = context::simulated(|engine, runtime| {
                engine.settle(runtime, Done::ToAnswer(number))
            });
            answer.ok_or(AskError::NoReply)
        }
        _ => Err(AskError::NoReply),
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
                engine.settle(runtime, Done::Own);
                engine.has_failed()
            });
            let left = end.finish(|slot| match slot {
                AskState::Listed(_) if stays == Some(true) => AskState::Unwanted,
                _ => std::mem::replace(slot, AskState::Unwanted),
            });
            wake_or_drop(left, Told::Nobody);
        } else {
            // A thread of the parent process may have held the slot at the fork.
            std::mem::forget(end);
        }
    }
}

pin_project! {
    /// The future of [`Address::ask`](crate::Address::ask).
    #[must_use = "futures do nothing unless polled"]
    pub struct Ask<'a, M, T, F> {
        phase: AskPhase<'a, M, T, F>,
        patience: Option<Duration>,
        // Armed by the first poll.
        #[pin]
        deadline: Option<Sleep>,
    }
}

enum AskPhase<'a, M, T, F> {
    Question(Lead<'a, M>, Option<F>),
    /// The message waits for room (`Some`) or was delivered (`None`).
    Waiting(Option<SendFuture<'a, M>>, Answer<T>),
    Over,
}

// As for `Address`. The question is called once, and a panic of it leaves nothing behind.
impl<M, T, F> UnwindSafe for Ask<'_, M, T, F> {}
impl<M, T, F> RefUnwindSafe for Ask<'_, M, T, F> {}

impl<'a, M, T, F: FnOnce(Reply<T>) -> M> Ask<'a, M, T, F> {
    pub(super) fn new(lead: Lead<'a, M>, question: F) -> Self {
        Ask {
            phase: AskPhase::Question(lead, Some(question)),
            patience: None,
            deadline: None,
        }
    }

    /// Limits the ask to `duration`, measured from the first poll.
    ///
    /// After that the ask ends with [`AskError::TimedOut`]. The limit covers the wait for room and
    /// the wait for the answer. A second call replaces the first.
    ///
    /// On a runtime that [detects deadlocks](crate::Builder::detect_deadlocks), an ask that leads
    /// to a cycle of waiting actors ends earlier, with [`AskError::Deadlock`]. With
    /// [`time::timeout`](crate::time::timeout) around the ask it does not, since that is an
    /// ordinary timer.
    ///
    /// # Panics
    /// As [`sleep`](crate::time::sleep): the future panics outside any runtime, if the process's
    /// timer thread cannot be started.
    ///
    /// ```
    /// use greenroom::{AskError, Context, Reply, spawn};
    /// use std::time::Duration;
    ///
    /// /// Keeps every reply and never answers.
    /// async fn silent(mut cx: Context<Reply<u32>>) {
    ///     let mut replies = Vec::new();
    ///     while let Some(reply) = cx.recv().await {
    ///         replies.push(reply);
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let silent = spawn!(silent(_));
    ///     let ask = silent.ask(|reply| reply).timeout(Duration::from_millis(5));
    ///     assert_eq!(ask.await, Err(AskError::TimedOut));
    /// });
    /// ```
    pub fn timeout(mut self, duration: Duration) -> Self {
        self.patience = Some(duration);
        self
    }
}

impl<M, T, F: FnOnce(Reply<T>) -> M> Future for Ask<'_, M, T, F> {
    type Output = Result<T, AskError>;

    /// Sends the message on the first poll, then waits for the answer.
    ///
    /// # Panics
    /// If it is polled again after completion, or in a child of `fork` if the actor's runtime
    /// belongs to the parent process.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let mut kind = Kind::Event;
        if let AskPhase::Question(lead, question) = this.phase
            && let (lead, Some(question)) = (*lead, question.take())
        {
            let process = lead.checked_process();
            this.deadline.set(this.patience.map(crate::time::sleep));
            let deadline = this.deadline.as_ref().get_ref().as_ref();
            let has_time_out = deadline.is_some_and(Sleep::ends);
            let listing = list_ask(has_time_out, || (run::actor(), lead.view().info()));
            kind = listing.as_ref().map_or(kind, Listing::kind);
            let (theirs, ours) =
                OneshotEnd::pair(listing.map_or(AskState::Open(None), AskState::Listed));
            // Set before the call, so that a panic of the question leaves a valid phase.
            *this.phase = AskPhase::Waiting(None, Answer::new(ours, process));
            match lead.tell(question(Reply::new(theirs))) {
                Ok(()) => {}
                Err(TellError::Full(question)) => {
                    if let AskPhase::Waiting(send, _) = this.phase {
                        *send = Some(SendFuture::new(lead, question));
                    }
                }
                Err(TellError::Closed(refused)) => {
                    *this.phase = AskPhase::Over;
                    contain(|| drop(refused));
                    return Poll::Ready(Err(AskError::Closed));
                }
            }
        }
        let AskPhase::Waiting(send, answer) = this.phase else {
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
                // The ask may end as a deadlock before there is room.
                Poll::Pending => polled = answer.poll_listed(Some(cx.waker().clone())),
            }
        }
        if send.is_none() {
            polled = answer.poll(cx);
        }
        if polled.is_pending()
            && let Some(deadline) = this.deadline.as_pin_mut()
        {
            let over = deadline.get_mut().poll_as(kind, cx);
            polled = over.map(|()| Err(AskError::TimedOut));
        }
        if polled.is_ready() {
            *this.phase = AskPhase::Over;
        } else {
            answer.process.check();
        }
        polled
    }
}

impl<M, T, F> fmt::Debug for Ask<'_, M, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.phase {
            AskPhase::Question(..) => "Ask(not sent)",
            AskPhase::Waiting(Some(_), _) => "Ask(waiting for room)",
            AskPhase::Waiting(None, _) => "Ask(waiting for the answer)",
            AskPhase::Over => "Ask(over)",
        })
    }
}

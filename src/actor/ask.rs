//! A request to an actor, as a future: it sends the question and waits for the answer.
//!
//! The question is sent by the first poll, and never again. The asker observes exactly one outcome.
//! An [`Answer`] is the asker's end of the reply's slot. It takes the outcome once. A second poll
//! usually follows the wake-up by the outcome, so it looks at the slot without the lock.

use std::fmt;
use std::future::Future;
use std::mem;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;

use super::recipient::RecipientRef;
use super::reply::{self, AskState, Notified, Reply, ReplySlot, wake_or_drop};
use super::sending::SendFuture;
use crate::contain::{KeptWaker, contain};
use crate::error::{AskDetail, AskError, TellError};
use crate::instant;
use crate::lock::OneshotEnd;
use crate::runtime::deadlock::Listing;
use crate::runtime::{DueEffects, context, list_ask};
use crate::sync::Process;
use crate::task::{TaskInfo, WaitsFor, run};
use crate::time::Sleep;
use crate::timers::DeadlineKind;

pin_project! {
    /// The future of [`Address::ask`](crate::Address::ask).
    #[must_use = "futures do nothing unless polled"]
    pub struct Ask<'a, M, T, F> {
        recipient: RecipientRef<'a, M>,
        phase: AskPhase<'a, M, T, F>,
        patience: Option<Duration>,
        // Armed by the first poll; removed with the future, not by the answer.
        #[pin]
        deadline: Option<Sleep>,
    }
}

enum AskPhase<'a, M, T, F> {
    Question(Option<F>),
    /// Of a request in flight whose message was refused. It is never polled so: `wait_for_room` makes it
    /// `Waiting`, and in a closed mailbox it only keeps the message until its answer was dropped.
    Unsent(SendFuture<'a, M>),
    /// The message waits for room (`Some`) or was delivered (`None`).
    Waiting(Option<SendFuture<'a, M>>, Answer<T>),
    Over,
}

impl<'a, M, T, F> AskPhase<'a, M, T, F> {
    /// Lets a refused question wait for room. In a closed mailbox the ask ends with this error.
    #[cold]
    #[inline(never)]
    fn wait_or_end(&mut self, to: RecipientRef<'a, M>, refused: TellError<M>) -> Option<AskError> {
        if let AskPhase::Waiting(send, _) = self
            && refused.is_full()
        {
            *send = Some(SendFuture::new(to, refused.into_inner()));
            return None;
        }
        *self = AskPhase::Over;
        let error = to.closed_error();
        contain(|| drop(refused));
        Some(error)
    }
}

// As for `Address`. The question is called once, and a panic of it leaves nothing behind.
impl<M, T, F> UnwindSafe for Ask<'_, M, T, F> {}
impl<M, T, F> RefUnwindSafe for Ask<'_, M, T, F> {}

impl<'a, M, T, F: FnOnce(Reply<T>) -> M> Ask<'a, M, T, F> {
    pub(super) fn new(recipient: RecipientRef<'a, M>, question: F) -> Self {
        Ask {
            recipient,
            phase: AskPhase::Question(Some(question)),
            patience: None,
            deadline: None,
        }
    }

    /// Limits the ask to `duration`, measured from the first poll.
    ///
    /// After that the ask ends with [`AskError::TimedOut`]. The limit covers the wait for room and
    /// the wait for the answer. A second call replaces the first. A call after the first poll has
    /// no effect.
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
    pub fn timeout(self, duration: Duration) -> Self {
        self.limited(Some(duration))
    }

    pub(super) fn limited(mut self, limit: Option<Duration>) -> Self {
        self.patience = limit;
        self
    }

    /// Creates an ask whose message waits for room once it has its answer.
    pub(super) fn unsent(recipient: RecipientRef<'a, M>, message: M) -> Self {
        Ask {
            recipient,
            phase: AskPhase::Unsent(SendFuture::new(recipient, message)),
            patience: None,
            deadline: None,
        }
    }

    /// Waits for room after all, with the answer that was launched.
    pub(super) fn wait_for_room(&mut self, answer: Answer<T>) {
        if let AskPhase::Unsent(send) = mem::replace(&mut self.phase, AskPhase::Over) {
            self.phase = AskPhase::Waiting(Some(send), answer);
        }
    }
}

impl<M, T, F: FnOnce(Reply<T>) -> M> Future for Ask<'_, M, T, F> {
    type Output = Result<T, AskError>;

    /// Sends the message on the first poll, then waits for the answer.
    ///
    /// # Panics
    /// If it is polled again after completion.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        // Of the timeout, for the detection of deadlocks. Only the poll that lists the ask sets it: what
        // was armed as a `Timeout` stays one.
        let mut kind = DeadlineKind::Event;
        let recipient = *this.recipient;
        if let AskPhase::Question(question) = this.phase
            && let Some(question) = question.take()
        {
            // Without its context an actor cannot receive its own question, so none is made.
            if run::is_without_context()
                && let Some(error) = recipient.own_deadlock()
            {
                *this.phase = AskPhase::Over;
                contain(|| drop(question));
                return Poll::Ready(Err(error));
            }
            // The recipient is looked at only after a fork.
            let process = Process::of(|| recipient.checked_process());
            this.deadline.set(this.patience.map(crate::time::sleep));
            let deadline = this.deadline.as_ref().get_ref().as_ref();
            let has_timeout = deadline.is_some_and(Sleep::ends);
            let asked = || (run::current_actor(), recipient.view().info());
            let list = || list_ask(has_timeout, asked);
            let listing = context::lists_ask().then(list).flatten();
            kind = listing.as_ref().map_or(kind, Listing::kind);
            let (theirs, ours) = OneshotEnd::pair(AskState::new(listing));
            // Set before the call, so that a panic of the question leaves a valid phase.
            *this.phase = AskPhase::Waiting(None, Answer::new(ours, process));
            if let Err(refused) = recipient.tell(question(Reply::new(theirs)))
                && let Some(error) = this.phase.wait_or_end(recipient, refused)
            {
                return Poll::Ready(Err(error));
            }
        }
        let AskPhase::Waiting(send, answer) = this.phase else {
            panic!("`ask` polled after it was ready")
        };
        if send.is_none() {
            // `Ok` and `Err` apart, not by `map_err`: a copy of the whole `Result` just after its parts
            // were stored waits for these stores.
            match answer.poll_now(cx) {
                Poll::Ready(Ok(answer)) => {
                    *this.phase = AskPhase::Over;
                    return Poll::Ready(Ok(answer));
                }
                Poll::Ready(Err(error)) => {
                    *this.phase = AskPhase::Over;
                    return Poll::Ready(Err(recipient.named(error)));
                }
                Poll::Pending => {}
            }
        }
        let polled = match (&send, this.deadline.is_none()) {
            (None, true) => Poll::Pending,
            _ => poll_rest(recipient, send, answer, this.deadline, kind, cx),
        };
        if polled.is_pending() {
            answer.process.check();
            // A note stands for one waker that was left. The send notes its own wait for room.
            if send.is_none() {
                run::note_wait_for(cx.waker(), WaitsFor::Answer, || recipient.view().id());
            }
            return Poll::Pending;
        }
        *this.phase = AskPhase::Over;
        polled.map_err(|error| recipient.named(error))
    }
}

/// Polls what an ask may wait for besides its answer: room for the message, and the timeout.
fn poll_rest<M, T>(
    recipient: RecipientRef<'_, M>,
    send: &mut Option<SendFuture<'_, M>>,
    answer: &mut Answer<T>,
    deadline: Pin<&mut Option<Sleep>>,
    kind: DeadlineKind,
    cx: &mut Context<'_>,
) -> Poll<Result<T, AskError>> {
    let mut polled = Poll::Pending;
    if let Some(sending) = send {
        match Pin::new(sending).poll(cx) {
            Poll::Ready(Ok(())) => {
                *send = None;
                polled = answer.poll_now(cx);
            }
            Poll::Ready(Err(refused)) => {
                let error = recipient.unsent_error(refused.is_full());
                contain(|| drop(refused));
                polled = Poll::Ready(Err(error));
            }
            Poll::Pending => {
                // The ask may end as a deadlock before there is room.
                polled = answer.poll_listed(Some(KeptWaker::new(cx.waker())));
                if polled.is_ready() {
                    contain(|| *send = None);
                }
            }
        }
    }
    if polled.is_pending()
        && let Some(deadline) = deadline.as_pin_mut()
    {
        let over = deadline.get_mut().poll_as(kind, cx);
        polled = over.map(|()| Err(AskError::TimedOut));
        if polled.is_ready() {
            contain(|| *send = None);
        }
    }
    polled
}

/// Makes the message of a request in flight, its answer, and the identity of the actor.
pub(super) fn begin<M, T>(
    recipient: RecipientRef<'_, M>,
    question: impl FnOnce(Reply<T>) -> M,
) -> (M, Answer<T>, TaskInfo) {
    let process = Process::of(|| recipient.checked_process());
    let asked = recipient.view().info();
    // The asker receives other messages meanwhile, so a timeout of the request is an event.
    let list = || list_ask(false, || (run::current_actor(), asked.clone()));
    let listing = context::lists_ask().then(list).flatten();
    let (theirs, ours) = OneshotEnd::pair(AskState::new(listing));
    let answer = Answer::new(ours, process);
    (question(Reply::new(theirs)), answer, asked)
}

impl<M, T, F> fmt::Debug for Ask<'_, M, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.phase {
            AskPhase::Question(..) | AskPhase::Unsent(_) => "Ask(not sent)",
            AskPhase::Waiting(Some(_), _) => "Ask(waiting for room)",
            AskPhase::Waiting(None, _) => "Ask(waiting for the answer)",
            AskPhase::Over => "Ask(over)",
        })
    }
}

impl<T> Reply<T> {
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
    ///     let (reply, answer) = Reply::pair();
    ///     doubler.tell((21, reply)).unwrap();
    ///     assert_eq!(answer.await, Ok(42));
    /// });
    /// ```
    pub fn pair() -> (Reply<T>, Answer<T>) {
        // In a simulation the outcome may take effect later, which is noted as for an observed ask.
        let listing = instant::is_simulated().then(|| Listing::alone(None));
        let (theirs, ours) = OneshotEnd::pair(AskState::new(listing));
        (Reply::new(theirs), Answer::new(ours, Process::current()))
    }
}

/// The future of the answer of a [`Reply::pair`].
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

/// What a poll finds in the slot.
enum SlotLook {
    Open,
    Listed,
    Complete,
}

impl<T> Answer<T> {
    pub(super) fn new(slot: ReplySlot<T>, process: Process) -> Self {
        Answer {
            slot: Some(slot),
            has_waited: false,
            process,
        }
    }

    /// Returns the [`id`](Reply::id) of the reply. It is `None` when the answer has been received.
    pub fn id(&self) -> Option<usize> {
        self.slot.as_ref().map(OneshotEnd::id)
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
                other
                    .listing()
                    .map(|listing| listing.swap_waker(&mut waker));
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
        let look = end.with(|slot| match slot {
            AskState::Open(left) => {
                std::mem::swap(left, &mut waker);
                SlotLook::Open
            }
            AskState::Listed(_) => SlotLook::Listed,
            _ => SlotLook::Complete,
        });
        match look {
            SlotLook::Open => Poll::Pending,
            SlotLook::Listed => self.poll_listed(waker),
            SlotLook::Complete => Poll::Ready(self.take_outcome()),
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

    /// Polls an ask whose slot may be `Listed`. Ready if there is an outcome or an end by deadlock.
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
                    let listing = other.listing();
                    listing.is_none_or(|listing| listing.swap_waker(&mut waker).is_some())
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
        let Some(end) = self.slot.take() else { return };
        if self.process.is_current() {
            // In a simulation earlier effects of this turn precede the drop. In a failed run the listing
            // stays, since the report still looks for the reply's holder.
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

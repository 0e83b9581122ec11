//! A request to an actor, as a future: it sends the question and waits for the answer.
//!
//! The question is sent by the first poll, and never again. The asker observes exactly one outcome.

use std::fmt;
use std::future::Future;
use std::mem;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;

use super::answer::Answer;
use super::recipient::RecipientRef;
use super::reply::{AskState, Reply};
use super::sending::SendFuture;
use crate::contain::contain;
use crate::error::{AskError, TellError};
use crate::lock::OneshotEnd;
use crate::runtime::deadlock::Listing;
use crate::runtime::list_ask;
use crate::task::{TaskInfo, run};
use crate::time::Sleep;
use crate::timers::DeadlineKind;
use crate::waker::KeptWaker;

pin_project! {
    /// The future of [`Address::ask`](crate::Address::ask).
    #[must_use = "futures do nothing unless polled"]
    pub struct Ask<'a, M, T, F> {
        recipient: RecipientRef<'a, M>,
        phase: AskPhase<'a, M, T, F>,
        patience: Option<Duration>,
        // Armed by the first poll.
        #[pin]
        deadline: Option<Sleep>,
    }
}

enum AskPhase<'a, M, T, F> {
    Question(Option<F>),
    /// The message was not delivered, and the answer is elsewhere.
    Unsent(SendFuture<'a, M>),
    /// The message waits for room (`Some`) or was delivered (`None`).
    Waiting(Option<SendFuture<'a, M>>, Answer<T>),
    Over,
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
        let mut kind = DeadlineKind::Event;
        let recipient = *this.recipient;
        if let AskPhase::Question(question) = this.phase
            && let Some(question) = question.take()
        {
            let process = recipient.checked_process();
            this.deadline.set(this.patience.map(crate::time::sleep));
            let deadline = this.deadline.as_ref().get_ref().as_ref();
            let has_time_out = deadline.is_some_and(Sleep::ends);
            let listing = list_ask(has_time_out, || (run::actor(), recipient.view().info()));
            kind = listing.as_ref().map_or(kind, Listing::kind);
            let (theirs, ours) = OneshotEnd::pair(AskState::new(listing));
            // Set before the call, so that a panic of the question leaves a valid phase.
            *this.phase = AskPhase::Waiting(None, Answer::new(ours, process));
            match recipient.tell(question(Reply::new(theirs))) {
                Ok(()) => {}
                Err(TellError::Full(question)) => {
                    if let AskPhase::Waiting(send, _) = this.phase {
                        *send = Some(SendFuture::new(recipient, question));
                    }
                }
                Err(TellError::Closed(refused)) => {
                    *this.phase = AskPhase::Over;
                    let error = recipient.closed_error();
                    contain(|| drop(refused));
                    return Poll::Ready(Err(error));
                }
            }
        }
        let AskPhase::Waiting(send, answer) = this.phase else {
            panic!("`ask` polled after it was ready")
        };
        if send.is_none() {
            // An answer is moved by itself: its result is written in parts, and a read of the whole
            // would wait for the writes.
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
        let polled = poll_rest(recipient, send, answer, this.deadline, kind, cx);
        if polled.is_pending() {
            answer.process.check();
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
                let error = recipient.closed_error();
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
    let process = recipient.checked_process();
    let asked = recipient.view().info();
    // The asker receives other messages meanwhile, so a timeout of the request is an event.
    let listing = list_ask(false, || (run::actor(), asked.clone()));
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

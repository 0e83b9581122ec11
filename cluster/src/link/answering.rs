//! The replies that came to this node: each sends its outcome back over the link.
//!
//! The outcome is encoded and sent by the thread that answers. A reply is armed after its whole
//! message was decoded, so a message that is refused answers nothing.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use greenroom::{Answer, AskError, Refusal};
use serde::Serialize;

use super::codec::{self, EncodeError};
use super::frame::{LinkFrame, Unanswered, WireRefusal, short};
use super::pending::ReplyCarrier;
use super::{Link, lock};
use crate::error::RemoteAskError;

/// A reply that came to this node.
pub(crate) trait ReceivedAsk: Send + Sync {
    /// Sends the outcome back from now on.
    fn arm(self: Arc<Self>);

    /// Makes the reply unwanted, since the asker is gone.
    fn abandon(&self);

    /// Refuses the ask, unless it has an outcome. The reply is unwanted then.
    fn refuse(&self, why: &Refusal);
}

pub(crate) struct Answerer<T> {
    link: Arc<Link>,
    ask: u64,
    /// `None` once the outcome is sent, or the asker is gone.
    answer: Mutex<Option<Answer<T>>>,
}

impl<T: Serialize + Send + 'static> Answerer<T> {
    pub(crate) fn new(link: Arc<Link>, ask: u64, answer: Answer<T>) -> Self {
        let answer = Mutex::new(Some(answer));
        Answerer { link, ask, answer }
    }

    /// Sends the outcome if there is one, and otherwise leaves a waker.
    fn look(self: Arc<Self>) {
        let waker = Waker::from(self.clone());
        let mut answer = lock(&self.answer);
        let polled = answer.as_mut().map(|answer| {
            let pinned = Pin::new(answer);
            pinned.poll(&mut Context::from_waker(&waker))
        });
        let Some(Poll::Ready(outcome)) = polled else {
            return;
        };
        *answer = None;
        drop(answer);
        self.link.forget_answering(self.ask);
        self.send(outcome);
    }

    fn send(&self, outcome: Result<T, AskError>) {
        let why = match outcome {
            Ok(answer) => match self.send_answer(&answer) {
                Ok(()) => return,
                Err(why) => why,
            },
            Err(AskError::Refused(refusal)) => Unanswered::Refused(WireRefusal::from(&refusal)),
            Err(AskError::NoReply(detail)) => Unanswered::NoReply(short(detail.to_string())),
            Err(other) => Unanswered::NoReply(short(other.to_string())),
        };
        let ask = self.ask;
        self.link.push(&LinkFrame::Unanswered { ask, why }.encode());
    }

    fn send_answer(&self, answer: &T) -> Result<(), Unanswered> {
        let head = LinkFrame::Answer { ask: self.ask };
        let encoded = codec::contained(|| codec::encode(&self.link, &head, None, answer, None));
        let (frame, asks) = match encoded {
            Ok(Ok(encoded)) => encoded,
            Ok(Err(EncodeError::TooLarge { bytes, limit })) => {
                return Err(Unanswered::TooLarge { bytes, limit });
            }
            Ok(Err(EncodeError::Failed(why))) | Err(why) => {
                return Err(Unanswered::NoReply(short(format!(
                    "the answer has no bytes: {why}"
                ))));
            }
        };
        let (ask, has_asks) = (self.ask, !asks.is_empty());
        let carrier = ReplyCarrier::Answer { ask };
        for (_, ask) in self.link.commit(&frame, asks, carrier) {
            ask.lose(RemoteAskError::Lost);
        }
        // Pairs with the order in `asker_is_gone`: one of the two sees what the other one has done.
        if has_asks && lock(&self.link.given_up).contains(&ask) {
            self.link.lose_asks_of_answer(ask);
        }
        Ok(())
    }
}

/// The asks of a peer that are remembered as given up, if no reply was found for them: more than a
/// peer has under way in most programs, and some hundred KiB. Then the oldest one is forgotten.
const MOST_GIVEN_UP: usize = 1 << 14;

impl Link {
    /// Keeps a reply that came, so that its asker can give up. Returns false if that is so already,
    /// or if the link is down.
    fn keep_answering(&self, ask: u64, answering: Arc<dyn ReceivedAsk>) -> bool {
        if lock(&self.given_up).remove(&ask) {
            return false;
        }
        let Ok(old) = lock(&self.answering).insert(ask, answering) else {
            return false;
        };
        // A peer may use a number again. The old reply is unwanted then.
        old.inspect(|old| old.abandon());
        true
    }

    /// Forgets a reply that has its outcome.
    fn forget_answering(&self, ask: u64) {
        let answered = lock(&self.answering).remove(ask);
        drop(answered);
    }

    /// Ends the answer to an asker that is gone, or has no use for it.
    pub(super) fn asker_is_gone(&self, ask: u64) {
        let gone = lock(&self.answering).remove(ask);
        if let Some(answering) = gone {
            return answering.abandon();
        }
        // The question may wait behind a full mailbox, or the answer may be under way.
        {
            let mut given_up = lock(&self.given_up);
            given_up.insert(ask);
            if given_up.len() > MOST_GIVEN_UP {
                given_up.pop_first();
            }
        }
        self.lose_asks_of_answer(ask);
    }

    /// Ends the asks whose replies are in an answer that is not taken.
    fn lose_asks_of_answer(&self, ask: u64) {
        let lost = lock(&self.asks).take_of_answer(ask);
        let why = || RemoteAskError::NoReply("the answer that had the reply was not taken".into());
        lost.into_iter().for_each(|ask| ask.lose(why()));
    }
}

impl<T: Serialize + Send + 'static> ReceivedAsk for Answerer<T> {
    fn arm(self: Arc<Self>) {
        match self.link.keep_answering(self.ask, self.clone()) {
            true => self.look(),
            false => self.abandon(),
        }
    }

    fn abandon(&self) {
        let answer = lock(&self.answer).take();
        drop(answer);
    }

    fn refuse(&self, why: &Refusal) {
        let Some(answer) = lock(&self.answer).take() else {
            return;
        };
        drop(answer);
        self.link.forget_answering(self.ask);
        self.send(Err(AskError::Refused(why.clone())));
    }
}

impl<T: Serialize + Send + 'static> Wake for Answerer<T> {
    fn wake(self: Arc<Self>) {
        self.look();
    }
}

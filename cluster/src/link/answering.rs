//! The replies that came to this node: each sends its outcome back over the link.
//!
//! The outcome is encoded and sent by the thread that answers. A reply is armed after its whole
//! message was decoded, so a message that is refused answers nothing.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use greenroom::{Answer, AskError};
use serde::Serialize;

use super::codec::{self, EncodeError};
use super::frame::{Frame, Unanswered, WireRefusal, short};
use super::{Link, lock};
use crate::error::RemoteAskError;

/// A reply that came to this node.
pub(crate) trait Answering: Send + Sync {
    /// Sends the outcome back from now on.
    fn arm(self: Arc<Self>);

    /// Makes the reply unwanted, since the asker is gone.
    fn abandon(&self);
}

pub(crate) struct Answerer<T> {
    link: Arc<Link>,
    ask: u64,
    /// `None` once it is settled, or the asker is gone.
    answer: Mutex<Option<Answer<T>>>,
}

impl<T: Serialize + Send + 'static> Answerer<T> {
    pub(crate) fn new(link: Arc<Link>, ask: u64, answer: Answer<T>) -> Self {
        let answer = Mutex::new(Some(answer));
        Answerer { link, ask, answer }
    }

    /// Looks for the outcome, and leaves a waker if there is none.
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
        self.link.answered(self.ask);
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
        self.link.push(&Frame::Unanswered { ask, why }.encode());
    }

    fn send_answer(&self, answer: &T) -> Result<(), Unanswered> {
        let head = Frame::Answer { ask: self.ask };
        let encoded = codec::contained(|| codec::encode(&self.link, &head, answer, None));
        let encoded = match encoded {
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
        for (_, ask) in self.link.commit(encoded, None) {
            ask.lose(RemoteAskError::Lost);
        }
        Ok(())
    }
}

impl<T: Serialize + Send + 'static> Answering for Answerer<T> {
    fn arm(self: Arc<Self>) {
        match self.link.answers(self.ask, self.clone()) {
            true => self.look(),
            false => self.abandon(),
        }
    }

    fn abandon(&self) {
        let answer = lock(&self.answer).take();
        drop(answer);
    }
}

impl<T: Serialize + Send + 'static> Wake for Answerer<T> {
    fn wake(self: Arc<Self>) {
        self.look();
    }
}

//! The asks of a link that wait for an answer from its peer.
//!
//! An ask completes once: by its answer, by the end of its stream if its question was not taken, or
//! by the end of the link. It is taken out of the table before its asker is notified.

use std::sync::{Arc, Mutex};

use greenroom::{Answer, Refusal, RefusalKind, Reply};
use serde::de::DeserializeOwned;

use super::codec::{self, EncodeError};
use super::frame::{Unanswered, WireRefusal, short};
use super::{Link, LinkTable, lock};
use crate::error::RemoteAskError;

/// Where the cause of a loss goes, for an ask that can return it.
pub(crate) struct LossCause {
    /// The id of the reply of the ask. Other replies in the question are of other askers.
    reply: Option<usize>,
    why: Mutex<Option<RemoteAskError>>,
}

impl LossCause {
    /// Creates a cause of the loss of the reply to this answer.
    pub(crate) fn of<T>(answer: &Answer<T>) -> Arc<LossCause> {
        Arc::new(LossCause {
            reply: answer.id(),
            why: Mutex::default(),
        })
    }

    /// Returns whether it is for this reply.
    pub(crate) fn is_for<T>(&self, reply: &Reply<T>) -> bool {
        self.reply == reply.id()
    }

    pub(crate) fn take(&self) -> Option<RemoteAskError> {
        lock(&self.why).take()
    }
}

/// A reply that has left this node.
pub(crate) trait SentAsk: Send {
    /// Returns whether the asker still waits. It runs no code of users.
    fn is_wanted(&self) -> bool;

    /// Sends the answer on. Returns false if it cannot be decoded.
    fn answer(self: Box<Self>, link: &Arc<Link>, bytes: &[u8]) -> bool;

    /// Ends the ask without an answer.
    fn lose(self: Box<Self>, why: RemoteAskError);
}

impl dyn SentAsk {
    pub(crate) fn fail(self: Box<Self>, error: &EncodeError) {
        self.lose(match error {
            EncodeError::TooLarge { bytes, limit } => RemoteAskError::TooLarge {
                bytes: *bytes,
                limit: *limit,
            },
            EncodeError::Failed(why) => RemoteAskError::Unencodable(why.clone()),
        });
    }
}

/// Replies that have left this node, with the numbers of their asks.
pub(crate) type SentAsks = Vec<(u64, Box<dyn SentAsk>)>;

pub(crate) struct PendingReply<T> {
    pub(crate) reply: Reply<T>,
    pub(crate) cause: Option<Arc<LossCause>>,
}

impl<T: DeserializeOwned + Send> SentAsk for PendingReply<T> {
    fn is_wanted(&self) -> bool {
        self.reply.is_wanted()
    }

    fn answer(self: Box<Self>, link: &Arc<Link>, bytes: &[u8]) -> bool {
        match codec::decode(link, bytes) {
            Ok(answer) => {
                self.reply.send(answer);
                true
            }
            Err(why) => {
                self.lose(RemoteAskError::Undecodable(why));
                false
            }
        }
    }

    fn lose(self: Box<Self>, why: RemoteAskError) {
        match (why, self.cause) {
            (RemoteAskError::Refused(refusal), _) => self.reply.refuse(refusal),
            (why, Some(cause)) => {
                *lock(&cause.why) = Some(why);
                drop(self.reply);
            }
            (RemoteAskError::NoReply(_), None) => drop(self.reply),
            (why, None) => {
                let refusal = Refusal::of(RefusalKind::Unavailable, why.to_string());
                self.reply.refuse(refusal);
            }
        }
    }
}

/// An ask in the table of its link.
pub(crate) struct AskEntry {
    carrier: ReplyCarrier,
    ask: Box<dyn SentAsk>,
}

/// What has the reply of an ask.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyCarrier {
    /// The message with this number of a stream.
    Message { stream: u64, number: u64 },
    /// The answer to this ask of the peer.
    Answer { ask: u64 },
}

impl LinkTable<AskEntry> {
    /// Keeps these asks. Returns how many wait now, or these asks if the link is down.
    pub(crate) fn keep(
        &mut self,
        asks: SentAsks,
        carrier: ReplyCarrier,
    ) -> Result<usize, SentAsks> {
        let Some(entries) = &mut self.entries else {
            return Err(asks);
        };
        let entry = |(number, ask)| (number, AskEntry { carrier, ask });
        entries.extend(asks.into_iter().map(entry));
        Ok(entries.len())
    }

    /// Takes an ask out. It is `None` if there is no such ask, or not any more.
    pub(crate) fn take(&mut self, ask: u64) -> Option<Box<dyn SentAsk>> {
        self.remove(ask).map(|entry| entry.ask)
    }

    /// Takes an ask out if its asker is gone.
    pub(crate) fn take_unwanted(&mut self, ask: u64) -> Option<Box<dyn SentAsk>> {
        let entry = self.entries.as_ref()?.get(&ask)?;
        match entry.ask.is_wanted() {
            true => None,
            false => self.take(ask),
        }
    }

    /// Takes out the asks of this stream whose questions were not among the first `taken` ones.
    pub(crate) fn take_untaken(&mut self, stream: u64, taken: u64) -> Vec<Box<dyn SentAsk>> {
        self.take_all(|carrier| match carrier {
            ReplyCarrier::Message { stream: of, number } => of == stream && number >= taken,
            ReplyCarrier::Answer { .. } => false,
        })
    }

    /// Takes out the asks whose replies are in the answer to this ask of the peer.
    pub(crate) fn take_of_answer(&mut self, ask: u64) -> Vec<Box<dyn SentAsk>> {
        self.take_all(|carrier| carrier == ReplyCarrier::Answer { ask })
    }

    fn take_all(&mut self, is_meant: impl Fn(ReplyCarrier) -> bool) -> Vec<Box<dyn SentAsk>> {
        let Some(entries) = &mut self.entries else {
            return Vec::new();
        };
        let meant = entries.iter().filter(|(_, entry)| is_meant(entry.carrier));
        let numbers: Vec<u64> = meant.map(|(number, _)| *number).collect();
        let removed = numbers.iter().filter_map(|number| entries.remove(number));
        removed.map(|entry| entry.ask).collect()
    }

    /// Takes out all asks, since the link is down.
    pub(crate) fn take_rest(&mut self) -> Vec<Box<dyn SentAsk>> {
        self.close().into_values().map(|entry| entry.ask).collect()
    }
}

impl From<Unanswered> for RemoteAskError {
    fn from(why: Unanswered) -> Self {
        match why {
            Unanswered::Refused(refusal) => RemoteAskError::Refused(refusal.into()),
            Unanswered::NoReply(why) => RemoteAskError::NoReply(why),
            Unanswered::TooLarge { bytes, limit } => RemoteAskError::TooLarge { bytes, limit },
        }
    }
}

/// The kinds of refusals in the order of their numbers on the wire.
const KINDS: [RefusalKind; 11] = [
    RefusalKind::Fault,
    RefusalKind::Aborted,
    RefusalKind::TimedOut,
    RefusalKind::Unavailable,
    RefusalKind::Busy,
    RefusalKind::Overloaded,
    RefusalKind::OutOfService,
    RefusalKind::ToBeConfirmed,
    RefusalKind::NotListening,
    RefusalKind::NotConnected,
    RefusalKind::NotAccepted,
];

impl From<&Refusal> for WireRefusal {
    fn from(refusal: &Refusal) -> Self {
        let kind = KINDS.iter().position(|kind| *kind == refusal.kind());
        WireRefusal {
            kind: kind.unwrap_or(0) as u8,
            condition: short(refusal.condition().into()),
            explanation: short(refusal.explanation().into()),
            code: refusal.error_code(),
            status: refusal.exit_status(),
        }
    }
}

impl From<WireRefusal> for Refusal {
    fn from(wire: WireRefusal) -> Self {
        let mut refusal = match KINDS.get(usize::from(wire.kind)) {
            None | Some(RefusalKind::Fault) => Refusal::new(wire.condition, wire.explanation),
            Some(kind) => Refusal::of(*kind, wire.explanation),
        };
        if let Some(code) = wire.code {
            refusal = refusal.with_error_code(code);
        }
        if let Some(status) = wire.status {
            refusal = refusal.with_exit_status(status);
        }
        refusal
    }
}

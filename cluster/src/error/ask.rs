//! The error of an ask that crosses the distance.

use std::fmt;

use greenroom::Refusal;

/// The reason why an ask of another node has no answer.
///
/// | error | was the question handled? | ask again? |
/// |---|---|---|
/// | `Closed`, `Unknown`, `WrongKind` | no | no: look the actor up again |
/// | `TooManyStreams` | no | when other addresses were dropped: look the actor up again |
/// | `Unencodable` | no | no |
/// | `TooLarge` | no, or the answer was too large | no |
/// | `Undecodable` | no, or the answer could not be decoded | no: look the actor up again |
/// | `Lost`, `TimedOut` | perhaps, or later | if the question may be handled twice |
/// | `NoReply` | perhaps | if the question may be handled twice |
/// | `Refused` | yes, or the refusal tells of a third node | as the [`Refusal`] says |
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemoteAskError {
    /// The actor has closed: its node says so.
    Closed,
    /// The node has no such actor.
    Unknown,
    /// The actor has messages of another kind.
    WrongKind {
        /// The kind of the address.
        ours: String,
        /// The kind of the actor.
        theirs: String,
    },
    /// The question or the answer does not fit into a frame.
    TooLarge {
        /// Its size in bytes, with the head of the frame.
        bytes: u64,
        /// The limit in bytes: the smaller one of both nodes.
        limit: u64,
    },
    /// Its node has streams from here to as many actors as it may. Drop other addresses.
    TooManyStreams {
        /// The [limit](crate::Limits::streams) of that node.
        limit: u64,
    },
    /// The `Serialize` of the question has failed, with this reason.
    Unencodable(String),
    /// The question, an earlier message, or the answer could not be decoded, with this reason.
    Undecodable(String),
    /// The node is out of reach. It may live.
    Lost,
    /// The [time-out](crate::RemoteAsk::timeout) elapsed first.
    TimedOut,
    /// The reply was dropped without an answer, as this text tells.
    NoReply(String),
    /// The actor refused the request, with [`Reply::refuse`](greenroom::Reply::refuse).
    Refused(Refusal),
}

impl fmt::Display for RemoteAskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RemoteAskError::Closed => f.write_str("the actor has closed"),
            RemoteAskError::Unknown => f.write_str("the node has no such actor"),
            RemoteAskError::WrongKind { ours, theirs } => {
                write!(
                    f,
                    "the kinds differ: ours is {ours:?}, theirs is {theirs:?}"
                )
            }
            RemoteAskError::TooLarge { bytes, limit } => {
                write!(
                    f,
                    "the question or answer has {bytes} bytes, more than {limit}"
                )
            }
            RemoteAskError::TooManyStreams { limit } => {
                write!(
                    f,
                    "the node has streams from here to {limit} actors, as many as it may"
                )
            }
            RemoteAskError::Unencodable(why) => write!(f, "the question has no bytes: {why}"),
            RemoteAskError::Undecodable(why) => write!(f, "the bytes have no meaning: {why}"),
            RemoteAskError::Lost => f.write_str("the node is out of reach"),
            RemoteAskError::TimedOut => f.write_str("no answer came in time"),
            RemoteAskError::NoReply(why) => write!(f, "no reply: {why}"),
            RemoteAskError::Refused(refusal) => write!(f, "refused: {refusal}"),
        }
    }
}

impl std::error::Error for RemoteAskError {}

//! The error of a message that was not sent, with the message.

use std::fmt;

use super::RemoteAskError;

/// A message that was not sent, and the reason.
///
/// The message is as it was, with one exception: if it was encoded, its
/// [replies](greenroom::Reply) have left it and were refused. That is so after
/// [`TooLarge`](Distance::TooLarge) and [`Unencodable`](Distance::Unencodable), and if the link is
/// lost at that moment.
#[derive(Clone, PartialEq, Eq)]
pub struct NotSent<M> {
    /// The message.
    pub message: M,
    /// The reason.
    pub why: Distance,
}

/// Why a message was not sent to an actor of another node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Distance {
    /// As much as the actor grants is under way, other senders wait, or the link has a backlog.
    /// Only [`tell`](crate::RemoteAddress::tell) returns this.
    Full,
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
    /// The message does not fit into a frame.
    TooLarge {
        /// Its size in bytes, with the head of the frame.
        bytes: u64,
        /// The [limit](crate::Limits::frame) in bytes: the smaller one of both nodes.
        limit: u64,
    },
    /// Its node has streams from here to as many actors as it may. Drop other addresses.
    TooManyStreams {
        /// The [limit](crate::Limits::streams) of that node.
        limit: u64,
    },
    /// The node is out of reach. It may live.
    Lost,
    /// The `Serialize` of the message has failed, with this reason.
    Unencodable(String),
    /// The node could not decode an earlier message of this address, with this reason.
    Undecodable(String),
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distance::Full => f.write_str("as much as the actor grants is under way"),
            Distance::Closed => f.write_str("the actor has closed"),
            Distance::Unknown => f.write_str("the node has no such actor"),
            Distance::WrongKind { ours, theirs } => {
                write!(
                    f,
                    "the kinds differ: ours is {ours:?}, theirs is {theirs:?}"
                )
            }
            Distance::TooLarge { bytes, limit } => {
                write!(f, "the message has {bytes} bytes, more than {limit}")
            }
            Distance::TooManyStreams { limit } => {
                write!(
                    f,
                    "the node has streams from here to {limit} actors, as many as it may"
                )
            }
            Distance::Lost => f.write_str("the node is out of reach"),
            Distance::Unencodable(why) => write!(f, "the message cannot be encoded: {why}"),
            Distance::Undecodable(why) => write!(f, "a message could not be decoded: {why}"),
        }
    }
}

impl std::error::Error for Distance {}

impl<M> fmt::Display for NotSent<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not sent: {}", self.why)
    }
}

impl<M> fmt::Debug for NotSent<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotSent")
            .field("why", &self.why)
            .finish_non_exhaustive()
    }
}

impl<M> std::error::Error for NotSent<M> {}

impl From<Distance> for RemoteAskError {
    fn from(why: Distance) -> Self {
        match why {
            // An ask waits for credit, so it never hears this.
            Distance::Full | Distance::Lost => RemoteAskError::Lost,
            Distance::Closed => RemoteAskError::Closed,
            Distance::Unknown => RemoteAskError::Unknown,
            Distance::WrongKind { ours, theirs } => RemoteAskError::WrongKind { ours, theirs },
            Distance::TooLarge { bytes, limit } => RemoteAskError::TooLarge { bytes, limit },
            Distance::TooManyStreams { limit } => RemoteAskError::TooManyStreams { limit },
            Distance::Unencodable(why) => RemoteAskError::Unencodable(why),
            Distance::Undecodable(why) => RemoteAskError::Undecodable(why),
        }
    }
}

//! The errors of messages, asks and lookups that cross the distance, and of a node that does not open.
//!
//! Each says whether the message may have been handled, and what to do next.

use std::fmt;
use std::io;
use std::time::Duration;

use greenroom::Refusal;

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
/// | `Refused` | yes, or it was passed on to a third node, which is lost: the kind is then [`Unavailable`](greenroom::RefusalKind::Unavailable) | as the [`Refusal`] says |
/// | `Refused` as [`Overloaded`](greenroom::RefusalKind::Overloaded) | no, if the mailbox had [no room](greenroom::ActorBuilder::overflow) | much later |
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
    /// The reply was dropped without an answer, as this text says.
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

impl From<Distance> for RemoteAskError {
    fn from(why: Distance) -> Self {
        match why {
            // An ask waits for credit, so it never has this.
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

/// The reason why a name leads to no actor.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemoteLookupError {
    /// No known node has an actor of this name.
    Unknown {
        /// The name.
        name: String,
        /// How long the lookup has waited.
        waited: Duration,
        /// The names of the nodes that were connected at the end.
        nodes: Vec<String>,
        /// Why seeds could not be reached, each as a text that begins with its address.
        seeds: Vec<String>,
    },
    /// Each actor of this name that is known now has messages of another kind. During an upgrade,
    /// one of the right kind may come later.
    WrongKind {
        /// The kind of the lookup.
        ours: String,
        /// The kind of an actor.
        theirs: String,
    },
    /// The node here was closed.
    NodeClosed,
}

impl fmt::Display for RemoteLookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RemoteLookupError::Unknown {
                name,
                waited,
                nodes,
                seeds,
            } => {
                write!(
                    f,
                    "no actor has the name {name:?}: waited {waited:?}, connected with "
                )?;
                match &nodes[..] {
                    [] => f.write_str("no node")?,
                    nodes => f.write_str(&nodes.join(", "))?,
                }
                seeds.iter().try_for_each(|seed| write!(f, "; {seed}"))
            }
            RemoteLookupError::WrongKind { ours, theirs } => {
                write!(
                    f,
                    "the kinds differ: ours is {ours:?}, theirs is {theirs:?}"
                )
            }
            RemoteLookupError::NodeClosed => f.write_str("the node is closed"),
        }
    }
}

impl std::error::Error for RemoteLookupError {}

/// The reason why a node does not open.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// An option is impossible, with the reason.
    Option(String),
    /// The address is not one of this machine alone, and the node has no
    /// [certificate](crate::NodeBuilder::identity).
    Exposed(String),
    /// The system does not let the node listen at this address.
    Listen(String, io::Error),
    /// A certificate, a key or an authority cannot be used.
    Identity(RenewError),
    /// The thread of the node does not start.
    Thread(io::Error),
    /// No server can be used, with the reason.
    Server(String),
    /// The node has nothing that carries its messages.
    NoEngine,
}

/// The reason why a certificate, a key or an authority cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenewError {
    pub(crate) file: String,
    pub(crate) why: String,
}

impl RenewError {
    pub(crate) fn new(file: impl Into<String>, why: impl fmt::Display) -> Self {
        let (file, why) = (file.into(), why.to_string());
        RenewError { file, why }
    }

    /// Returns the file as it was given.
    pub fn file(&self) -> &str {
        &self.file
    }
}

impl fmt::Display for RenewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot use {:?}: {}", self.file, self.why)
    }
}

impl std::error::Error for RenewError {}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Option(why) => write!(f, "the node cannot open: {why}"),
            OpenError::Exposed(address) => write!(
                f,
                "{address:?} can be reached from other machines: give the node an identity, or \
                 call `insecure()`"
            ),
            OpenError::Listen(address, error) => {
                write!(f, "cannot listen at {address:?}: {error}")
            }
            OpenError::Identity(error) => error.fmt(f),
            OpenError::Thread(error) => write!(f, "the thread of the node does not start: {error}"),
            OpenError::Server(why) => write!(f, "the server cannot be used: {why}"),
            OpenError::NoEngine => f.write_str(
                "nothing carries the messages of the node: enable the feature `sockets`, or the \
                 feature `nats` and call `nats()`, or call `net()` in a test",
            ),
        }
    }
}

// The text has the cause, so the cause is no source as well.
impl std::error::Error for OpenError {}

/// The reason why an actor gets no name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PublishError {
    /// An actor of this node has the name.
    Taken(String),
    /// The name or the kind has no bytes, or too many.
    Length {
        /// The name or the kind.
        text: String,
        /// The largest number of bytes.
        limit: usize,
    },
    /// The node has as many names as its [limit](crate::Limits::names) allows.
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// The actor has closed.
    Closed,
    /// The node was closed.
    NodeClosed,
}

impl fmt::Display for PublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PublishError::Taken(name) => write!(f, "an actor of this node has the name {name:?}"),
            PublishError::Length { text, limit } => {
                write!(
                    f,
                    "the name or kind {text:?} has {} bytes, and 1 to {limit} are allowed",
                    text.len()
                )
            }
            PublishError::TooMany { limit } => write!(f, "the node has {limit} names already"),
            PublishError::Closed => f.write_str("the actor has closed"),
            PublishError::NodeClosed => f.write_str("the node is closed"),
        }
    }
}

impl std::error::Error for PublishError {}

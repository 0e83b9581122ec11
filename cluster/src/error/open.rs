//! The errors of a node that does not open, and of names that cannot be published.

use std::fmt;
use std::io;

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
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Option(_) | OpenError::Exposed(_) => None,
            OpenError::Listen(_, error) | OpenError::Thread(error) => Some(error),
            OpenError::Identity(error) => Some(error),
        }
    }
}

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

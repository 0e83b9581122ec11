//! What happens to a server and to its connections.

use std::net::SocketAddr;

use crate::error::ListenError;

/// What happens to a server and to its connections, sent to the address of
/// [`events`](crate::ServerBuilder::events).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpEvent {
    /// The server listens.
    Listening {
        /// The address, with the port that the system chose. At a path it is 127.0.0.1 with port 0.
        addr: SocketAddr,
    },
    /// The server does not listen.
    NotListening(ListenError),
    /// A connection has begun.
    Accepted {
        /// A number that no other connection of the server has.
        id: u64,
        /// The address of the client. At a path it is 127.0.0.1 with port 0.
        peer: SocketAddr,
    },
    /// A connection has ended.
    Closed {
        /// The number of the connection.
        id: u64,
        /// The reason.
        why: CloseReason,
    },
}

/// The reason why a connection has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// The client or the server has closed it between two requests.
    Done,
    /// A request was refused, with this status, so that the next one could not be found.
    Refused(u16),
    /// The server was stopped.
    Stopped,
    /// The server has cut it: it was stopped, and the grace was over, or it was idle, and another
    /// connection needed its place.
    Cut,
    /// It has failed, with this text.
    Failed(String),
}

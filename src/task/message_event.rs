//! What becomes of one message, for an executor that keeps a trace.
//!
//! A message is told of by its type's name or its text, never by its value.

use std::any::type_name;
use std::sync::Arc;

/// What a trace says of a message.
#[derive(Clone)]
pub struct MessageInfo {
    /// The name of its type.
    pub(crate) name: &'static str,
    /// What it is shown as instead.
    pub(crate) text: Option<Arc<str>>,
}

impl MessageInfo {
    pub(crate) fn of<M>() -> Self {
        MessageInfo {
            name: type_name::<M>(),
            text: None,
        }
    }
}

/// What becomes of a message, for an executor that keeps a trace.
pub enum MessageEvent {
    /// It was accepted at once.
    Sent(MessageInfo),
    /// One that was sent before has come into the mailbox.
    Arrived,
    /// Its sender waits for room; by this key it is told from all others that do.
    AwaitsRoom(MessageInfo, usize),
    /// There was room for the one with this key.
    Accepted(usize),
    /// A place was reserved for the one with this key; it is sent when it is made.
    HasPlace(usize),
    /// The one with this key is given up by its sender, or refused.
    GivenUp(usize),
    /// The actor has got it from its mailbox.
    Received,
    /// The actor has got it from a source of its own.
    FromSource(&'static str),
}

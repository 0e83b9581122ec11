//! Events in the life of a message, for executors that trace messages.
//!
//! A trace has the type name or the text of a message, never its value.

use std::any::type_name;
use std::sync::Arc;

/// The description of a message in a trace.
#[derive(Clone)]
pub struct MessageInfo {
    /// The name of the message's type.
    pub(crate) name: &'static str,
    /// The text that is shown instead of the name.
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

/// An event in the life of a message, for executors that trace messages.
pub enum MessageEvent {
    /// The message was accepted at once.
    Sent(MessageInfo),
    /// A message that was sent before has arrived in the mailbox.
    Arrived,
    /// The sender waits for room. The key identifies the message among the waiting ones.
    AwaitsRoom(MessageInfo, usize),
    /// There was room for the message with this key.
    Accepted(usize),
    /// A permit was given for the message with this key, which is sent once it is made.
    HasPermit(usize),
    /// The message with this key was given up by its sender, or refused.
    GivenUp(usize),
    /// The actor has received the message from its mailbox.
    Received,
    /// The actor has received the message from one of its own sources.
    FromSource(&'static str),
}

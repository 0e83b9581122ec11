//! What a bounded mailbox does without room, and what it has displaced.
//!
//! The options are constant from the creation of the mailbox.

use std::panic::{RefUnwindSafe, UnwindSafe};

use super::conflation::Conflation;
use super::queue::Emptied;
use crate::tracer::MessageSender;

/// What is done if there is no room, neither in the bounded mailbox of an
/// [actor](crate::ActorBuilder::overflow) nor in the queue of a
/// [spool](crate::spool::SpoolBuilder::overflow).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Overflow {
    /// Senders wait for room. A spool does not do this.
    #[default]
    Wait,
    /// The newest message or request is refused.
    Newest,
    /// The oldest one is displaced: it gives way to the newest.
    Oldest,
}

/// What a bounded mailbox does with messages that it displaces; constant from its creation.
pub(crate) struct Displacing<M> {
    pub(crate) overflow: Overflow,
    /// The function for displaced messages.
    pub(crate) on_displaced: Option<OnDisplaced<M>>,
    /// How a message replaces the waiting one of its key.
    pub(crate) conflation: Option<Conflation<M>>,
}

type OnDisplaced<M> = Box<dyn Fn(M) + Send + Sync>;

// A function that panics leaves nothing half changed here.
impl<M> UnwindSafe for Displacing<M> {}
impl<M> RefUnwindSafe for Displacing<M> {}

impl<M> Default for Displacing<M> {
    fn default() -> Self {
        Displacing {
            overflow: Overflow::Wait,
            on_displaced: None,
            conflation: None,
        }
    }
}

/// A message that has given way to a newer one.
pub(crate) struct DisplacedMessage<M> {
    pub(crate) message: M,
    /// The actor that has sent it, if the mailbox is traced.
    pub(crate) from: Option<MessageSender>,
    /// The number of messages behind it in the queue.
    pub(crate) newer: usize,
    /// Its block, if it was the last message there.
    pub(super) _emptied: Option<Emptied<M>>,
}

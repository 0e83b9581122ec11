//! What a runtime tells about one of its live actors.

use std::panic::Location;
use std::time::Duration;

use crate::task::TaskInfo;

/// The state of a live actor at some moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ActorStatus {
    /// The number, name and priority of the actor.
    pub task: TaskInfo,
    /// The number of messages that wait in the mailbox.
    ///
    /// An actor takes several messages out at once and handles them in turn; those are not
    /// included. Messages of senders that wait for room are not included either.
    pub mailbox: usize,
    /// Whether the actor is neither in a turn nor ready for one, because it waits for a message or
    /// for something else.
    pub is_dormant: bool,
    /// Whether the actor's [`Handle`](crate::Handle), or the [`Join`](crate::Join) made from it,
    /// still exists.
    pub has_handle: bool,
    /// The number of addresses of the actor. Its [`Handle`](crate::Handle) has one of them.
    pub addresses: usize,
    /// Where the actor was spawned. `None` unless the runtime warns of
    /// [long turns](crate::Builder::long_turns), as debug builds do.
    pub spawned_at: Option<&'static Location<'static>>,
    /// The number of incarnations of the actor that have ended: 0 before its first restart.
    pub incarnation: u64,
    /// The total duration of the actor's completed turns. `None` if the runtime has no
    /// [`observer`](crate::Builder::observer), because turns are not measured then.
    pub busy: Option<Duration>,
}

impl ActorStatus {
    /// Returns whether the actor waits and its handle was dropped.
    pub(super) fn is_lonely(&self) -> bool {
        self.is_dormant && !self.has_handle
    }
}

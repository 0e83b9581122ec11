//! `LinkOwner` and `LinkWire`: what a link needs from its node, and from the way out to its peer.
//!
//! Neither waits: they are called by the thread of the links, and by senders.

use std::sync::Arc;

use futures_lite::future::Boxed;

use super::frame::{ClusterMember, Publication};
use super::{ActorInbox, Link, OutgoingHandle, Target};
use crate::counts::NodeCounts;
use crate::limits::Limits;

/// The way out to a peer.
pub(crate) trait LinkWire: Send + Sync {
    /// Adds a frame, with its length in front, to what will be written. Does not wait. A frame
    /// that is alone may be written at once: no other one is expected soon.
    fn push(&self, frame: &[u8], is_alone: bool);

    /// Returns the number of bytes that wait to be written.
    fn backlog(&self) -> usize;

    /// Writes what waits, as far as that is possible at once. Then writes and reads nothing more.
    fn cut(&self);
}

/// The node of a link, as the link sees it.
pub(crate) trait LinkOwner: Send + Sync {
    /// Returns the actor with this number, and its kind.
    fn inbox(&self, actor: u64) -> Option<Arc<dyn ActorInbox>>;

    /// Notes that an actor takes no more messages. It may still work.
    fn closed(&self, actor: u64);

    /// Adds a name of the peer.
    fn peer_published(&self, link: &Arc<Link>, publication: Publication);

    /// Removes a name of the peer.
    fn peer_withdrew(&self, link: &Arc<Link>, actor: u64);

    /// Adds nodes that the peer knows.
    fn peer_named(&self, link: &Arc<Link>, members: Vec<ClusterMember>);

    /// Ends the link, since the peer closes.
    fn peer_closed(&self, link: &Arc<Link>);

    /// Ends the link, since the peer does not use it, or says that it is used here.
    fn peer_is_done(&self, link: &Arc<Link>);

    /// Begins the streams that have waited, since the peer uses the link.
    fn peer_goes_on(&self, link: &Arc<Link>);

    /// Returns a handle of the stream to this actor.
    fn outgoing(&self, target: Target) -> OutgoingHandle;

    /// Forgets a stream that was dropped.
    fn forget_target(&self, target: &Target);

    /// Runs a task on the thread of the links.
    fn spawn(&self, task: Boxed<()>);

    /// Returns whether the contexts of traces go over the links of the node.
    fn has_traces(&self) -> bool;

    fn limits(&self) -> &Limits;

    fn counts(&self) -> &NodeCounts;
}

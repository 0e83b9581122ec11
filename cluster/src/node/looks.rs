//! The looks at the links of a node, several in the time of a lease.
//!
//! A link over which nothing comes is lost. One that is not used ends, if the other node agrees.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_lite::future::or;
use greenroom::time::Instant;

use super::NodeState;
use crate::engine::NodeEvent;
use crate::link::Link;
use crate::link::frame::LinkFrame;

/// The looks at a link in the time of a lease.
const LOOKS: u32 = 10;

/// The leases after which a link that is not used is to end: a minute by default.
const UNUSED_LEASES: u32 = 12;

impl NodeState {
    /// Returns how long a peer may be silent.
    pub(super) fn patience(&self) -> Duration {
        self.lease() * 3 / 2
    }

    /// Looks at each link once: pings if nothing was pushed, and ends those that are silent or unused.
    fn look_at_links(&self, elapsed: Duration) {
        // If this node itself was stopped, its peers may have frames under way.
        let elapsed = elapsed.min(2 * self.lease() / LOOKS);
        let most_unused = UNUSED_LEASES * self.lease();
        let [silent, unused] = self.peers().look(elapsed, self.patience(), most_unused);
        silent.iter().for_each(|link| self.down(link));
        for link in unused.iter().filter(|link| self.may_end(link)) {
            link.push(&LinkFrame::Unused.encode());
        }
    }

    /// Returns whether a link may end since nothing uses it here. Then nothing does from now on.
    fn may_end(&self, link: &Link) -> bool {
        let unused = NodeEvent::Unused(&link.peer.member.name);
        self.engine.note(unused) && link.set_ending()
    }

    /// Ends a link that the peer does not use, unless it is used here.
    pub(super) fn end_unused(&self, link: &Arc<Link>) {
        match self.may_end(link) {
            true => self.down(link),
            false => link.push(&LinkFrame::Used.encode()),
        }
    }

    /// Returns the time from one look to the next: a part of the shortest lease.
    fn time_to_look(&self) -> Duration {
        self.peers().shortest_lease(self.lease()) / LOOKS
    }
}

/// Looks at the links as long as the node exists.
pub(super) async fn look(state: Weak<NodeState>) {
    let mut last = Instant::now();
    loop {
        let Some(this) = state.upgrade() else { return };
        // A new peer may have a shorter lease.
        let changed = this.changed.listen();
        let time = this.time_to_look().saturating_sub(last.elapsed());
        let sleep = this.engine.sleep(time);
        drop(this);
        or(changed, sleep).await;
        let Some(this) = state.upgrade() else { return };
        let elapsed = last.elapsed();
        if elapsed >= this.time_to_look() {
            last = Instant::now();
            this.look_at_links(elapsed);
        }
    }
}

//! How a link ends that neither node uses: by agreement, so that nothing is lost.
//!
//! A node that does not use a link says so, and opens no stream from then on. The other node ends the
//! link if it does not use it either, and otherwise says that.
//!
//! - `UNUSED-1`: a node uses a link that has a stream, an ask, or an answer which is awaited. Frames of
//!   each come in order, so what is under way belongs to something that one of the nodes still has.
//! - `UNUSED-2`: a link ends so only when both nodes have found it unused, the second one after all
//!   frames of the first one. Neither opens a stream since.
//! - `UNUSED-3`: a node says once that a link is unused, and not again before it is answered. So no old
//!   word of it ends a link that is used again.

use std::sync::atomic::Ordering;

use super::{Link, lock};

impl Link {
    /// Returns whether the link is used here (UNUSED-1), or waits for a word of the other node.
    pub(crate) fn is_used(&self) -> bool {
        self.is_ending() || lock(&self.outgoing).len() > 0 || self.is_used_by_peer()
    }

    /// Returns whether something is left that has begun with a stream.
    fn is_used_by_peer(&self) -> bool {
        lock(&self.incoming).len() > 0
            || lock(&self.asks).len() > 0
            || lock(&self.answering).len() > 0
    }

    /// Returns whether streams wait for the word of the other node.
    pub(crate) fn is_ending(&self) -> bool {
        // Who adds a stream has the lock under which it changes. For others it is a hint.
        self.is_ending.load(Ordering::Relaxed)
    }

    /// Opens no stream from now on, if the link is unused. Returns whether that is so (UNUSED-2).
    pub(crate) fn set_ending(&self) -> bool {
        let outgoing = lock(&self.outgoing);
        let is_unused = outgoing.len() == 0 && !self.is_used_by_peer();
        if is_unused {
            self.is_ending.store(true, Ordering::Relaxed);
        }
        is_unused
    }

    /// Opens streams again, since the other node uses the link.
    pub(crate) fn go_on(&self) {
        let outgoing = lock(&self.outgoing);
        self.is_ending.store(false, Ordering::Relaxed);
        drop(outgoing);
    }
}

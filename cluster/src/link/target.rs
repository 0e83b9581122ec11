//! `Target`: the actor at the other end of a stream.
//!
//! Two are equal if they are the same actor of the same life of a node, with the same kind.

use std::cmp::Ordering;
use std::sync::Arc;

use super::frame::Window;

/// The actor at the other end of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The name of its node.
    pub(crate) node: Arc<str>,
    /// The number of the life of that node.
    pub(crate) incarnation: u128,
    pub(crate) actor: u64,
    pub(crate) kind: Arc<str>,
    /// What its node grants to each other node. It does not identify the actor.
    pub(crate) window: Window,
}

impl Target {
    fn key(&self) -> (&str, u128, u64, &str) {
        (&self.node, self.incarnation, self.actor, &self.kind)
    }
}

impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Target {}

impl PartialOrd for Target {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Target {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

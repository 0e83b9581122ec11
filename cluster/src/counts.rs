//! What a node has counted since it opened.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows. Its order with other memory does not matter.
#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self) {
        self.add_many(1);
    }

    pub(crate) fn add_many(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counts of a node, for its status and its metrics.
#[derive(Default)]
pub(crate) struct NodeCounts {
    pub(crate) links: Count,
    pub(crate) lost_links: Count,
    pub(crate) lost_asks: Count,
    pub(crate) undecodable: Count,
    pub(crate) refused_streams: Count,
    pub(crate) stray: Count,
    pub(crate) malformed: Count,
    pub(crate) refused_links: Count,
}

//! Workers that share one line of requests.
//!
//! All workers of a spool are one crew. With affinity, each worker is a crew of its own. While
//! requests wait, no worker of their crew is idle, unless the same key is still under way elsewhere.

use std::collections::VecDeque;

use crate::actor::Reply;
use crate::instant::Instant;

pub(super) struct Crew<Q, R> {
    /// The keys of idle workers. The first has been idle longest.
    pub(super) idle: VecDeque<usize>,
    /// Oldest first.
    pub(super) waiting: VecDeque<Queued<Q, R>>,
}

/// A request that no worker has.
pub(super) struct Queued<Q, R> {
    pub(super) question: Q,
    pub(super) claim: Claim<R>,
}

/// A request without its question.
pub(super) struct Claim<R> {
    pub(super) client: Reply<R>,
    /// Its rank in the order of arrival.
    pub(super) rank: u64,
    pub(super) arrived: Instant,
    /// The hash of its affinity, or 0.
    pub(super) hash: u64,
    /// The actor that has sent it, for a trace.
    pub(super) from: u64,
    /// How often it is tried again if its worker dies.
    pub(super) tries: u32,
}

impl<Q, R> Crew<Q, R> {
    pub(super) fn new() -> Self {
        Crew {
            idle: VecDeque::new(),
            waiting: VecDeque::new(),
        }
    }
}

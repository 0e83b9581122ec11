//! A worker of a spool, the request that it has, and its place.
//!
//! A place stays when its worker dies. A worker stays while it lives, or has a request.

use std::sync::Arc;

use super::assignment::Assignment;
use super::crew::Claim;
use crate::actor::{Address, Permit, Reply};
use crate::instant::Instant;

pub(super) struct PoolWorker<Q, R> {
    pub(super) address: Address<(Q, Reply<R>)>,
    /// `None` while it has a request.
    pub(super) assignment: Option<Arc<Assignment<Q, R>>>,
    /// The number of its valid assignment.
    pub(super) number: u64,
    pub(super) open: Option<Open<Q, R>>,
    /// `None` if it takes no more requests: it was retired, or the spool stops.
    pub(super) crew: Option<usize>,
    /// Whether the spool has made it.
    pub(super) is_own: bool,
    /// Whether its mailbox is closed, or it has died.
    pub(super) is_gone: bool,
    /// Whether it has ended. It is kept while the reply of its request lives elsewhere.
    pub(super) has_ended: bool,
    /// Whether its mailbox has no room.
    pub(super) is_full: bool,
    /// The place in its mailbox for which it was waited, until its next request has it.
    pub(super) permit: Option<Permit<(Q, Reply<R>)>>,
}

/// A request that a worker has.
pub(super) struct Open<Q, R> {
    pub(super) claim: Claim<R>,
    /// When it times out.
    pub(super) until: Option<Instant>,
    /// A copy of the question, if it may be tried again.
    pub(super) spare: Option<Q>,
}

/// The place of one worker.
pub(super) struct Place {
    /// The key of the worker.
    pub(super) worker: Option<usize>,
    /// When a worker is to be made for it.
    pub(super) due: Option<Instant>,
    /// Whether the spool makes its workers.
    pub(super) is_own: bool,
}

impl Place {
    /// Returns a place whose worker is to be made now.
    pub(super) fn vacant(now: Instant) -> Self {
        Place {
            worker: None,
            due: Some(now),
            is_own: true,
        }
    }
}

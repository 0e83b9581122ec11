//! What a worker's reply leads to: the request that the worker has.
//!
//! A worker uses one assignment for all of its requests, one after another. A request that times
//! out, or that comes back, invalidates it: a late answer then finds another number.

use std::any::Any;
use std::sync::Arc;

use crate::actor::{Address, Relay, Reply};
use crate::error::AskError;

pub(super) struct Assignment<Q, R> {
    pub(super) desk: Arc<dyn Desk<Q, R>>,
    pub(super) worker: Address<(Q, Reply<R>)>,
    /// The key of the worker.
    pub(super) key: usize,
    /// The number that the worker has while this is valid.
    pub(super) number: u64,
}

/// The spool, as its assignments see it.
pub(super) trait Desk<Q, R>: Send + Sync {
    /// Takes the outcome of the request.
    fn complete(&self, assignment: &Arc<Assignment<Q, R>>, outcome: Result<R, AskError>);

    /// Takes back a request that the worker has left in its mailbox.
    fn recover(&self, assignment: &Arc<Assignment<Q, R>>, question: Q);

    /// Returns whether the client of the request still waits. Without `waits`, returns true if
    /// that cannot be known at once.
    fn is_wanted(&self, assignment: &Assignment<Q, R>, waits: bool) -> bool;
}

/// Gives a request that a worker has left in its mailbox back to its spool.
pub(super) fn recover<Q: Send + 'static, R: Send + 'static>((question, reply): (Q, Reply<R>)) {
    let relay = reply.relay().map(Relay::as_any);
    if let Some(Ok(assignment)) = relay.map(Arc::downcast::<Assignment<Q, R>>) {
        assignment.desk.recover(&assignment, question);
    }
    // The assignment is not valid any more, so the reply has no effect. That of another sender has.
    drop(reply);
}

impl<Q: Send + 'static, R: Send + 'static> Relay<R> for Assignment<Q, R> {
    fn complete(self: Arc<Self>, outcome: Result<R, AskError>) {
        self.desk.complete(&self, outcome);
    }

    fn is_wanted(&self, waits: bool) -> bool {
        self.desk.is_wanted(self, waits)
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

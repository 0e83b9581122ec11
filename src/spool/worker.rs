//! The workers of a spool, the requests that they have, their replies, slots and crews.
//!
//! A slot stays when its worker dies. A worker stays while it lives, or has a request. Workers of one
//! crew share one line of requests. All workers of a spool are one crew; with affinity, each slot is
//! a crew of its own.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::actor::{Address, Permit, Relay, Reply};
use crate::error::AskError;
use crate::instant::Instant;
use crate::tracer::MessageSender;

pub(super) struct PoolWorker<Q, R> {
    pub(super) address: Address<(Q, Reply<R>)>,
    /// `None` while it has a request.
    pub(super) assignment: Option<Arc<Assignment<Q, R>>>,
    /// The number of its valid assignment.
    pub(super) number: u64,
    pub(super) open: Option<OpenRequest<Q, R>>,
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
    /// The permit for its mailbox that was waited for, until its next request has it.
    pub(super) permit: Option<Permit<(Q, Reply<R>)>>,
}

/// A request that a worker has.
pub(super) struct OpenRequest<Q, R> {
    pub(super) info: RequestInfo<R>,
    /// When it times out.
    pub(super) until: Option<Instant>,
    /// A copy of the question, if it may be tried again.
    pub(super) spare: Option<Q>,
}

/// The slot of one worker.
pub(super) struct WorkerSlot {
    /// The key of the worker.
    pub(super) worker: Option<usize>,
    /// When a worker is to be made for it.
    pub(super) due: Option<Instant>,
    /// Whether the spool makes its workers.
    pub(super) is_own: bool,
}

impl WorkerSlot {
    /// Returns a slot whose worker is to be made now.
    pub(super) fn vacant(now: Instant) -> Self {
        WorkerSlot {
            worker: None,
            due: Some(now),
            is_own: true,
        }
    }
}

pub(super) struct Crew<Q, R> {
    /// The keys of idle workers. The first has been idle longest.
    pub(super) idle: VecDeque<usize>,
    /// Oldest first.
    pub(super) waiting: VecDeque<QueuedRequest<Q, R>>,
}

/// A request that no worker has.
pub(super) struct QueuedRequest<Q, R> {
    pub(super) question: Q,
    pub(super) info: RequestInfo<R>,
}

/// A request without its question.
pub(super) struct RequestInfo<R> {
    pub(super) client: SpoolClient<R>,
    /// Its rank in the order of arrival.
    pub(super) rank: u64,
    pub(super) arrived: Instant,
    /// The hash of its affinity, or 0.
    pub(super) hash: u64,
    /// How often it is tried again if its worker dies.
    pub(super) tries: u32,
}

/// What is left of a client. It is dropped without the lock, since its drop is code of others.
pub(super) struct SpoolClient<R> {
    pub(super) reply: Reply<R>,
    /// Who has sent the request, for a trace.
    pub(super) from: MessageSender,
}

impl<Q, R> Crew<Q, R> {
    pub(super) fn new() -> Self {
        Crew {
            idle: VecDeque::new(),
            waiting: VecDeque::new(),
        }
    }
}

/// What a worker's reply leads to: the request that the worker has.
///
/// A worker uses one assignment for all of its requests, one after another. A request that times out,
/// or that comes back, invalidates it: a late answer then finds another number.
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

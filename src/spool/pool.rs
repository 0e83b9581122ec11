//! What the handles of a spool, its manager and the replies of its workers share.
//!
//! The state is behind one lock. No user code runs under it: a change notes in an outbox what is to
//! be done, and that is done afterwards.

use std::cell::Cell;
use std::sync::{Arc, Weak};

use super::dispatch::Dispatch;
use super::limits::SpoolLimits;
use super::outbox::{Errand, Outbox};
use super::refusals::RefusalReason;
use super::worker::{Assignment, Desk, SpoolClient};
use crate::actor::{Permit, Reply};
use crate::contain::{attempt, contain};
use crate::error::AskError;
use crate::instant::Instant;
use crate::runtime::{context, sender_of_current};
use crate::sync::{Mutex, MutexGuard};
use crate::tracer::{MessageSender, passing_on};

pub(super) struct Pool<Q, R> {
    dispatch: Mutex<Dispatch<Q, R>>,
    /// Called without the lock, as `copy` is.
    affinity: Option<Affinity<Q>>,
    /// Copies a question, if a request may be tried again.
    copy: Option<fn(&Q) -> Q>,
    is_traced: bool,
}

/// Returns the hash of a question's key.
pub(super) type Affinity<Q> = Box<dyn Fn(&Q) -> u64 + Send + Sync>;

/// The greatest depth of replies that are completed within each other. Regular workers make a depth of
/// one, and a stack has room for far more than this.
const DEPTH_MAX: u32 = 16;

crate::sync::thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

impl<Q: Send + 'static, R: Send + 'static> Pool<Q, R> {
    /// Creates a pool with this many workers of its own, which are to be made.
    pub(super) fn new(
        limits: SpoolLimits,
        workers: usize,
        affinity: Option<Affinity<Q>>,
        copy: Option<fn(&Q) -> Q>,
        is_traced: bool,
    ) -> Arc<Self> {
        Arc::new_cyclic(|own: &Weak<Self>| Pool {
            dispatch: Mutex::new(Dispatch::new(limits, workers, own.clone())),
            affinity,
            copy,
            is_traced,
        })
    }

    /// Locks the state. Earlier effects of a simulated turn come first.
    #[inline]
    fn dispatch(&self) -> MutexGuard<'_, Dispatch<Q, R>> {
        context::apply_effects();
        self.dispatch.lock()
    }

    /// Takes a request.
    pub(super) fn submit(&self, question: Q, reply: Reply<R>) {
        let affinity = self.affinity.as_ref();
        let hash = affinity.map_or(0, |hash| hash(&question));
        let from = match self.is_traced {
            true => sender_of_current(),
            false => MessageSender::NONE,
        };
        let client = SpoolClient { reply, from };
        let now = Instant::now();
        self.change(|it, outbox| it.arrive(question, client, hash, now, outbox));
    }

    /// Changes the state, then does what the outbox has.
    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut Dispatch<Q, R>, &mut Outbox<Q, R>) -> T,
    ) -> T {
        let (result, mut outbox) = self.change_only(change);
        self.carry_out(&mut outbox);
        result
    }

    /// Changes the state. The caller carries out the outbox.
    fn change_only<T>(
        &self,
        change: impl FnOnce(&mut Dispatch<Q, R>, &mut Outbox<Q, R>) -> T,
    ) -> (T, Outbox<Q, R>) {
        let mut outbox = Outbox::new();
        let result = change(&mut self.dispatch(), &mut outbox);
        (result, outbox)
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&Dispatch<Q, R>) -> T) -> T {
        look(&self.dispatch())
    }

    /// Returns why the spool stops, which it does.
    pub(super) fn stopped(&self) -> RefusalReason {
        let stopped = self.look(|dispatch| dispatch.stopped);
        stopped.unwrap_or(RefusalReason::Aborted)
    }

    /// Does all errands that follow from a reply.
    ///
    /// A worker that gets its next request may answer it at once, if its address is mapped or
    /// that of another spool. So these calls nest. From a certain depth on the manager goes on.
    #[inline]
    fn follow(&self, mut outbox: Outbox<Q, R>) {
        if outbox.is_empty() {
            return self.carry_out(&mut outbox);
        }
        let depth = DEPTH.try_with(Cell::get).unwrap_or(0);
        if depth >= DEPTH_MAX {
            return self.change(|dispatch, alert| dispatch.leave_for_later(outbox, alert));
        }
        let _ = DEPTH.try_with(|it| it.set(depth + 1));
        self.carry_out(&mut outbox);
        let _ = DEPTH.try_with(|it| it.set(depth));
    }

    /// Does all errands in order. The lock is free.
    #[inline]
    pub(super) fn carry_out(&self, outbox: &mut Outbox<Q, R>) {
        while let Some(errand) = outbox.next() {
            match errand {
                Errand::Send(assignment, question, from, permit) => {
                    self.send(&assignment, question, from, permit, outbox);
                }
                other => other.carry_out(),
            }
        }
        if let Some(waker) = outbox.alert.take() {
            waker.wake();
        }
    }

    #[inline]
    fn send(
        &self,
        assignment: &Arc<Assignment<Q, R>>,
        question: Q,
        from: MessageSender,
        permit: Option<Permit<(Q, Reply<R>)>>,
        outbox: &mut Outbox<Q, R>,
    ) {
        if let Some(copy) = self.copy {
            let spare = attempt(|| copy(&question)).ok();
            let (previous, _) = self.change_only(|it, _| it.keep(assignment, spare));
            contain(|| drop(previous));
        }
        let reply = Reply::relayed(assignment.clone());
        let tell = || match permit {
            Some(permit) => {
                permit.send((question, reply));
                Ok(())
            }
            None => assignment.worker.tell((question, reply)),
        };
        // The worker may be another spool, whose affinity function panics. That loses the reply.
        let sent = attempt(|| match self.is_traced {
            false => tell(),
            true => passing_on(from, tell),
        });
        let Ok(Err(refused)) = sent else { return };
        let is_closed = refused.is_closed();
        let (question, reply) = refused.into_inner();
        let now = Instant::now();
        let mut dispatch = self.dispatch();
        dispatch.come_back(assignment, question, is_closed, now, outbox);
        drop(dispatch);
        // The assignment is not valid any more, so the reply has no effect.
        drop(reply);
    }
}

impl<Q: Send + 'static, R: Send + 'static> Desk<Q, R> for Pool<Q, R> {
    fn complete(&self, assignment: &Arc<Assignment<Q, R>>, outcome: Result<R, AskError>) {
        let now = Instant::now();
        let (client, outbox) =
            self.change_only(|it, outbox| it.complete(assignment, &outcome, now, outbox));
        match client {
            Some(client) => client.reply.complete(outcome),
            None => contain(|| drop(outcome)),
        }
        self.follow(outbox);
    }

    fn recover(&self, assignment: &Arc<Assignment<Q, R>>, question: Q) {
        let now = Instant::now();
        self.change(|it, outbox| it.come_back(assignment, question, true, now, outbox));
    }

    /// Returns whether the client of the request still waits.
    ///
    /// The client's reply may be that of another spool. So no pool waits for the lock of another
    /// one, or for its own.
    fn is_wanted(&self, assignment: &Assignment<Q, R>, waits: bool) -> bool {
        match waits {
            true => self.dispatch().is_wanted(assignment),
            false => {
                let dispatch = self.dispatch.try_lock();
                dispatch.is_none_or(|mut dispatch| dispatch.is_wanted(assignment))
            }
        }
    }
}

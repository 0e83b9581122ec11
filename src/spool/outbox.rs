//! What is to be done after a change of a spool, once its lock is released.

use std::collections::VecDeque;
use std::sync::Arc;

use super::worker::{Assignment, PoolWorker, SpoolClient, recover};
use crate::actor::{Address, Permit, Reply};
use crate::contain::{KeptWaker, contain};
use crate::error::Refusal;
use crate::tracer::MessageSender;

pub(super) struct Outbox<Q, R> {
    /// Most changes have one errand at most, which needs no allocation.
    first: Option<Errand<Q, R>>,
    others: VecDeque<Errand<Q, R>>,
    /// The waker of the manager, if it has something to do.
    pub(super) alert: Option<KeptWaker>,
}

pub(super) enum Errand<Q, R> {
    /// Gives the question of this actor to the worker, with this permit if there is one.
    Send(
        Arc<Assignment<Q, R>>,
        Q,
        MessageSender,
        Option<Permit<(Q, Reply<R>)>>,
    ),
    Refuse(SpoolClient<R>, Refusal, Option<Q>),
    /// Lets the requests come back that the worker leaves in its mailbox.
    Watch(Address<(Q, Reply<R>)>),
    Stop(Address<(Q, Reply<R>)>),
    StopNow(Address<(Q, Reply<R>)>),
    Kill(Address<(Q, Reply<R>)>),
    /// Gives up a permit that no request needs.
    GiveUp(Permit<(Q, Reply<R>)>),
    /// Drops a request that has no asker.
    Forget(SpoolClient<R>, Q),
    /// Drops a question that is not needed any more.
    Discard(Q),
    Dismiss(Box<PoolWorker<Q, R>>),
}

impl<Q: Send + 'static, R: Send + 'static> Outbox<Q, R> {
    pub(super) fn new() -> Self {
        Outbox {
            first: None,
            others: VecDeque::new(),
            alert: None,
        }
    }

    pub(super) fn push(&mut self, errand: Errand<Q, R>) {
        if self.first.is_none() && self.others.is_empty() {
            self.first = Some(errand);
        } else {
            self.others.push_back(errand);
        }
    }

    /// Adds a question that is to be dropped, if there is one.
    pub(super) fn discard(&mut self, question: Option<Q>) {
        if let Some(question) = question {
            self.push(Errand::Discard(question));
        }
    }

    /// Takes the next errand.
    pub(super) fn next(&mut self) -> Option<Errand<Q, R>> {
        self.first.take().or_else(|| self.others.pop_front())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

impl<Q: Send + 'static, R: Send + 'static> Errand<Q, R> {
    /// Does this errand, unless it is to send a question.
    #[cold]
    pub(super) fn carry_out(self) {
        match self {
            Errand::Send(..) => unreachable!("the pool sends questions"),
            Errand::Refuse(client, refusal, question) => {
                client.reply.refuse(refusal);
                contain(|| drop(question));
            }
            Errand::Watch(worker) => worker.keep_undelivered(recover),
            Errand::Stop(worker) => worker.stop(),
            Errand::StopNow(worker) => worker.stop_now(),
            Errand::Kill(worker) => worker.kill(),
            Errand::GiveUp(permit) => contain(|| drop(permit)),
            Errand::Forget(client, question) => contain(|| drop((client, question))),
            Errand::Discard(question) => contain(|| drop(question)),
            Errand::Dismiss(worker) => contain(|| drop(worker)),
        }
    }
}

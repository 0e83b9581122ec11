//! Which worker has which request, and which requests wait.
//!
//! A request is judged once, when it arrives; once admitted it is not refused for load any more.
//! [`slots`](super::slots) has the changes of the workers themselves.
//!
//! # Invariants
//! - SPOOL-1: while requests wait, no worker of their crew is idle. With affinity, the first of them
//!   may wait for another worker that has a request of the same hash.
//! - SPOOL-2: each request is in one crew's line, or open at one worker, until it has its outcome.
//! - SPOOL-3: a worker is idle if and only if it has its assignment, is fit, and has room.

use std::sync::{Arc, Weak};

use slab::Slab;

use super::limits::{PURGE_MIN, SpoolLimits};
use super::outbox::{Errand, Outbox};
use super::refusals::{RefusalReason, SpoolStatus};
use super::spans::Spans;
use super::worker::{
    Assignment, Crew, Desk, OpenRequest, PoolWorker, QueuedRequest, RequestInfo, SpoolClient,
    WorkerSlot,
};
use crate::actor::{Reply, WeakAddress};
use crate::contain::KeptWaker;
use crate::error::{AskError, Refusal};
use crate::instant::Instant;
use crate::sync::mutant;

pub(super) struct Dispatch<Q, R> {
    pub(super) limits: SpoolLimits,
    /// The pool of this state.
    own: Weak<dyn Desk<Q, R>>,
    pub(super) workers: Slab<PoolWorker<Q, R>>,
    pub(super) slots: Vec<WorkerSlot>,
    /// One, or with affinity one for each slot.
    pub(super) crews: Vec<Crew<Q, R>>,
    /// The hashes of open requests whose worker is not in the crew of that hash any more.
    pub(super) strays: Vec<u64>,
    pub(super) open: usize,
    pub(super) waiting: usize,
    /// How many requests have found the queue full since the lines were purged.
    pub(super) came_in_vain: usize,
    /// From how many waiting requests on the lines are purged.
    pub(super) purge_at: usize,
    pub(super) spans: Spans,
    /// The last refusal, since an overloaded spool refuses many requests with the same text.
    last_refusal: Option<(RefusalReason, Refusal)>,
    /// The counters of this are kept; the other fields are not.
    pub(super) counts: SpoolStatus,
    /// The last number of an assignment, or rank of a request.
    last_number: u64,
    /// When the manager looks at the spool again.
    pub(super) alarm: Option<Instant>,
    /// The waker of the manager.
    pub(super) manager: Option<KeptWaker>,
    /// The workers that the manager does not watch yet.
    pub(super) hired: Vec<usize>,
    /// The workers whose mailbox had no room.
    pub(super) full: Vec<usize>,
    /// The workers that were killed with the spool.
    pub(super) killed: Vec<WeakAddress<(Q, Reply<R>)>>,
    /// What the manager is to carry out.
    pub(super) late: Vec<Outbox<Q, R>>,
    /// Why the spool stops, or has ended: `Aborted` or `Lost`.
    pub(super) stopped: Option<RefusalReason>,
}

impl<Q: Send + 'static, R: Send + 'static> Dispatch<Q, R> {
    /// Creates the state of a spool with this many workers of its own, which are to be made.
    pub(super) fn new(limits: SpoolLimits, workers: usize, own: Weak<dyn Desk<Q, R>>) -> Self {
        let now = Instant::now();
        let slots = (0..workers).map(|_| WorkerSlot::vacant(now)).collect();
        let crews = if limits.has_affinity { workers } else { 1 };
        Dispatch {
            limits,
            own,
            workers: Slab::new(),
            slots,
            crews: (0..crews).map(|_| Crew::new()).collect(),
            strays: Vec::new(),
            open: 0,
            waiting: 0,
            came_in_vain: 0,
            purge_at: PURGE_MIN,
            spans: Spans::default(),
            last_refusal: None,
            counts: SpoolStatus::default(),
            last_number: 0,
            alarm: None,
            manager: None,
            hired: Vec::new(),
            full: Vec::new(),
            killed: Vec::new(),
            late: Vec::new(),
            stopped: None,
        }
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Returns the crew that serves a hash. With affinity there may be none.
    pub(super) fn crew_of(&self, hash: u64) -> Option<usize> {
        match self.crews.len() as u64 {
            0 => None,
            crews => Some((hash % crews) as usize),
        }
    }

    pub(super) fn is_stray(&self, hash: u64) -> bool {
        !self.strays.is_empty() && self.strays.contains(&hash)
    }

    /// Gives a request to a worker that has its assignment.
    pub(super) fn give(
        &mut self,
        key: usize,
        request: QueuedRequest<Q, R>,
        now: Instant,
        outbox: &mut Outbox<Q, R>,
    ) {
        let until = self.limits.worker_time().map(|time| now + time);
        let worker = &mut self.workers[key];
        let QueuedRequest { question, info } = request;
        let from = info.client.from.clone();
        // The question goes with the errand: no mailbox is touched under the lock.
        worker.open = Some(OpenRequest {
            info,
            until,
            spare: None,
        });
        let assignment = worker.assignment.take().expect("SPOOL-3: it is idle");
        let permit = worker.permit.take();
        self.open += 1;
        outbox.push(Errand::Send(assignment, question, from, permit));
        if let Some(until) = until {
            self.set_alarm(until, outbox);
        }
    }

    /// Gives waiting requests to idle workers of a crew.
    pub(super) fn serve(&mut self, crew: usize, now: Instant, outbox: &mut Outbox<Q, R>) {
        loop {
            let Crew { idle, waiting } = &self.crews[crew];
            let (Some(&worker), Some(first)) = (idle.front(), waiting.front()) else {
                return;
            };
            if self.is_stray(first.info.hash) {
                return;
            }
            let Some(request) = self.take_first(crew, now, outbox) else {
                continue;
            };
            self.crews[crew].idle.pop_front();
            self.give(worker, request, now, outbox);
        }
    }

    /// Takes the first request of a line. One that has expired, or has no asker, is answered instead.
    pub(super) fn take_first(
        &mut self,
        crew: usize,
        now: Instant,
        outbox: &mut Outbox<Q, R>,
    ) -> Option<QueuedRequest<Q, R>> {
        let mut request = self.crews[crew].waiting.pop_front()?;
        if request.info.client.reply.is_abandoned() {
            self.forget(request, outbox);
            return None;
        }
        self.waiting -= 1;
        if self.limits.has_expired(request.info.arrived, now) {
            let limit = self.limits.queue_timeout.unwrap_or_default();
            self.refuse(request, RefusalReason::TimedOut(limit), outbox);
            return None;
        }
        Some(request)
    }

    /// Drops a request that was taken out of its line and has no asker.
    pub(super) fn forget(&mut self, request: QueuedRequest<Q, R>, outbox: &mut Outbox<Q, R>) {
        self.waiting -= 1;
        self.counts.unwanted += 1;
        outbox.push(Errand::Forget(request.info.client, request.question));
    }

    /// Takes the outcome of a request. Returns the client that is to receive it.
    pub(super) fn complete(
        &mut self,
        assignment: &Arc<Assignment<Q, R>>,
        outcome: &Result<R, AskError>,
        now: Instant,
        outbox: &mut Outbox<Q, R>,
    ) -> Option<SpoolClient<R>> {
        let (key, number) = (assignment.key, assignment.number);
        let (open, was_stray) = self.take_open(key, number)?;
        let hash = open.info.hash;
        let worker = &mut self.workers[key];
        let client = match outcome {
            // The worker itself has ended. A reply that was lost otherwise leaves it in service.
            Err(AskError::NoReply(detail)) if detail.is_end_of(worker.address.id()) => {
                worker.is_gone = true;
                self.forget_ended(key, outbox);
                self.lose(open, now, outbox)
            }
            outcome => {
                match outcome {
                    Err(AskError::NoReply(_)) => self.counts.lost += 1,
                    _ => self.counts.answered += 1,
                }
                worker.assignment = Some(assignment.clone());
                self.spans.push(now - open.info.arrived);
                self.release(key, now, outbox);
                outbox.discard(open.spare);
                Some(open.info.client)
            }
        };
        if was_stray {
            self.unblock(hash, now, outbox);
        }
        if self.stopped.is_some() {
            self.alert(outbox);
        }
        client
    }

    /// Serves the crew of a hash that may have been a stray one.
    pub(super) fn unblock(&mut self, hash: u64, now: Instant, outbox: &mut Outbox<Q, R>) {
        if let Some(crew) = self.crew_of(hash) {
            self.serve(crew, now, outbox);
        }
    }

    /// Takes the request of a worker, if this assignment is valid. Also returns whether the request
    /// was a stray one.
    pub(super) fn take_open(
        &mut self,
        key: usize,
        number: u64,
    ) -> Option<(OpenRequest<Q, R>, bool)> {
        let worker = self.workers.get_mut(key)?;
        let is_valid = worker.number == number || mutant("a_late_answer_counts");
        let open = worker.open.take_if(|_| is_valid)?;
        self.open -= 1;
        let stray = match self.strays.is_empty() {
            true => None,
            false => self.strays.iter().position(|hash| *hash == open.info.hash),
        };
        if let Some(stray) = stray {
            self.strays.swap_remove(stray);
        }
        Some((open, stray.is_some()))
    }

    /// Tries a request again whose worker has died. Returns its client if it is not tried again.
    pub(super) fn lose(
        &mut self,
        open: OpenRequest<Q, R>,
        now: Instant,
        outbox: &mut Outbox<Q, R>,
    ) -> Option<SpoolClient<R>> {
        let OpenRequest {
            mut info, spare, ..
        } = open;
        // A spool that stops tries nothing again, since no worker gets a request any more.
        let is_tried_again = info.tries > 0 && self.stopped.is_none();
        let question = match spare {
            Some(question) if is_tried_again => question,
            spare => {
                outbox.discard(spare);
                self.counts.lost += 1;
                return Some(info.client);
            }
        };
        info.tries -= 1;
        let request = QueuedRequest { question, info };
        self.put_back(request, now, outbox);
        None
    }

    /// Puts a request back in its line, before those that came later.
    fn put_back(&mut self, request: QueuedRequest<Q, R>, now: Instant, outbox: &mut Outbox<Q, R>) {
        let RequestInfo {
            hash,
            arrived,
            rank,
            ..
        } = request.info;
        let Some(crew) = self.crew_of(hash) else {
            return self.refuse(request, RefusalReason::Unavailable, outbox);
        };
        // Its time in the queue counts from its arrival, also the time that it was with a worker.
        if let Some(deadline) = self.limits.deadline_of(arrived) {
            self.set_alarm(deadline, outbox);
        }
        let line = &mut self.crews[crew].waiting;
        let earlier = line.iter().take_while(|it| it.info.rank < rank).count();
        line.insert(earlier, request);
        self.waiting += 1;
        self.serve(crew, now, outbox);
    }

    /// Makes a worker idle that has its assignment, and lets it take the next request.
    pub(super) fn release(&mut self, key: usize, now: Instant, outbox: &mut Outbox<Q, R>) {
        let worker = &mut self.workers[key];
        if worker.is_gone || worker.is_full {
            return self.forget_ended(key, outbox);
        }
        match worker.crew {
            Some(crew) => {
                self.crews[crew].idle.push_back(key);
                self.serve(crew, now, outbox);
            }
            None => {
                worker.is_gone = true;
                // A worker that has joined is not the spool's to stop.
                if worker.is_own {
                    outbox.push(Errand::Stop(worker.address.clone()));
                }
            }
        }
    }

    /// Takes back a request that a worker's mailbox did not accept.
    #[cold]
    pub(super) fn come_back(
        &mut self,
        assignment: &Arc<Assignment<Q, R>>,
        question: Q,
        is_closed: bool,
        now: Instant,
        outbox: &mut Outbox<Q, R>,
    ) {
        let key = assignment.key;
        let Some((open, _)) = self.take_open(key, assignment.number) else {
            // It was answered meanwhile: it has timed out, or the spool has ended.
            return outbox.discard(Some(question));
        };
        self.assign(key);
        let worker = &mut self.workers[key];
        if is_closed {
            worker.is_gone = true;
        } else {
            worker.is_full = true;
            self.full.push(key);
            self.alert(outbox);
        }
        outbox.discard(open.spare);
        let info = open.info;
        let request = QueuedRequest { question, info };
        self.forget_ended(key, outbox);
        if let Some(stopped) = self.stopped {
            return self.refuse(request, stopped, outbox);
        }
        self.put_back(request, now, outbox);
        self.refuse_without_prospects(outbox);
    }

    /// Gives a worker a new assignment. Replies to the old one have no effect.
    pub(super) fn assign(&mut self, key: usize) {
        let desk = self.own.upgrade().expect("it is in use");
        let number = self.next_number();
        let worker = &mut self.workers[key];
        worker.number = number;
        worker.assignment = Some(Arc::new(Assignment {
            desk,
            worker: worker.address.clone(),
            key,
            number,
        }));
    }

    /// Keeps a copy of the question that a worker has. Returns what is to be dropped.
    pub(super) fn keep(&mut self, assignment: &Assignment<Q, R>, spare: Option<Q>) -> Option<Q> {
        match self.open_of(assignment) {
            Some(open) => std::mem::replace(&mut open.spare, spare),
            None => spare,
        }
    }

    pub(super) fn is_wanted(&mut self, assignment: &Assignment<Q, R>) -> bool {
        let open = self.open_of(assignment);
        open.is_some_and(|open| !open.info.client.reply.is_abandoned())
    }

    /// Returns the request of a worker, if this assignment is valid.
    fn open_of(&mut self, assignment: &Assignment<Q, R>) -> Option<&mut OpenRequest<Q, R>> {
        let worker = self.workers.get_mut(assignment.key)?;
        let open = worker.open.as_mut();
        open.filter(|_| worker.number == assignment.number)
    }

    pub(super) fn refuse(
        &mut self,
        request: QueuedRequest<Q, R>,
        reason: RefusalReason,
        outbox: &mut Outbox<Q, R>,
    ) {
        self.refuse_client(request.info.client, reason, Some(request.question), outbox);
    }

    pub(super) fn refuse_client(
        &mut self,
        client: SpoolClient<R>,
        reason: RefusalReason,
        question: Option<Q>,
        outbox: &mut Outbox<Q, R>,
    ) {
        let counts = &mut self.counts;
        *match reason {
            RefusalReason::Overloaded(_) => &mut counts.refused_overloaded,
            RefusalReason::Busy(_) => &mut counts.refused_busy,
            RefusalReason::TimedOut(_) => &mut counts.refused_timed_out,
            RefusalReason::Unavailable => &mut counts.refused_unavailable,
            RefusalReason::Aborted | RefusalReason::Lost => &mut counts.refused_aborted,
        } += 1;
        let refusal = self.refusal_of(reason);
        outbox.push(Errand::Refuse(client, refusal, question));
    }

    /// Returns the refusal for this reason, which is a clone if it was the last one, too.
    fn refusal_of(&mut self, reason: RefusalReason) -> Refusal {
        match &self.last_refusal {
            Some((last, refusal)) if *last == reason => refusal.clone(),
            _ => {
                let refusal = Refusal::from(reason);
                self.last_refusal = Some((reason, refusal.clone()));
                refusal
            }
        }
    }

    pub(super) fn status(&self) -> SpoolStatus {
        SpoolStatus {
            idle: self.crews.iter().map(|crew| crew.idle.len()).sum(),
            busy: self.open,
            waiting: self.waiting,
            standing_down: self.slots.iter().filter(|slot| slot.due.is_some()).count(),
            average: self.spans.average(),
            ..self.counts
        }
    }
}

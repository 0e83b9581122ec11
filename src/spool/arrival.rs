//! Requests that arrive: one goes to an idle worker, waits in line, or is refused.

use std::time::Duration;

use super::dispatch::Dispatch;
use super::limits::{PURGE_MIN, SpoolLimits};
use super::outbox::Outbox;
use super::refusals::RefusalReason;
use super::worker::{QueuedRequest, RequestInfo, SpoolClient};
use crate::instant::Instant;

impl<Q: Send + 'static, R: Send + 'static> Dispatch<Q, R> {
    /// Takes a request that arrives: gives it to a worker, queues it, or refuses it.
    ///
    /// It has the hash of its key.
    pub(super) fn arrive(
        &mut self,
        question: Q,
        client: SpoolClient<R>,
        hash: u64,
        now: Instant,
        outbox: &mut Outbox<Q, R>,
    ) {
        let info = RequestInfo {
            client,
            rank: self.next_number(),
            arrived: now,
            hash,
            tries: self.limits.retries,
        };
        let request = QueuedRequest { question, info };
        if let Some(stopped) = self.stopped {
            return self.refuse(request, stopped, outbox);
        }
        // Load is judged first, and for each request that arrives, whether or not a worker is idle.
        if let Some(average) = self.judge() {
            return self.refuse(request, RefusalReason::Busy(average), outbox);
        }
        let Some(crew) = self.crew_of(hash) else {
            return self.refuse(request, RefusalReason::Unavailable, outbox);
        };
        // SPOOL-1: a request never overtakes one that waits, nor one of its key under way elsewhere.
        if self.crews[crew].waiting.is_empty()
            && !self.is_stray(hash)
            && let Some(worker) = self.crews[crew].idle.pop_front()
        {
            return self.give(worker, request, now, outbox);
        }
        if !self.has_prospects() {
            return self.refuse(request, RefusalReason::Unavailable, outbox);
        }
        self.queue(crew, request, now, outbox);
    }

    /// Returns the average response time if a request is refused for it.
    fn judge(&mut self) -> Option<Duration> {
        let SpoolLimits {
            responsiveness,
            busy_pass_rate,
            ..
        } = self.limits;
        self.spans.judge(responsiveness, busy_pass_rate)
    }

    /// Puts a request in the line, if there is room.
    fn queue(
        &mut self,
        crew: usize,
        request: QueuedRequest<Q, R>,
        now: Instant,
        outbox: &mut Outbox<Q, R>,
    ) {
        if self.is_full() {
            self.drop_stale(now, outbox);
            self.came_in_vain += 1;
        }
        // Each request pays for a look at one other.
        if self.came_in_vain > self.waiting || self.waiting >= self.purge_at {
            self.purge(outbox);
        }
        if self.is_full() {
            let pending = self.waiting;
            let oldest = match self.limits.refuse_oldest {
                true => self.take_oldest(),
                false => None,
            };
            let refused = match oldest {
                Some(oldest) => {
                    self.line_up(crew, request, outbox);
                    oldest
                }
                None => request,
            };
            return self.refuse(refused, RefusalReason::Overloaded(pending), outbox);
        }
        self.line_up(crew, request, outbox);
    }

    /// Drops the requests in the lines that have no asker any more.
    #[cold]
    fn purge(&mut self, outbox: &mut Outbox<Q, R>) {
        for crew in 0..self.crews.len() {
            for _ in 0..self.crews[crew].waiting.len() {
                let Some(mut request) = self.crews[crew].waiting.pop_front() else {
                    break;
                };
                match request.info.client.reply.is_abandoned() {
                    false => self.crews[crew].waiting.push_back(request),
                    true => self.forget(request, outbox),
                }
            }
        }
        self.came_in_vain = 0;
        self.purge_at = PURGE_MIN.max(2 * self.waiting);
    }

    fn is_full(&self) -> bool {
        let size = self.limits.capacity;
        size.is_some_and(|size| self.waiting >= size)
    }

    fn line_up(&mut self, crew: usize, request: QueuedRequest<Q, R>, outbox: &mut Outbox<Q, R>) {
        if let Some(deadline) = self.limits.deadline_of(request.info.arrived) {
            self.set_alarm(deadline, outbox);
        }
        self.crews[crew].waiting.push_back(request);
        self.waiting += 1;
    }

    /// Takes the oldest request of all lines.
    fn take_oldest(&mut self) -> Option<QueuedRequest<Q, R>> {
        let lines = self.crews.iter_mut().map(|crew| &mut crew.waiting);
        let oldest = lines.filter(|line| !line.is_empty());
        let oldest = oldest.min_by_key(|line| line.front().map(|request| request.info.rank))?;
        self.waiting -= 1;
        oldest.pop_front()
    }

    /// Drops the requests at the heads of the lines that have expired or have no asker.
    pub(super) fn drop_stale(&mut self, now: Instant, outbox: &mut Outbox<Q, R>) {
        for crew in 0..self.crews.len() {
            while self.crews[crew].waiting.front_mut().is_some_and(|request| {
                let info = &mut request.info;
                info.client.reply.is_abandoned() || self.limits.has_expired(info.arrived, now)
            }) {
                self.take_first(crew, now, outbox);
            }
        }
    }
}

//! What falls due in a spool, and when its manager is alerted.

use super::dispatch::Dispatch;
use super::outbox::Outbox;
use super::refusals::RefusalReason;
use super::worker::PoolWorker;
use crate::instant::Instant;

impl<Q: Send + 'static, R: Send + 'static> Dispatch<Q, R> {
    /// Ends what has expired, and sets the next alarm.
    pub(super) fn sweep(&mut self, now: Instant, outbox: &mut Outbox<Q, R>) {
        let is_late = |worker: &PoolWorker<Q, R>| {
            let until = worker.open.as_ref().and_then(|open| open.until);
            until.is_some_and(|until| until <= now)
        };
        let late = self.workers.iter().filter(|(_, worker)| is_late(worker));
        let late: Vec<_> = late.map(|(key, worker)| (key, worker.number)).collect();
        for (key, number) in late {
            let Some((open, _)) = self.take_open(key, number) else {
                continue;
            };
            let limit = self.limits.worker_time().unwrap_or_default();
            let (client, hash) = (open.info.client, open.info.hash);
            self.refuse_client(client, RefusalReason::TimedOut(limit), open.spare, outbox);
            // The worker is given up for this request alone: it gets the next one. Its late answer
            // finds another assignment.
            self.assign(key);
            self.release(key, now, outbox);
            self.unblock(hash, now, outbox);
        }
        self.drop_stale(now, outbox);
        self.alarm = self.next_alarm();
    }

    fn next_alarm(&self) -> Option<Instant> {
        let open = self
            .workers
            .iter()
            .filter_map(|(_, worker)| worker.open.as_ref());
        let open = open.filter_map(|open| open.until);
        let first = self.crews.iter().filter_map(|crew| crew.waiting.front());
        let first = first.filter_map(|first| self.limits.deadline_of(first.info.arrived));
        let due = self.slots.iter().filter_map(|slot| slot.due);
        open.chain(first).chain(due).min()
    }

    /// Sets the alarm to this instant, if it is later now. The manager then looks at the spool.
    pub(super) fn set_alarm(&mut self, at: Instant, outbox: &mut Outbox<Q, R>) {
        if self.alarm.is_none_or(|alarm| at < alarm) {
            self.alarm = Some(at);
            self.alert(outbox);
        }
    }

    pub(super) fn alert(&mut self, outbox: &mut Outbox<Q, R>) {
        if let Some(manager) = self.manager.take() {
            outbox.alert = Some(manager);
        }
    }

    /// Leaves `late` to the manager. After its end nothing follows from a reply.
    #[cold]
    pub(super) fn leave_for_later(&mut self, mut late: Outbox<Q, R>, outbox: &mut Outbox<Q, R>) {
        // The manager may have been alerted by what it is to do late.
        outbox.alert = late.alert.take();
        self.late.push(late);
        self.alert(outbox);
    }
}

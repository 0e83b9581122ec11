//! The workers of a spool: how they come, die, are replaced, and leave.
//!
//! The slots of the spool's own workers come first, in the order of their numbers. With affinity
//! each slot is a crew, so a change of the slots moves waiting requests to other lines.

use super::dispatch::Dispatch;
use super::outbox::{Errand, Outbox};
use super::refusals::RefusalReason;
use super::worker::{Crew, OpenRequest, PoolWorker, QueuedRequest, WorkerSlot};
use crate::actor::{Address, Permit, Reply};
use crate::instant::Instant;

impl<Q: Send + 'static, R: Send + 'static> Dispatch<Q, R> {
    /// Returns the number of slots for workers of the spool's own.
    fn own_workers(&self) -> usize {
        self.slots.iter().filter(|slot| slot.is_own).count()
    }

    /// Returns the numbers of the slots whose workers are to be made now.
    pub(super) fn due(&self, now: Instant) -> Vec<usize> {
        let slots = 0..self.slots.len();
        slots.filter(|slot| self.is_due(*slot, now)).collect()
    }

    /// Returns whether the worker of this slot is to be made now.
    pub(super) fn is_due(&self, slot: usize, now: Instant) -> bool {
        let due = self.slots.get(slot).and_then(|slot| slot.due);
        due.is_some_and(|due| due <= now)
    }

    /// Puts a worker that was made in its slot, if that still waits for it.
    pub(super) fn install(
        &mut self,
        slot: usize,
        worker: Address<(Q, Reply<R>)>,
        now: Instant,
        outbox: &mut Outbox<Q, R>,
    ) {
        let waits = |slot: &WorkerSlot| slot.is_own && slot.due.is_some();
        if self.stopped.is_some() || !self.slots.get(slot).is_some_and(waits) {
            return outbox.push(Errand::Stop(worker));
        }
        let key = self.hire(worker, slot, true, outbox);
        self.slots[slot].due = None;
        self.release(key, now, outbox);
    }

    /// Adds a worker from outside. Returns it if it has joined before, or if the spool stops.
    pub(super) fn join(
        &mut self,
        worker: Address<(Q, Reply<R>)>,
        now: Instant,
        outbox: &mut Outbox<Q, R>,
    ) -> Option<Address<(Q, Reply<R>)>> {
        if self.stopped.is_some() || self.workers.iter().any(|(_, it)| it.address == worker) {
            return Some(worker);
        }
        self.slots.push(WorkerSlot {
            worker: None,
            due: None,
            is_own: false,
        });
        let key = self.hire(worker, self.slots.len() - 1, false, outbox);
        if self.limits.has_affinity {
            self.regroup(now, outbox);
        } else {
            self.release(key, now, outbox);
        }
        None
    }

    fn hire(
        &mut self,
        address: Address<(Q, Reply<R>)>,
        slot: usize,
        is_own: bool,
        outbox: &mut Outbox<Q, R>,
    ) -> usize {
        outbox.push(Errand::Watch(address.clone()));
        // With affinity the number of the slot is that of the crew.
        let key = self.workers.insert(PoolWorker {
            address,
            assignment: None,
            number: 0,
            open: None,
            crew: Some(if self.limits.has_affinity { slot } else { 0 }),
            is_own,
            is_gone: false,
            has_ended: false,
            is_full: false,
            permit: None,
        });
        self.assign(key);
        self.slots[slot].worker = Some(key);
        self.hired.push(key);
        self.alert(outbox);
        key
    }

    /// Notes that a mailbox has room again. `permit` is for it, unless it is closed.
    ///
    /// A request that waits gets the permit. If it came without one, others that wait for room could
    /// always be before it.
    pub(super) fn has_room(
        &mut self,
        (key, id): (usize, u64),
        mut permit: Option<Permit<(Q, Reply<R>)>>,
        now: Instant,
        outbox: &mut Outbox<Q, R>,
    ) {
        let worker = self.workers.get_mut(key);
        // One that has left and joined again meanwhile may not be full any more.
        if let Some(worker) = worker.filter(|it| it.is_full && it.address.id() == id) {
            worker.is_full = false;
            worker.permit = permit;
            self.release(key, now, outbox);
            let worker = self.workers.get_mut(key);
            permit = worker.and_then(|worker| worker.permit.take());
        }
        if let Some(permit) = permit {
            outbox.push(Errand::GiveUp(permit));
        }
    }

    /// Removes a worker that has ended, and plans its successor.
    ///
    /// If it has a request, the reply has not been dropped with it, so it may still be answered.
    pub(super) fn worker_ended(
        &mut self,
        (key, id): (usize, u64),
        now: Instant,
        outbox: &mut Outbox<Q, R>,
    ) {
        let worker = self.workers.get_mut(key);
        let Some(worker) = worker.filter(|worker| worker.address.id() == id) else {
            return;
        };
        (worker.is_gone, worker.has_ended) = (true, true);
        self.leave_line(key);
        // Its request is still under way, and its successor must not overtake it with the same key.
        if let Some(open) = &self.workers[key].open
            && !self.is_stray(open.info.hash)
            && self.limits.has_affinity
        {
            self.strays.push(open.info.hash);
        }
        self.forget_ended(key, outbox);
        let slot = self.slots.iter().position(|it| it.worker == Some(key));
        if let Some(slot) = slot {
            self.counts.deaths += u64::from(self.stopped.is_none());
            match self.slots[slot].is_own {
                true => {
                    self.slots[slot].worker = None;
                    self.replace(slot, now, outbox);
                }
                false => {
                    self.slots.remove(slot);
                    self.regroup(now, outbox);
                }
            }
        }
        self.refuse_without_prospects(outbox);
    }

    /// Takes a worker out of its crew.
    fn leave_line(&mut self, key: usize) {
        if let Some(crew) = self.workers[key].crew.take() {
            self.crews[crew].idle.retain(|idle| *idle != key);
        }
    }

    /// Removes a worker from the table if it has ended and has no request.
    pub(super) fn forget_ended(&mut self, key: usize, outbox: &mut Outbox<Q, R>) {
        if self.workers[key].has_ended && self.workers[key].open.is_none() {
            self.take_out(key, outbox);
        }
    }

    /// Takes a worker out of the table and of the idle line. Returns its request.
    fn take_out(&mut self, key: usize, outbox: &mut Outbox<Q, R>) -> Option<OpenRequest<Q, R>> {
        self.leave_line(key);
        let mut worker = self.workers.remove(key);
        self.full.retain(|full| *full != key);
        self.hired.retain(|hired| *hired != key);
        let open = worker.open.take();
        outbox.push(Errand::Dismiss(Box::new(worker)));
        if let Some(open) = &open {
            self.open -= 1;
            self.strays.retain(|hash| *hash != open.info.hash);
        }
        open
    }

    /// Plans a successor for the worker of a slot, or stops the spool.
    fn replace(&mut self, slot: usize, now: Instant, outbox: &mut Outbox<Q, R>) {
        if self.stopped.is_some() {
            return;
        }
        let delay = self.limits.stand_down.as_ref();
        match delay.and_then(|delay| delay.interval(0)) {
            Some(delay) => {
                self.slots[slot].due = Some(now + delay);
                self.set_alarm(now + delay, outbox);
            }
            None => self.stop(RefusalReason::Lost, outbox),
        }
    }

    /// Counts a panic of the function that makes workers as the death of one.
    pub(super) fn was_not_made(&mut self, slot: usize, now: Instant, outbox: &mut Outbox<Q, R>) {
        if self
            .slots
            .get(slot)
            .is_some_and(|slot| slot.is_own && slot.due.is_some())
        {
            self.counts.deaths += 1;
            self.slots[slot].due = None;
            self.replace(slot, now, outbox);
        }
    }

    /// Removes a worker that has joined. Returns false if there is none with this id.
    pub(super) fn leave(&mut self, id: u64, now: Instant, outbox: &mut Outbox<Q, R>) -> bool {
        let joined = |worker: &PoolWorker<Q, R>| !worker.is_own && !worker.has_ended;
        let mut workers = self.workers.iter();
        let found = workers.find(|(_, it)| joined(it) && it.address.id() == id);
        let Some((key, _)) = found else {
            return false;
        };
        if let Some(open) = self.take_out(key, outbox) {
            let (client, hash) = (open.info.client, open.info.hash);
            self.refuse_client(client, RefusalReason::Aborted, open.spare, outbox);
            self.unblock(hash, now, outbox);
        }
        self.slots.retain(|slot| slot.worker != Some(key));
        self.regroup(now, outbox);
        self.refuse_without_prospects(outbox);
        true
    }

    /// Changes the number of the spool's own workers. Workers that are too many are stopped once
    /// they have no request.
    pub(super) fn resize(&mut self, workers: usize, now: Instant, outbox: &mut Outbox<Q, R>) {
        let before = self.own_workers();
        if self.stopped.is_some() || workers == before {
            return;
        }
        if workers > before {
            // The slots of workers that have joined come after the new ones.
            let new = (before..workers).map(|_| WorkerSlot::vacant(now));
            self.slots.splice(before..before, new);
            self.set_alarm(now, outbox);
            return self.regroup(now, outbox);
        }
        let surplus: Vec<WorkerSlot> = self.slots.drain(workers..before).collect();
        let surplus: Vec<usize> = surplus.iter().filter_map(|slot| slot.worker).collect();
        surplus.iter().for_each(|key| self.leave_line(*key));
        self.regroup(now, outbox);
        for key in surplus {
            if self.workers[key].assignment.is_some() {
                self.release(key, now, outbox);
            }
        }
    }

    /// Makes each slot a crew again after the slots have changed, if there is affinity.
    fn regroup(&mut self, now: Instant, outbox: &mut Outbox<Q, R>) {
        if !self.limits.has_affinity {
            return;
        }
        let lines = self.crews.drain(..).map(|crew| crew.waiting);
        let mut waiting: Vec<QueuedRequest<Q, R>> = lines.flatten().collect();
        waiting.sort_unstable_by_key(|request| request.info.rank);
        // All that waits is dealt out again, in the order of arrival, and so are the idle workers.
        self.waiting = 0;
        self.crews = self.slots.iter().map(|_| Crew::new()).collect();
        for (index, slot) in self.slots.iter().enumerate() {
            let Some(key) = slot.worker else { continue };
            let worker = &mut self.workers[key];
            worker.crew = Some(index);
            if worker.assignment.is_some() && !worker.is_gone && !worker.is_full {
                self.crews[index].idle.push_back(key);
            }
        }
        let open = self
            .workers
            .iter()
            .filter_map(|(_, it)| Some((it.crew, it.open.as_ref()?.info.hash)));
        let strays = open.filter(|(crew, hash)| *crew != self.crew_of(*hash));
        self.strays = strays.map(|(_, hash)| hash).collect();
        for request in waiting {
            match self.crew_of(request.info.hash) {
                Some(crew) => {
                    self.crews[crew].waiting.push_back(request);
                    self.waiting += 1;
                }
                None => self.refuse(request, RefusalReason::Unavailable, outbox),
            }
        }
        for crew in 0..self.crews.len() {
            self.serve(crew, now, outbox);
        }
    }

    /// Returns whether a request may find a worker.
    pub(super) fn has_prospects(&self) -> bool {
        !self.limits.is_external || self.workers.iter().any(|(_, it)| !it.is_gone)
    }

    /// Refuses what waits if no worker can come.
    pub(super) fn refuse_without_prospects(&mut self, outbox: &mut Outbox<Q, R>) {
        if !self.has_prospects() {
            self.refuse_waiting(RefusalReason::Unavailable, outbox);
        }
    }

    fn refuse_waiting(&mut self, reason: RefusalReason, outbox: &mut Outbox<Q, R>) {
        for crew in 0..self.crews.len() {
            for request in std::mem::take(&mut self.crews[crew].waiting) {
                self.waiting -= 1;
                self.refuse(request, reason, outbox);
            }
        }
    }

    /// Stops the spool: answers what waits, and stops the workers that it has made.
    pub(super) fn stop(&mut self, why: RefusalReason, outbox: &mut Outbox<Q, R>) {
        if self.stopped.is_some() {
            return;
        }
        self.stopped = Some(why);
        self.refuse_waiting(why, outbox);
        // No worker gets another request, and none is replaced.
        self.slots.clear();
        self.crews.iter_mut().for_each(|crew| crew.idle.clear());
        self.workers.iter_mut().for_each(|(_, it)| it.crew = None);
        let own = self.workers.iter().filter(|(_, worker)| worker.is_own);
        for (_, worker) in own {
            outbox.push(Errand::Stop(worker.address.clone()));
        }
        self.alert(outbox);
    }

    /// Ends the workers that the spool has made after the request in hand. The spool is stopped.
    pub(super) fn stop_workers_now(&mut self, outbox: &mut Outbox<Q, R>) {
        let own = self.workers.iter().filter(|(_, worker)| worker.is_own);
        for (_, worker) in own {
            outbox.push(Errand::StopNow(worker.address.clone()));
        }
    }

    /// Returns whether a spool that stops has no more to do.
    pub(super) fn is_over(&self) -> bool {
        let has_more = |it: &PoolWorker<Q, R>| !it.has_ended && (it.is_own || it.open.is_some());
        self.stopped.is_some() && !self.workers.iter().any(|(_, it)| has_more(it))
    }

    /// Ends the spool: kills the workers that it has made, and answers all.
    pub(super) fn end(&mut self, outbox: &mut Outbox<Q, R>) {
        self.stop(RefusalReason::Aborted, outbox);
        let reason = self.stopped.unwrap_or(RefusalReason::Aborted);
        // No reply leads anywhere from now on, so each open request is answered here.
        for (_, mut worker) in std::mem::take(&mut self.workers) {
            if worker.is_own {
                self.killed.push(worker.address.downgrade());
                outbox.push(Errand::Kill(worker.address.clone()));
            }
            if let Some(open) = worker.open.take() {
                self.refuse_client(open.info.client, reason, open.spare, outbox);
            }
            outbox.push(Errand::Dismiss(Box::new(worker)));
        }
        self.open = 0;
        self.strays.clear();
        self.crews.iter_mut().for_each(|crew| crew.idle.clear());
        self.slots.clear();
    }
}

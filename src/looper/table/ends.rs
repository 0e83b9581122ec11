//! How tasks, loopers, locks and the controller end.
//!
//! A closed looper ends with its last task, and a closed controller with its last looper.

use std::sync::Arc;

use super::{Phase, Table};
use crate::instant::Instant;
use crate::looper::effects::Effects;
use crate::looper::error::{LockDetail, LockError, TaskError};
use crate::looper::identity::Key;
use crate::looper::job::Job;
use crate::looper::place::Place;
use crate::looper::seat::Seat;
use crate::waiters::Waiters;

impl Table {
    /// Closes a looper, which ends when it has no task left.
    pub(in crate::looper) fn close(&mut self, seat: &Arc<Seat>, effects: &mut Effects) {
        let Some(entry) = self.entry(seat) else {
            return;
        };
        let was_open = !std::mem::replace(&mut entry.is_closed, true);
        if entry.phase == Phase::Idle {
            self.end_looper(seat.key, effects);
        }
        self.open -= usize::from(was_open);
        self.judge_handles(effects);
    }

    /// Returns the list of those that wait for the end of a looper, unless it has ended.
    pub(in crate::looper) fn closers(&mut self, seat: &Arc<Seat>) -> Option<Arc<Waiters>> {
        let closers = &mut self.entry(seat)?.extras().closers;
        let new = || Arc::new(Waiters::new());
        Some(closers.get_or_insert_with(new).clone())
    }

    /// Closes the controller when nothing can post to it any more.
    pub(in crate::looper) fn judge_handles(&mut self, effects: &mut Effects) {
        if self.holds == 0 && self.open == 0 {
            self.close_all(effects);
        }
    }

    /// Removes a looper that has no task, and gives back the locks that it keeps.
    pub(super) fn end_looper(&mut self, key: Key, effects: &mut Effects) {
        let mut entry = self.loopers.remove(key as usize);
        if let Some(extras) = entry.extras.take() {
            for place in extras.kept.into_values() {
                self.end_hold(key, place, effects);
            }
            effects.wake_all(extras.closers);
        }
        self.judge_end(effects);
    }

    /// Accepts no more tasks. All loopers end when they have none left.
    pub(in crate::looper) fn close_all(&mut self, effects: &mut Effects) {
        if self.is_closed {
            return;
        }
        self.is_closed = true;
        // From now on nothing but the loopers themselves can end a deadlock.
        self.detects = true;
        let keys: Vec<Key> = self
            .loopers
            .iter()
            .map(|(_, entry)| entry.seat.key)
            .collect();
        for &key in &keys {
            // A closed one may have ended because of an earlier one.
            let Some(entry) = self.loopers.get_mut(key as usize) else {
                continue;
            };
            entry.is_closed = true;
            if entry.phase == Phase::Idle {
                self.end_looper(key, effects);
            }
            self.settle(effects);
        }
        for key in keys {
            let entry = self.loopers.get(key as usize);
            let waiting = entry.and_then(|entry| match entry.phase {
                Phase::Waiting { at, .. } => Some((at as usize, entry.head.clone()?)),
                _ => None,
            });
            if let Some((at, job)) = waiting
                && (at > 0 || self.is_needed(key))
                && let Some(deadlock) = self.judge(key)
            {
                job.body.take(TaskError::Deadlock(deadlock), false);
                self.drop_head(key, at, effects);
                self.prepare(key, effects);
                self.settle(effects);
            }
        }
        self.judge_end(effects);
    }

    /// Ends the controller when no task is left and none can be posted.
    pub(in crate::looper) fn judge_end(&mut self, effects: &mut Effects) {
        let is_idle = self.loopers.is_empty() && !self.is_world_stopped();
        if !self.is_closed || self.is_over || !is_idle {
            return;
        }
        self.is_over = true;
        self.lanes.wake_all(effects);
        effects.wake(self.steward.take());
        effects.wake_waiters();
    }

    /// Takes all work that is left, at the end of the runtime.
    pub(in crate::looper) fn abort(&mut self, effects: &mut Effects) {
        self.is_closed = true;
        self.is_aborted = true;
        let keys: Vec<Key> = self
            .loopers
            .iter()
            .map(|(_, entry)| entry.seat.key)
            .collect();
        for key in keys {
            let Some(entry) = self.loopers.get_mut(key as usize) else {
                continue;
            };
            entry.is_closed = true;
            let rest = entry.extras.as_mut().map(|extras| {
                extras.taken = 0;
                std::mem::take(&mut extras.rest)
            });
            for job in rest.into_iter().flatten() {
                job.body.take(TaskError::NotStarted, false);
                effects.over(job);
            }
            self.abort_head(key, effects);
            self.settle(effects);
        }
        for job in std::mem::take(&mut self.world.tasks) {
            job.body.take(TaskError::NotStarted, false);
            effects.over(job);
        }
        // What is left in them has no task.
        self.ready.clear();
        self.halted.clear();
        self.deadlines.clear();
        self.judge_end(effects);
    }

    /// Takes the head of a looper that has no other task.
    fn abort_head(&mut self, key: Key, effects: &mut Effects) {
        let entry = self.at(key);
        let phase = entry.phase;
        let Some(job) = entry.head.clone() else {
            return self.prepare(key, effects);
        };
        match phase {
            Phase::Idle => {}
            // The lane ends it when the task returns, or drops its future.
            Phase::Running { .. } => {}
            Phase::Waiting { at, .. } => {
                job.body.take(TaskError::NotStarted, false);
                self.drop_head(key, at as usize, effects);
                self.prepare(key, effects);
            }
            Phase::Ready { .. } => {
                job.body.take(TaskError::NotStarted, false);
                self.drop_ready(key, effects);
                self.prepare(key, effects);
            }
            Phase::Suspended | Phase::Resumed => {
                job.body.take(TaskError::Cancelled, true);
                self.begun -= 1;
                let entry = self.at(key);
                entry.head = None;
                self.give_back(key, &job, usize::MAX, true, effects);
                effects.over(job.clone());
                self.prepare(key, effects);
            }
        }
        effects.release(job);
    }

    /// Takes a task that has not begun. Returns whether `take` took its work.
    pub(in crate::looper) fn cancel(
        &mut self,
        (looper, job): (Option<Key>, *const ()),
        deadline: Option<(Instant, u64)>,
        take: &mut dyn FnMut() -> bool,
        effects: &mut Effects,
    ) -> bool {
        if !take() {
            return false;
        }
        self.meets(deadline, effects);
        let is_it = |it: &Arc<Job>| Arc::as_ptr(it).cast::<()>() == job;
        let Some(key) = looper else {
            let at = self.world.tasks.iter().position(is_it);
            let job = at.and_then(|at| self.world.tasks.remove(at));
            job.into_iter().for_each(|job| effects.release(job));
            if !self.is_world_stopped() {
                self.world_has_run(effects);
            }
            return true;
        };
        // The looper exists, since it has this task.
        let entry = self.at(key);
        let (phase, is_head) = (entry.phase, entry.head.as_ref().is_some_and(is_it));
        if !is_head {
            entry.extras().taken += 1;
        } else if let Phase::Waiting { at, .. } = phase {
            self.drop_head(key, at as usize, effects);
            self.prepare(key, effects);
        } else if let Phase::Ready { .. } = phase {
            self.drop_ready(key, effects);
            self.prepare(key, effects);
        }
        // Otherwise its lane finds that there is nothing to run.
        true
    }

    /// Ends the tasks whose locks were not granted in time. Returns the next deadline.
    pub(in crate::looper) fn expire(
        &mut self,
        now: Instant,
        effects: &mut Effects,
    ) -> Option<Instant> {
        while let Some(entry) = self.deadlines.first_entry() {
            let (due, _) = *entry.key();
            if due > now {
                return Some(due);
            }
            let job = entry.remove();
            if let Some(seat) = job.origin.seat() {
                let entry = self.at(seat.key);
                let is_head = entry.head.as_ref().is_some_and(|it| Arc::ptr_eq(it, &job));
                let at = match entry.phase {
                    Phase::Waiting { at, .. } if is_head => at as usize,
                    _ => 0,
                };
                let lock = job.wants.as_slice().get(at);
                let lock = lock.map(|want| &want.place.identity);
                let lock = lock.map_or_else(|| "its turn".to_owned(), ToString::to_string);
                let error = LockError::TimedOut(LockDetail::new(&seat.identity, &lock));
                let mut take = || {
                    let error = TaskError::Lock(error.clone());
                    job.body.take(error, false)
                };
                let at = Arc::as_ptr(&job).cast::<()>();
                if self.cancel((Some(seat.key), at), None, &mut take, effects) {
                    effects.over(job.clone());
                }
            }
            effects.release(job);
            self.settle(effects);
        }
        None
    }

    /// Closes a lock. Returns whether it was open.
    pub(in crate::looper) fn close_lock(&mut self, place: &Place) -> bool {
        !std::mem::replace(&mut place.state().is_closed, true)
    }

    /// Returns whether the value of a closed lock that nothing uses may be given back: the world
    /// does not run.
    pub(in crate::looper) fn is_lock_over(&self, place: &Place) -> bool {
        if !self.world.is_running {
            place.state().is_over = true;
        }
        !self.world.is_running
    }
}

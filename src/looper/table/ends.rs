//! How tasks, loopers, locks and the controller end.
//!
//! A closed looper ends with its last task, and a closed controller with its last looper.

use std::sync::Arc;

use super::LooperTable;
use crate::instant::Instant;
use crate::looper::cell::{LockCell, LooperCell, LooperPhase};
use crate::looper::error::{LockDetail, LockError, TaskError};
use crate::looper::job::{PostedJob, is_same};
use crate::looper::monitor::{FollowUp, Monitor};
use crate::sync::atomic::Ordering;
use crate::waiters::Waiters;

impl LooperTable {
    /// Closes a looper, which ends when it has no task left.
    pub(in crate::looper) fn close(&mut self, looper: &LooperCell, follow_up: &mut FollowUp) {
        let (was_open, phase) = looper.with(|state| {
            let was_open = !std::mem::replace(&mut state.is_closed, true);
            (was_open, state.phase)
        });
        if phase == LooperPhase::Idle {
            self.end_looper(looper.key, follow_up);
        }
        self.open -= usize::from(was_open);
        self.judge_handles(&looper.monitor, follow_up);
    }

    /// Returns the list of those that wait for the end of a looper, unless it has ended.
    pub(in crate::looper) fn closers(&mut self, looper: &LooperCell) -> Option<Arc<Waiters>> {
        looper.with(|state| {
            let new = || Arc::new(Waiters::new());
            let is_open = state.phase != LooperPhase::Ended;
            is_open.then(|| state.closers.get_or_insert_with(new).clone())
        })
    }

    /// Closes the controller when nothing can post to it any more.
    pub(in crate::looper) fn judge_handles(&mut self, monitor: &Monitor, follow_up: &mut FollowUp) {
        // Relaxed: the table's lock orders it. Who removes the last handle comes here afterwards.
        if monitor.handles.load(Ordering::Relaxed) == 0 && self.open == 0 {
            self.close_all(follow_up);
        }
    }

    /// Removes a looper that has no task, and gives back the locks that it keeps.
    pub(super) fn end_looper(&mut self, key: u32, follow_up: &mut FollowUp) {
        let looper = self.loopers.remove(key as usize);
        let (kept, closers) = looper.with(|state| {
            state.phase = LooperPhase::Ended;
            (std::mem::take(&mut state.kept), state.closers.take())
        });
        for lock in kept.into_values() {
            self.end_hold(key, lock, follow_up);
        }
        follow_up.wake_all(closers);
        self.judge_end(follow_up);
    }

    fn all_loopers(&self) -> Vec<Arc<LooperCell>> {
        let loopers = self.loopers.iter();
        loopers.map(|(_, looper)| looper.clone()).collect()
    }

    /// Accepts no more tasks. All loopers end when they have none left.
    pub(in crate::looper) fn close_all(&mut self, follow_up: &mut FollowUp) {
        if self.is_closed {
            return;
        }
        self.is_closed = true;
        // From now on nothing but the loopers themselves can end a deadlock.
        self.detects = true;
        let loopers = self.all_loopers();
        for looper in &loopers {
            let phase = looper.with(|state| {
                state.is_closed = true;
                state.phase
            });
            // A closed one may have ended because of an earlier one.
            if phase == LooperPhase::Idle {
                self.end_looper(looper.key, follow_up);
            }
            self.serve_granted(follow_up);
        }
        for looper in &loopers {
            let (phase, head) = looper.with(|state| (state.phase, state.head.clone()));
            if let (LooperPhase::Waiting { at, .. }, Some(job)) = (phase, head)
                && (at > 0 || self.is_needed(looper))
                && let Some(deadlock) = self.judge(looper.key)
            {
                job.body.take(TaskError::Deadlock(deadlock), false);
                self.drop_head(&job, at as usize, follow_up);
                self.prepare(looper.key, follow_up);
                self.serve_granted(follow_up);
            }
        }
        self.judge_end(follow_up);
    }

    /// Ends the controller when no task is left and none can be posted.
    pub(super) fn judge_end(&mut self, follow_up: &mut FollowUp) {
        let is_idle = self.loopers.is_empty() && !self.is_world_stopped();
        if !self.is_closed || self.is_over || !is_idle {
            return;
        }
        self.is_over = true;
        for waker in self.lanes.take_all() {
            follow_up.wake(Some(waker));
        }
        follow_up.wake(self.steward.take());
        follow_up.wake_waiters();
    }

    /// Takes all work that is left, at the end of the runtime.
    pub(in crate::looper) fn abort(&mut self, follow_up: &mut FollowUp) {
        self.is_closed = true;
        self.is_aborted = true;
        for looper in self.all_loopers() {
            let rest = looper.with(|state| {
                state.is_closed = true;
                state.taken_in_rest = 0;
                std::mem::take(&mut state.rest)
            });
            for job in rest {
                job.body.take(TaskError::NotStarted, false);
                follow_up.over(job);
            }
            self.abort_head(&looper, follow_up);
            self.serve_granted(follow_up);
        }
        for job in std::mem::take(&mut self.world) {
            job.body.take(TaskError::NotStarted, false);
            follow_up.over(job);
        }
        // What is left in them has no task.
        self.ready.clear();
        self.halted.clear();
        self.deadlines.clear();
        self.judge_end(follow_up);
    }

    /// Takes the head of a looper that has no other task.
    fn abort_head(&mut self, looper: &LooperCell, follow_up: &mut FollowUp) {
        let (phase, head) = looper.with(|state| (state.phase, state.head.clone()));
        let Some(job) = head else {
            if phase == LooperPhase::Idle {
                self.end_looper(looper.key, follow_up);
            }
            return;
        };
        match phase {
            // The lane ends it when the task returns, or drops its future.
            LooperPhase::Idle | LooperPhase::Ended | LooperPhase::Running { .. } => {}
            LooperPhase::Posted => {
                job.body.take(TaskError::NotStarted, false);
                // The looper is in the inbox, and ends when it is taken from there.
                self.drop_head(&job, 0, follow_up);
            }
            LooperPhase::Waiting { at, .. } => {
                job.body.take(TaskError::NotStarted, false);
                self.drop_head(&job, at as usize, follow_up);
                self.prepare(looper.key, follow_up);
            }
            LooperPhase::Ready { has_locks } => {
                job.body.take(TaskError::NotStarted, false);
                self.drop_ready(&job, has_locks, follow_up);
                self.prepare(looper.key, follow_up);
            }
            LooperPhase::Suspended | LooperPhase::Resumed => {
                job.body.take(TaskError::Cancelled, true);
                self.begun -= 1;
                let head = looper.with(|state| state.head.take());
                self.give_back(&job, usize::MAX, true, follow_up);
                follow_up.over(job.clone());
                drop(head);
                self.prepare(looper.key, follow_up);
            }
        }
        follow_up.release(job);
    }

    /// Takes a task that has not begun. Returns whether `take` took its work.
    pub(in crate::looper) fn cancel(
        &mut self,
        job: &Arc<PostedJob>,
        take: impl FnOnce() -> bool,
        follow_up: &mut FollowUp,
    ) -> bool {
        if !take() {
            return false;
        }
        self.meets(job, follow_up);
        if job.looper.is_world() {
            self.world.retain(|it| !is_same(it, job));
            if !self.is_world_stopped() {
                self.world_has_run(follow_up);
            }
            return true;
        }
        let phase = job.looper.with(|state| {
            let is_head = state.head.as_ref().is_some_and(|head| is_same(head, job));
            state.taken_in_rest += u32::from(!is_head);
            is_head.then_some(state.phase)
        });
        match phase {
            Some(LooperPhase::Waiting { at, .. }) => {
                self.drop_head(job, at as usize, follow_up);
                self.prepare(job.looper.key, follow_up);
            }
            Some(LooperPhase::Ready { has_locks }) => {
                self.drop_ready(job, has_locks, follow_up);
                self.prepare(job.looper.key, follow_up);
            }
            // It is behind the head, or its lane finds that there is nothing to run.
            _ => {}
        }
        true
    }

    /// Ends the tasks whose locks were not granted in time. Returns the next deadline.
    pub(in crate::looper) fn expire(
        &mut self,
        now: Instant,
        follow_up: &mut FollowUp,
    ) -> Option<Instant> {
        while let Some(entry) = self.deadlines.first_entry() {
            let (due, _) = *entry.key();
            if due > now {
                return Some(due);
            }
            let job = entry.remove();
            // The error names the lock for which the task waits, or the first one if it waits for its
            // turn in the looper.
            let at = job.looper.with(|state| match state.phase {
                LooperPhase::Waiting { at, .. }
                    if state.head.as_ref().is_some_and(|head| is_same(head, &job)) =>
                {
                    at as usize
                }
                _ => 0,
            });
            let lock = job.wants().get(at);
            let lock = lock.map_or_else(|| "its turn".to_owned(), |want| want.lock.to_string());
            let error = LockError::TimedOut(LockDetail::new(&*job.looper, &lock));
            let take = || job.body.take(TaskError::Lock(error), false);
            if self.cancel(&job, take, follow_up) {
                follow_up.over(job.clone());
            }
            follow_up.release(job);
            self.serve_granted(follow_up);
        }
        None
    }

    /// Returns whether the value of a closed lock that nothing uses may be given back: the world
    /// does not run.
    pub(in crate::looper) fn is_lock_over(&self, lock: &LockCell) -> bool {
        if !self.is_world_task_running {
            lock.with(|state| state.is_over = true);
        }
        !self.is_world_task_running
    }
}

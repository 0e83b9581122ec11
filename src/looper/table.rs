//! The table of a controller: its loopers, what is ready, its lanes and the world.
//!
//! `locks.rs` has how a looper gets its locks, and `line.rs` the state of one lock. `lanes.rs` has what
//! is ready and who runs it, and `standby.rs` when a lane stands by. `waits.rs` has the deadlocks,
//! `ends.rs` all ends.
//!
//! Everything here changes under one lock, under which no user code runs. A change notes in
//! [`FollowUp`] what is to be done when the lock is free. Loopers that were granted a lock are noted
//! as well, and go on when the change is over: [`LooperTable::serve_granted`].

mod ends;
mod lanes;
mod line;
mod locks;
mod standby;
mod waits;

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::task::Poll;

use slab::Slab;

use lanes::{Lanes, ReadyLines};
pub(super) use line::LockState;
pub(super) use standby::WATCH;

use super::cell::{LooperCell, LooperPhase, NOWHERE};
use super::error::TaskError;
use super::job::{JobRun, PostedJob};
use super::monitor::{FollowUp, Monitor};
use crate::contain::KeptWaker;
use crate::instant::Instant;
use crate::sync::mutant;

pub(super) struct LooperTable {
    pub(super) loopers: Slab<Arc<LooperCell>>,
    ready: ReadyLines,
    /// The loopers that a lane took while a task of the world waited. They go back to the front of the
    /// ready lines after the last of these tasks.
    halted: Vec<u32>,
    /// The tasks of the world that have not begun.
    world: VecDeque<Arc<PostedJob>>,
    /// A task of the world runs, so the world is stopped: no task of a looper runs.
    is_world_task_running: bool,
    /// The number of tasks of loopers that have begun and not ended.
    begun: usize,
    /// The number of guards of async tasks.
    guards: usize,
    /// The number of locks that are held.
    pub(super) held: usize,
    pub(super) lanes: Lanes,
    /// The waker of the steward.
    pub(super) steward: Option<KeptWaker>,
    /// The jobs whose locks must be granted in time.
    deadlines: BTreeMap<(Instant, u64), Arc<PostedJob>>,
    /// Which looper's task awaits which results. Their `Posted` have pointers to them, too.
    awaits: BTreeMap<u32, Vec<Arc<PostedJob>>>,
    /// An empty list, for loopers that are taken from the inbox.
    pub(super) posted: Vec<u32>,
    /// The number of steps of lanes since posts were looked at.
    steps: u32,
    /// In a simulation each post reaches the table at once, so that the order is exact.
    is_simulated: bool,
    /// Loopers that were granted a lock in this change, and are still `Waiting`. They are served before
    /// another head is dropped.
    granted: VecDeque<u32>,
    numbers: u64,
    aging: Option<NonZeroU32>,
    detects: bool,
    /// No more tasks are accepted.
    is_closed: bool,
    /// The number of loopers that accept tasks.
    open: usize,
    /// What was left is dropped, at the end of the runtime.
    is_aborted: bool,
    /// No task is left, and none can be posted.
    pub(super) is_over: bool,
}

/// The state of a controller, as [`Controller::status`](super::Controller::status) returns it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LooperStatus {
    /// The number of loopers.
    pub loopers: usize,
    /// The number of loopers whose next task could begin or go on.
    pub ready: usize,
    /// The number of loopers whose task a lane runs now.
    pub running: usize,
    /// The number of loopers that wait for a lock.
    pub waiting: usize,
    /// The number of locks that are held.
    pub locks_held: usize,
    /// Whether a task of the world waits or runs, so that no other task begins.
    pub is_world_stopped: bool,
}

/// The number of steps of lanes after which posts are looked at in any case.
const POSTS_EVERY: u32 = 8;

impl LooperTable {
    /// Creates a table for so many lanes.
    pub(super) fn new(
        lanes: usize,
        highest: u8,
        aging: u32,
        detects: bool,
        is_simulated: bool,
    ) -> Self {
        LooperTable {
            loopers: Slab::new(),
            ready: ReadyLines::new(highest, aging),
            halted: Vec::new(),
            world: VecDeque::new(),
            is_world_task_running: false,
            begun: 0,
            guards: 0,
            held: 0,
            lanes: Lanes::new(lanes),
            steward: None,
            deadlines: BTreeMap::new(),
            awaits: BTreeMap::new(),
            posted: Vec::new(),
            steps: 0,
            is_simulated,
            granted: VecDeque::new(),
            numbers: 0,
            aging: NonZeroU32::new(aging),
            detects,
            is_closed: false,
            open: 0,
            is_aborted: false,
            is_over: false,
        }
    }

    pub(super) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Creates a looper. A closed controller has only closed ones.
    pub(super) fn add(
        &mut self,
        monitor: &Arc<Monitor>,
        name: Option<Box<str>>,
    ) -> Arc<LooperCell> {
        let (monitor, id) = (monitor.clone(), self.number());
        if self.is_closed {
            return LooperCell::new(monitor, NOWHERE, id, name);
        }
        let entry = self.loopers.vacant_entry();
        let key = u32::try_from(entry.key());
        let key = key.expect("fewer than 2^32 loopers fit into memory");
        self.open += 1;
        entry
            .insert(LooperCell::new(monitor, key, id, name))
            .clone()
    }

    fn at(&self, key: u32) -> &LooperCell {
        &self.loopers[key as usize]
    }

    /// Takes a task with a deadline. Returns whether its looper accepts it.
    pub(super) fn post_timed(&mut self, job: &Arc<PostedJob>, follow_up: &mut FollowUp) -> bool {
        let (looper, deadline) = (&job.looper, job.deadline());
        let added = looper.with(|state| (!state.is_closed).then(|| state.add(job.clone())));
        let (Some(is_new), Some(deadline)) = (added, deadline) else {
            return false;
        };
        self.deadlines.insert(deadline, job.clone());
        if is_new {
            self.prepare(looper.key, follow_up);
        }
        let first = self.deadlines.first_key_value().map(|(first, _)| *first);
        if first == Some(deadline) {
            follow_up.wake(self.steward.take());
        }
        true
    }

    /// Returns whether a lane looks at posts before it finds what to do next, given the inbox's top.
    pub(super) fn needs_posts(&mut self, top: u32) -> bool {
        self.steps += 1;
        let is_due = self.steps >= POSTS_EVERY || top > self.ready.top();
        if is_due {
            self.steps = 0;
        }
        is_due && top > 0
    }

    /// Returns whether each post must reach the table at once.
    pub(super) fn needs_each_post(&self) -> bool {
        self.is_closed || self.is_simulated || self.lanes.has_spare()
    }

    /// Takes a task of the world. Returns whether the controller accepts it.
    pub(super) fn post_alone(&mut self, job: Arc<PostedJob>, follow_up: &mut FollowUp) -> bool {
        if self.is_closed {
            return false;
        }
        self.world.push_back(job);
        if let Some(deadlock) = self.judge_world()
            && let Some(job) = self.world.pop_back()
        {
            job.body.take(TaskError::Deadlock(deadlock), false);
            follow_up.over(job);
        }
        self.summon(follow_up);
        true
    }

    /// Moves a looper whose head is new on, until the head is ready or waits, or there is none.
    pub(super) fn prepare(&mut self, key: u32, follow_up: &mut FollowUp) {
        self.move_on(key, false, follow_up);
    }

    /// Does the same. `has_ended`: first the head is removed, which has ended.
    fn move_on(&mut self, key: u32, mut has_ended: bool, follow_up: &mut FollowUp) {
        loop {
            // Most jobs are ready or book their locks in this one section: `Ok`. Otherwise there is a
            // job that must take its locks one by one, or none.
            let next = self.at(key).with(|state| {
                if std::mem::take(&mut has_ended) {
                    state.head = None;
                }
                state.find_head(follow_up);
                let Some(job) = &state.head else {
                    state.phase = LooperPhase::Idle;
                    return Err(None);
                };
                if job.deadline.is_some() || !job.book_locks() {
                    return Err(Some(job.clone()));
                }
                // Without wants it has all its locks; otherwise they are all booked now.
                let has_locks = job.wants().is_empty();
                state.phase = LooperPhase::Ready { has_locks };
                Ok(job.priority)
            });
            match next {
                Ok(priority) => {
                    self.ready.push(priority, key);
                    return self.summon(follow_up);
                }
                Err(None) => return self.end_if_closed(key, follow_up),
                Err(Some(job)) => {
                    if self.take_locks(&job, 0, false, follow_up) {
                        return self.make_ready(&job, follow_up);
                    }
                    if self.at(key).with(|state| state.head.is_some()) {
                        return;
                    }
                }
            }
        }
    }

    fn end_if_closed(&mut self, key: u32, follow_up: &mut FollowUp) {
        if self.at(key).with(|state| state.is_closed) {
            self.end_looper(key, follow_up);
        }
    }

    /// Makes a looper ready whose head has all of its locks, and ends its deadline.
    fn make_ready(&mut self, head: &Arc<PostedJob>, follow_up: &mut FollowUp) {
        let phase = LooperPhase::Ready { has_locks: true };
        head.looper.set_phase(phase);
        self.ready.push(head.priority, head.looper.key);
        self.meets(head, follow_up);
        self.summon(follow_up);
    }

    /// Removes the deadline of a job, which was met or whose work was taken.
    fn meets(&mut self, job: &PostedJob, follow_up: &mut FollowUp) {
        let Some(deadline) = &job.deadline else {
            return;
        };
        // A timer that is not needed would keep the runtime from being quiescent.
        if self.deadlines.remove(deadline).is_some() && self.deadlines.is_empty() {
            follow_up.wake(self.steward.take());
        }
    }

    /// Notes that the runtime has dropped a lane.
    pub(super) fn lost_lane(&mut self, lane: usize, follow_up: &mut FollowUp) {
        self.lanes.lost(lane);
        self.summon(follow_up);
    }

    /// Wakes a lane if there is something to do.
    fn summon(&mut self, follow_up: &mut FollowUp) {
        if !self.ready.is_empty() || self.world_task_may_run() {
            follow_up.wake(self.lanes.summon(&mut self.steward));
        }
    }

    fn world_task_may_run(&self) -> bool {
        !self.world.is_empty() && !self.is_world_task_running && self.is_still()
    }

    /// Returns whether no task of a looper has begun, and no guard is left.
    fn is_still(&self) -> bool {
        (self.begun == 0 || mutant("the_world_waits_for_no_task")) && self.guards == 0
    }

    /// Returns whether a task of the world runs or waits. Then no task of a looper begins.
    pub(super) fn is_world_stopped(&self) -> bool {
        self.is_world_task_running || !self.world.is_empty()
    }

    /// Returns the job that a lane runs next, or `None` if no job will ever come.
    pub(super) fn next(&mut self, follow_up: &mut FollowUp) -> Poll<Option<Arc<PostedJob>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if self.is_world_task_running {
            return Poll::Pending;
        }
        if self.world_task_may_run()
            && let Some(job) = self.world.pop_front()
        {
            self.is_world_task_running = true;
            return Poll::Ready(Some(job));
        }
        // Without a job the looper is halted, waits for a lock, or has lost its head; then the next one
        // may be ready again.
        while let Some(key) = self.ready.pop() {
            if let Some(job) = self.begin(key, follow_up) {
                if !self.ready.is_empty() {
                    follow_up.wake(self.lanes.summon(&mut self.steward));
                }
                return Poll::Ready(Some(job));
            }
        }
        Poll::Pending
    }

    /// Begins the head of a looper, or lets it go on. Returns `None` if the head cannot run now: the
    /// world halts it, or a booked lock was taken by another task or refused.
    fn begin(&mut self, key: u32, follow_up: &mut FollowUp) -> Option<Arc<PostedJob>> {
        // What is ready begins, unless the world stops it. What was resumed goes on in any case.
        let stops = !self.world.is_empty();
        let (phase, head) = self.at(key).with(|state| {
            let phase = state.phase;
            if !stops || !matches!(phase, LooperPhase::Ready { .. }) {
                state.phase = LooperPhase::Running { is_woken: false };
            }
            (phase, state.head.clone())
        });
        // A looper in the ready lines has a head: `drop_ready` removes both.
        let job = head?;
        let LooperPhase::Ready { has_locks } = phase else {
            return Some(job);
        };
        if stops {
            self.halted.push(key);
            return None;
        }
        if !has_locks && !self.take_booked(&job, follow_up) {
            return None;
        }
        self.begun += 1;
        self.guards += job.guards();
        Some(job)
    }

    /// Notes how the turn of a task has ended. The lane keeps the job, so that nothing of a user is
    /// dropped under the lock.
    pub(super) fn has_run(&mut self, job: &Arc<PostedJob>, run: JobRun, follow_up: &mut FollowUp) {
        let looper = &job.looper;
        self.lanes.standby.task_ended();
        if looper.is_world() {
            return self.world_has_run(follow_up);
        }
        if run == JobRun::Waits && !self.is_aborted {
            let was_woken = looper.with(|state| {
                let phase = std::mem::replace(&mut state.phase, LooperPhase::Suspended);
                phase == LooperPhase::Running { is_woken: true }
            });
            if was_woken {
                self.resume(looper, follow_up);
            }
            return;
        }
        if run == JobRun::Waits {
            job.body.take(TaskError::Cancelled, true);
            follow_up.over(job.clone());
        }
        self.awaits.remove(&looper.key);
        self.begun -= 1;
        if run == JobRun::Never {
            self.guards -= job.guards();
        }
        if run != JobRun::Never || !mutant("a_cancelled_task_keeps_its_locks") {
            self.give_back(job, usize::MAX, run != JobRun::Never, follow_up);
        }
        // The lane that calls this asks for a job in this change or is polled again. So what becomes
        // ready here wakes no lane, and that includes the loopers that get these locks.
        let was_waking = self.lanes.set_waking(true);
        self.move_on(looper.key, true, follow_up);
        self.serve_granted(follow_up);
        self.lanes.set_waking(was_waking);
    }

    /// Notes that a task of the world has ended.
    fn world_has_run(&mut self, follow_up: &mut FollowUp) {
        self.is_world_task_running = false;
        if self.world.is_empty() && !mutant("halted_loopers_stay") {
            for key in std::mem::take(&mut self.halted).into_iter().rev() {
                let head = self.at(key).head();
                self.ready
                    .push_first(head.map_or(0, |job| job.priority), key);
            }
        }
        follow_up.wake_waiters();
        self.summon(follow_up);
        self.judge_end(follow_up);
    }

    /// Notes that the future of a looper's task was woken.
    pub(super) fn woken(&mut self, looper: &Arc<LooperCell>, follow_up: &mut FollowUp) {
        let is_suspended = looper.with(|state| {
            if let LooperPhase::Running { is_woken } = &mut state.phase {
                *is_woken = true;
            }
            state.phase == LooperPhase::Suspended
        });
        if is_suspended {
            self.resume(looper, follow_up);
        }
    }

    fn resume(&mut self, looper: &LooperCell, follow_up: &mut FollowUp) {
        let priority = looper.with(|state| {
            state.phase = LooperPhase::Resumed;
            state.head.as_ref().map_or(0, |job| job.priority)
        });
        self.ready.push(priority, looper.key);
        follow_up.wake(self.lanes.summon(&mut self.steward));
    }

    pub(super) fn status(&self) -> LooperStatus {
        let mut status = LooperStatus {
            loopers: self.loopers.len(),
            locks_held: self.held,
            is_world_stopped: self.is_world_stopped(),
            ..LooperStatus::default()
        };
        for (_, looper) in &self.loopers {
            match looper.phase() {
                LooperPhase::Ready { .. } | LooperPhase::Resumed => status.ready += 1,
                LooperPhase::Running { .. } => status.running += 1,
                LooperPhase::Waiting { .. } => status.waiting += 1,
                _ => {}
            }
        }
        status
    }

    /// Lets the loopers go on that were granted a lock. Each change ends with this; parts of one call
    /// it, too.
    #[inline]
    pub(super) fn serve_granted(&mut self, follow_up: &mut FollowUp) {
        while let Some(key) = self.granted.pop_front() {
            self.was_granted(key, follow_up);
        }
    }
}

//! The table of a controller: its loopers, what is ready, its lanes and the world.
//!
//! Everything here changes under one lock, under which no user code runs. A change notes in
//! [`Effects`] what is to be done when the lock is free. Loopers that were granted a lock are noted
//! as well, and go on when the change is over: [`Table::settle`].

mod ends;
mod entry;
mod locks;
mod waits;

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::waker::KeptWaker;
use slab::Slab;

pub(super) use entry::{Entry, Phase};

use super::effects::Effects;
use super::error::TaskError;
use super::hub::Awaited;
use super::identity::{Identity, Key, Kind};
use super::job::{Job, Ran};
use super::lanes::Lanes;
use super::ready::ReadyLines;
use super::seat::Seat;
use super::stats::LooperStats;
use crate::instant::Instant;
use crate::sync::mutant;

pub(super) struct Table {
    pub(super) loopers: Slab<Entry>,
    ready: ReadyLines,
    /// The loopers that were ready when the world was about to stop.
    halted: Vec<Key>,
    world: World,
    /// The number of tasks of loopers that have begun and not ended.
    begun: usize,
    /// The number of guards of async tasks.
    guards: usize,
    /// The number of locks that are held.
    held: usize,
    pub(super) lanes: Lanes,
    /// The waker of the steward.
    pub(super) steward: Option<KeptWaker>,
    /// The jobs whose locks must be granted in time.
    pub(super) deadlines: BTreeMap<(Instant, u64), Arc<Job>>,
    /// Which looper's task awaits which results. Their `Posted` have pointers to them, too.
    awaits: BTreeMap<Key, Vec<Box<dyn Awaited>>>,
    /// An empty list, for posts that are taken from the inbox.
    pub(super) posts: Vec<Arc<Job>>,
    /// The number of steps of lanes since posts were taken, and after how many that is due.
    steps: (u32, u32),
    /// Loopers that were granted a lock in this change.
    granted: VecDeque<Key>,
    numbers: u64,
    aging: Option<NonZeroU32>,
    detects: bool,
    /// No more tasks are accepted.
    is_closed: bool,
    /// The number of values that the handles of the controller share; 0 if there is no handle.
    pub(super) holds: usize,
    /// The number of loopers that accept tasks.
    open: usize,
    /// What was left is dropped, at the end of the runtime.
    is_aborted: bool,
    /// No task is left, and none can be posted.
    pub(super) is_over: bool,
}

#[derive(Default)]
struct World {
    tasks: VecDeque<Arc<Job>>,
    is_running: bool,
}

/// What a lane does next.
pub(super) enum Next {
    Run(Key, Arc<Job>),
    RunAlone(Arc<Job>),
    Wait,
    End,
}

/// The options of a controller.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) lanes: usize,
    pub(super) highest: u8,
    pub(super) aging: u32,
    pub(super) detects: bool,
}

impl Table {
    /// Creates a table whose lanes take posts after so many steps in any case.
    pub(super) fn new(limits: &Limits, posts_every: u32) -> Self {
        Table {
            loopers: Slab::new(),
            ready: ReadyLines::new(limits.highest, limits.aging),
            halted: Vec::new(),
            world: World::default(),
            begun: 0,
            guards: 0,
            held: 0,
            lanes: Lanes::new(limits.lanes),
            steward: None,
            deadlines: BTreeMap::new(),
            awaits: BTreeMap::new(),
            posts: Vec::new(),
            steps: (0, posts_every),
            granted: VecDeque::new(),
            numbers: 0,
            aging: NonZeroU32::new(limits.aging),
            detects: limits.detects,
            is_closed: false,
            holds: 1,
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
        name: Option<Box<str>>,
        seat: impl FnOnce(Key, Identity) -> Arc<Seat>,
    ) -> Arc<Seat> {
        let identity = Identity {
            id: self.number(),
            name,
            kind: Kind::Looper,
        };
        if self.is_closed {
            return seat(Key::MAX, identity);
        }
        let entry = self.loopers.vacant_entry();
        let key = Key::try_from(entry.key()).expect("fewer than 2^32 loopers fit into memory");
        let seat = seat(key, identity);
        self.open += 1;
        entry.insert(Entry {
            seat: seat.clone(),
            head: None,
            phase: Phase::Idle,
            is_closed: false,
            extras: None,
        });
        seat
    }

    /// Returns the entry of a looper, unless the looper has ended.
    pub(super) fn entry(&mut self, seat: &Arc<Seat>) -> Option<&mut Entry> {
        let entry = self.loopers.get_mut(seat.key as usize);
        entry.filter(|entry| Arc::ptr_eq(&entry.seat, seat))
    }

    fn at(&mut self, key: Key) -> &mut Entry {
        &mut self.loopers[key as usize]
    }

    /// Takes a task of a looper. Returns whether the looper accepts it.
    pub(super) fn post(&mut self, seat: &Arc<Seat>, job: Arc<Job>, effects: &mut Effects) -> bool {
        let (is_closed, deadline) = (self.is_closed, job.deadline());
        let Some(entry) = self.entry(seat) else {
            return false;
        };
        if entry.is_closed || is_closed {
            return false;
        }
        if let Some(deadline) = deadline {
            self.deadlines.insert(deadline, job.clone());
        }
        self.accept(job, effects);
        let first = self.deadlines.first_key_value().map(|(first, _)| *first);
        if deadline.is_some() && deadline == first {
            effects.wake(self.steward.take());
        }
        true
    }

    /// Takes a task that a looper has accepted.
    pub(super) fn accept(&mut self, job: Arc<Job>, effects: &mut Effects) {
        let Some(seat) = job.origin.seat() else {
            return;
        };
        let key = seat.key;
        let entry = self.at(key);
        if entry.head.is_some() {
            return entry.extras().rest.push_back(job);
        }
        entry.head = Some(job);
        self.prepare(key, effects);
    }

    /// Returns whether a lane takes posts before it finds what to do next, given the inbox's top.
    pub(super) fn needs_posts(&mut self, top: u32) -> bool {
        self.steps.0 += 1;
        let is_due = self.steps.0 >= self.steps.1 || top > self.ready.top();
        if is_due {
            self.steps.0 = 0;
        }
        is_due && top > 0
    }

    /// Takes a task of the world. Returns whether the controller accepts it.
    pub(super) fn post_alone(&mut self, job: Arc<Job>, effects: &mut Effects) -> bool {
        if self.is_closed {
            return false;
        }
        self.world.tasks.push_back(job.clone());
        if let Some(deadlock) = self.judge_world()
            && let Some(job) = self.world.tasks.pop_back()
        {
            job.body.take(TaskError::Deadlock(deadlock), false);
            effects.over(job);
        }
        self.summon(effects);
        true
    }

    /// Moves a looper whose head is new on, until the head is ready or waits, or there is none.
    pub(super) fn prepare(&mut self, key: Key, effects: &mut Effects) {
        loop {
            let entry = self.at(key);
            if entry.head.is_none() {
                entry.next_head(effects);
            }
            let Some(head) = &entry.head else {
                entry.phase = Phase::Idle;
                if entry.is_closed {
                    self.end_looper(key, effects);
                }
                return;
            };
            if head.wants.as_slice().is_empty() {
                return self.is_ready(key, true, effects);
            }
            let head = head.clone();
            if head.claim_locks() {
                return self.is_ready(key, false, effects);
            }
            if self.take_locks(key, &head, 0, false, effects) {
                return self.is_ready(key, true, effects);
            }
            if self.at(key).head.is_some() {
                return;
            }
        }
    }

    /// Puts a looper whose head has its locks, or has claimed them, into the lines.
    fn is_ready(&mut self, key: Key, has_locks: bool, effects: &mut Effects) {
        let entry = self.at(key);
        entry.phase = Phase::Ready { has_locks };
        let head = entry.head.as_ref();
        let (priority, deadline) = head.map_or((0, None), |it| (it.priority, it.deadline()));
        self.ready.push(priority, key);
        self.meets(deadline, effects);
        self.summon(effects);
    }

    /// Removes a deadline that was met, or whose job was taken. The caller has the job.
    pub(super) fn meets(&mut self, deadline: Option<(Instant, u64)>, effects: &mut Effects) {
        let Some(deadline) = deadline else { return };
        // A timer that is not needed would keep the runtime from being quiescent.
        if self.deadlines.remove(&deadline).is_some() && self.deadlines.is_empty() {
            effects.wake(self.steward.take());
        }
    }

    /// Notes that the runtime has dropped a lane.
    pub(super) fn lost_lane(&mut self, lane: usize, effects: &mut Effects) {
        self.lanes.lost(lane);
        self.summon(effects);
    }

    /// Wakes a lane if there is something to do.
    fn summon(&mut self, effects: &mut Effects) {
        if !self.ready.is_empty() || self.world_may_run() {
            self.lanes.summon(&mut self.steward, effects);
        }
    }

    fn world_may_run(&self) -> bool {
        !self.world.tasks.is_empty() && !self.world.is_running && self.is_still()
    }

    /// Returns whether no task of a looper has begun, and no guard is left.
    fn is_still(&self) -> bool {
        (self.begun == 0 || mutant("the_world_waits_for_no_task")) && self.guards == 0
    }

    /// Returns whether the world runs or is about to.
    pub(super) fn is_world_stopped(&self) -> bool {
        self.world.is_running || !self.world.tasks.is_empty()
    }

    /// Returns what a lane does next.
    pub(super) fn next(&mut self, effects: &mut Effects) -> Next {
        if self.is_over {
            return Next::End;
        }
        if self.world.is_running {
            return Next::Wait;
        }
        if self.world_may_run()
            && let Some(job) = self.world.tasks.pop_front()
        {
            self.world.is_running = true;
            return Next::RunAlone(job);
        }
        while let Some(key) = self.ready.pop() {
            if let Some(job) = self.begin(key, effects) {
                if !self.ready.is_empty() {
                    self.lanes.summon(&mut self.steward, effects);
                }
                return Next::Run(key, job);
            }
        }
        Next::Wait
    }

    /// Begins the head of a looper, or lets it go on. Returns `None` if it waits, for the world or
    /// for a lock.
    fn begin(&mut self, key: Key, effects: &mut Effects) -> Option<Arc<Job>> {
        let stops = !self.world.tasks.is_empty();
        let entry = &mut self.loopers[key as usize];
        let job = entry.head.clone()?;
        if let Phase::Ready { has_locks } = entry.phase {
            if stops {
                self.halted.push(key);
                return None;
            }
            if !has_locks && !self.take_claimed(key, &job, effects) {
                return None;
            }
            self.begun += 1;
            if job.is_owning {
                self.guards += job.wants.guards();
            }
        }
        self.at(key).phase = Phase::Running { is_woken: false };
        Some(job)
    }

    /// Notes how the turn of a task has ended. The lane still has the job.
    pub(super) fn has_run(&mut self, key: Key, ran: Ran, effects: &mut Effects) {
        let Some(entry) = self.loopers.get_mut(key as usize) else {
            return;
        };
        if ran == Ran::Waits && self.is_aborted {
            if let Some(job) = entry.head.clone() {
                job.body.take(TaskError::Cancelled, true);
                effects.over(job);
            }
        } else if ran == Ran::Waits {
            let is_woken = entry.phase == Phase::Running { is_woken: true };
            entry.phase = Phase::Suspended;
            if is_woken {
                self.resume(key, effects);
            }
            return;
        }
        self.awaits.remove(&key);
        self.begun -= 1;
        if let Some(job) = self.at(key).head.take() {
            if ran == Ran::Never && job.is_owning {
                self.guards -= job.wants.guards();
            }
            if ran != Ran::Never || !mutant("a_cancelled_task_keeps_its_locks") {
                self.give_back(key, &job, usize::MAX, ran != Ran::Never, effects);
            }
        }
        // The lane that calls this looks for work at once, so it need not be woken.
        let was_waking = self.lanes.set_waking(true);
        self.prepare(key, effects);
        self.settle(effects);
        self.lanes.set_waking(was_waking);
    }

    /// Notes that a task of the world has ended.
    pub(super) fn world_has_run(&mut self, effects: &mut Effects) {
        self.world.is_running = false;
        if self.world.tasks.is_empty() && !mutant("halted_loopers_stay") {
            for key in std::mem::take(&mut self.halted).into_iter().rev() {
                let priority = self.at(key).head.as_ref().map_or(0, |job| job.priority);
                self.ready.push_first(priority, key);
            }
        }
        effects.wake_waiters();
        self.summon(effects);
        self.judge_end(effects);
    }

    /// Notes that the future of a looper's task was woken.
    pub(super) fn woken(&mut self, seat: &Arc<Seat>, effects: &mut Effects) {
        let Some(entry) = self.entry(seat) else {
            return;
        };
        match &mut entry.phase {
            Phase::Running { is_woken } => *is_woken = true,
            Phase::Suspended => self.resume(seat.key, effects),
            _ => {}
        }
    }

    fn resume(&mut self, key: Key, effects: &mut Effects) {
        let entry = self.at(key);
        entry.phase = Phase::Resumed;
        let priority = entry.head.as_ref().map_or(0, |job| job.priority);
        self.ready.push(priority, key);
        self.lanes.summon(&mut self.steward, effects);
    }

    pub(super) fn stats(&self) -> LooperStats {
        let count = |is_it: fn(Phase) -> bool| {
            let loopers = self.loopers.iter();
            loopers.filter(|(_, entry)| is_it(entry.phase)).count()
        };
        LooperStats {
            loopers: self.loopers.len(),
            ready: count(|it| matches!(it, Phase::Ready { .. } | Phase::Resumed)),
            running: count(|it| matches!(it, Phase::Running { .. })),
            waiting: count(|it| matches!(it, Phase::Waiting { .. })),
            locks_held: self.held,
            is_world_stopped: self.is_world_stopped(),
        }
    }

    /// Lets the loopers go on that were granted a lock. Each change ends with this.
    #[inline]
    pub(super) fn settle(&mut self, effects: &mut Effects) {
        while let Some(key) = self.granted.pop_front() {
            self.go_on(key, effects);
        }
    }
}

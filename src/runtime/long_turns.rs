//! Warns of turns that hold their thread for too long.
//!
//! A turn is timed by its own thread, which warns when the turn has ended. If all workers are held,
//! another thread must see it: that of the process's timers. It is armed while a turn runs, and
//! not while the workers are idle.
//!
//! # Invariants
//! - LONG-1: a turn is in its post before `is_armed` is checked. A look resets `is_armed` before it
//!   reads the posts. Both use the lock of the post. So of turns that hold all workers, a look sees
//!   all, or one of them arms another look.

use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::time::Duration;

use super::locations::{SpawnLocations, Spawned};
use super::status::WorkerTurn;
use super::warning::{LongTurn, Topic, Warning, WarningReceiver};
use crate::contain::{KeptWaker, contain};
use crate::instant::{self, Instant};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{CachePadded, Mutex, mutant};
use crate::task::TaskInfo;
use crate::timers::{Armed, DeadlineKind, TimerThread};

/// The shortest time between two looks.
const LOOK_MIN: Duration = Duration::from_millis(1);

pub(super) struct LongTurns {
    limit: Duration,
    posts: WorkerPosts<TimedTurn>,
    locations: Arc<SpawnLocations>,
    receiver: WarningReceiver,
    /// The deadline of the next look.
    armed: Mutex<Option<Armed>>,
    /// The turns that the last warning of held workers has named, by their begin. An actor that has
    /// ended in its turn has no entry any more that could be marked as named.
    reported: Mutex<Vec<(u64, Instant)>>,
    look: KeptWaker,
}

/// A turn in progress, of a task whose location is known.
#[derive(Clone)]
pub(super) struct TimedTurn {
    task: TaskInfo,
    spawned: Spawned,
    begun: Instant,
    /// The processor time of the thread when the turn began, if it is measured.
    processor: Option<Duration>,
}

/// Returns the processor time of this thread, in debug builds alone: a turn should not cost two
/// system calls.
fn processor_time() -> Option<Duration> {
    cfg!(debug_assertions)
        .then(instant::processor_time)
        .flatten()
}

impl TimedTurn {
    fn lasted(&self, now: Instant, on_worker: bool) -> LongTurn {
        LongTurn {
            task: self.task.clone(),
            spawned_at: self.spawned.location,
            took: now.duration_since(self.begun),
            processor: None,
            on_worker,
        }
    }
}

impl LongTurns {
    pub(super) fn new(
        limit: Duration,
        workers: usize,
        locations: &Arc<SpawnLocations>,
        receiver: WarningReceiver,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this: &Weak<LongTurns>| LongTurns {
            limit,
            posts: WorkerPosts::new(workers),
            locations: locations.clone(),
            receiver,
            armed: Mutex::new(None),
            reported: Mutex::new(Vec::new()),
            look: KeptWaker::from(Waker::from(Arc::new(LookAgain(this.clone())))),
        })
    }

    /// Notes that a turn begins on this thread: that of a worker or of a pinned thread. Returns the
    /// turn if it is to be timed.
    pub(super) fn begin(&self, worker: Option<usize>, task: &TaskInfo) -> Option<TimedTurn> {
        let turn = TimedTurn {
            task: task.clone(),
            // A call of a hosted value has no location. Its thread is there for it.
            spawned: self.locations.of(task)?,
            processor: processor_time(),
            begun: Instant::now(),
        };
        if worker.is_some_and(|worker| self.posts.occupy(worker, turn.clone())) {
            self.arm(turn.begun);
        }
        Some(turn)
    }

    /// Notes that the turn has ended, and warns if it was too long. `living` returns how many
    /// actors, tasks and values live on a pinned thread.
    pub(super) fn end(
        &self,
        worker: Option<usize>,
        turn: &TimedTurn,
        living: impl FnOnce() -> Option<usize>,
    ) {
        if let Some(worker) = worker {
            self.vacate(worker);
        }
        let lasted = turn.lasted(Instant::now(), worker.is_some());
        if lasted.took >= self.limit {
            self.ended_late(turn, lasted, living());
        }
    }

    #[cold]
    fn ended_late(&self, turn: &TimedTurn, lasted: LongTurn, living: Option<usize>) {
        let processor = turn.processor.zip(processor_time());
        let lasted = LongTurn {
            processor: processor.map(|(begun, now)| now.saturating_sub(begun)),
            ..lasted
        };
        // The thread is there for its only actor, which has an entry unless it has ended.
        let own = usize::from(self.locations.of(&turn.task).is_some());
        let is_alone = turn.task.is_actor() && living.is_some_and(|living| living <= own);
        let (task, spawned) = (&turn.task, turn.spawned);
        if !is_alone && self.locations.is_news(task, spawned, Topic::LongTurn) {
            self.receiver.warn(&Warning::LongTurn(lasted));
        }
    }

    /// Returns what each worker runs.
    pub(super) fn running(&self) -> Vec<Option<WorkerTurn>> {
        let turn = |turn: TimedTurn| WorkerTurn {
            task: turn.task,
            since: turn.begun,
        };
        let turns = self.posts.running().into_iter();
        turns.map(|it| it.map(turn)).collect()
    }

    /// Notes that a worker runs no turn, or that its turn has made way for others.
    pub(super) fn vacate(&self, worker: usize) {
        self.posts.vacate(worker);
    }

    /// Arms the next look for when a turn that begins now becomes too long.
    fn arm(&self, now: Instant) {
        let wait = self.limit.max(LOOK_MIN);
        // Without a timer thread nothing looks.
        let (Ok(clock), Some(at)) = (TimerThread::get(), now.checked_add(wait)) else {
            return;
        };
        // The deadline may pass at once. The look then arms the next one, which waits for the lock:
        // otherwise this one would replace it, and nothing would look any more.
        let mut armed = self.armed.lock();
        let next = Armed::new(clock, at, DeadlineKind::Event, self.look.as_waker());
        let before = std::mem::replace(&mut *armed, next);
        drop(armed);
        drop(before);
    }

    /// Warns if all workers are held, and looks again later if all of them run something.
    fn look(&self) {
        let Some(turns) = self.posts.look() else {
            return;
        };
        let now = Instant::now();
        let is_held = |turn: &TimedTurn| now.duration_since(turn.begun) >= self.limit;
        if turns.iter().all(is_held) {
            let mut reported = self.reported.lock();
            let news = turns.iter().filter(|turn| {
                let (task, spawned) = (&turn.task, turn.spawned);
                self.locations.is_news(task, spawned, Topic::WorkersHeld)
                    && !reported.contains(&(task.id(), turn.begun))
            });
            // All are marked as named.
            let is_news = news.count() > 0;
            if is_news {
                *reported = turns.iter().map(|it| (it.task.id(), it.begun)).collect();
            }
            drop(reported);
            if is_news {
                let held = turns.iter().map(|turn| turn.lasted(now, true)).collect();
                self.receiver.warn(&Warning::WorkersHeld(held));
            }
        }
        if self.posts.arms() {
            // The last turn to become too long; if that is so, any later one.
            let last = turns.iter().map(|turn| turn.begun).max();
            self.arm(
                last.filter(|&begun| now.duration_since(begun) < self.limit)
                    .unwrap_or(now),
            );
        }
    }
}

/// Looks when it is woken.
struct LookAgain(Weak<LongTurns>);

impl Wake for LookAgain {
    fn wake(self: Arc<Self>) {
        if let Some(turns) = self.0.upgrade() {
            turns.look();
            // This may be the last reference, to functions of the user.
            contain(|| drop(turns));
        }
    }
}

pub(super) struct WorkerPosts<T> {
    posts: Box<[CachePadded<Mutex<Option<T>>>]>,
    is_armed: AtomicBool,
}

impl<T: Clone> WorkerPosts<T> {
    pub(super) fn new(workers: usize) -> Self {
        WorkerPosts {
            posts: (0..workers)
                .map(|_| CachePadded(Mutex::new(None)))
                .collect(),
            is_armed: AtomicBool::new(false),
        }
    }

    /// Notes that the worker runs this turn. Returns whether the caller must arm a look.
    #[must_use]
    pub(super) fn occupy(&self, worker: usize, turn: T) -> bool {
        *self.posts[worker].lock() = Some(turn);
        // Relaxed: ordered by the lock of the post (LONG-1).
        !self.is_armed.load(Ordering::Relaxed) && self.arms()
    }

    /// Notes that the worker runs no turn.
    pub(super) fn vacate(&self, worker: usize) {
        let turn = self.posts[worker].lock().take();
        drop(turn);
    }

    /// Returns what the workers run, or `None` if one of them runs nothing.
    pub(super) fn look(&self) -> Option<Vec<T>> {
        // Relaxed: ordered by the locks of the posts (LONG-1).
        let disarm = || self.is_armed.store(false, Ordering::Relaxed);
        let is_late = mutant("a_look_disarms_last");
        if !is_late {
            disarm();
        }
        let turns = self.running().into_iter().collect();
        if is_late {
            disarm();
        }
        turns
    }

    /// Returns what each worker runs, if it runs anything.
    pub(super) fn running(&self) -> Vec<Option<T>> {
        self.posts.iter().map(|post| post.lock().clone()).collect()
    }

    /// Returns whether the caller must arm a look, since no other thread has.
    #[must_use]
    pub(super) fn arms(&self) -> bool {
        !self.is_armed.swap(true, Ordering::Relaxed)
    }
}

//! The cells of loopers and locks: what their handles, their jobs and the table share.
//!
//! # Invariants
//! - LOOPER-1: the state of a looper changes only under the table's lock, except that a post adds a
//!   job and makes an idle looper `Posted`.
//! - LOCK-STATE-1: who has a lock and who waits for it changes only under the table's lock. Only
//!   the value of a lock moves without it.
//! - LOOPER-2: within the section of a looper's state, that of a lock, a job or the inbox may be
//!   entered, and never the other way round.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::task::Wake;

use super::job::PostedJob;
use super::monitor::Monitor;
use super::table::LockState;
use crate::contain::contain;
use crate::lock::SpinLock;
use crate::runtime::context;
use crate::sync::COUNT_MAX;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::waiters::Waiters;

/// The key of the world, as if it were a looper. The key of a looper is its index in the table.
pub(super) const WORLD: u32 = u32::MAX;

/// The key of a looper that a closed controller has made. It is not in the table.
pub(super) const NOWHERE: u32 = u32::MAX - 1;

/// A looper, or the world of a controller.
pub struct LooperCell {
    pub(super) monitor: Arc<Monitor>,
    pub(super) key: u32,
    handles: AtomicU32,
    /// Its number, which no other looper or lock of the controller has. The world has 0.
    pub(super) id: u64,
    pub(super) name: Option<Box<str>>,
    state: SpinLock<LooperState>,
}

/// The jobs of a looper, and how far the next one has come.
pub(super) struct LooperState {
    pub(super) phase: LooperPhase,
    pub(super) is_closed: bool,
    /// How many jobs in `rest` were cancelled or timed out. `find_head` drops them.
    pub(super) taken_in_rest: u32,
    /// The job that has begun or is the next one. It stays here until it has ended.
    pub(super) head: Option<Arc<PostedJob>>,
    /// The jobs behind it.
    pub(super) rest: VecDeque<Arc<PostedJob>>,
    /// The locks that the looper keeps, by their numbers.
    pub(super) kept: BTreeMap<u64, Arc<LockCell>>,
    /// Those that wait for the end of the looper.
    pub(super) closers: Option<Arc<Waiters>>,
}

/// How far the head of a looper has come: from `Idle` to `Posted`, then to `Ready` if all its locks
/// were booked, and otherwise through `Waiting`, once for each lock that is not free. From `Ready` to
/// `Running`, or back to `Waiting` if another task took a booked lock. A future goes from `Running`
/// through `Suspended` and `Resumed` to `Running`. After the end of the head: `Idle`, or the same for
/// the next one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LooperPhase {
    Idle,
    /// The table must look for the next head: the head was just posted, or was dropped. A post only
    /// adds to `rest` then.
    Posted,
    /// The head has requested this one of its locks, under this number, and has those before it.
    /// After the grant this stays until the next lock is requested or the head is ready. Meanwhile the
    /// request is not in the line any more; `serve_granted` sees to that in the same change.
    Waiting {
        at: u32,
        number: u64,
    },
    /// The head is ready to begin. It has its locks, or has booked them: then a lane takes them when it
    /// begins the task.
    Ready {
        has_locks: bool,
    },
    /// A lane runs the head.
    Running {
        is_woken: bool,
    },
    /// The head has begun and waits to be woken.
    Suspended,
    /// The head has begun and is ready to go on.
    Resumed,
    /// The looper was closed and has no job.
    Ended,
}

/// A lock, with its value if it has one.
pub struct LockCell {
    pub(super) monitor: Arc<Monitor>,
    /// Its number, which no other looper or lock of the controller has.
    pub(super) id: u64,
    pub(super) name: Option<Box<str>>,
    pub(super) has_value: bool,
    state: SpinLock<LockState>,
}

/// What a job needs of one lock: a [`Claim`](super::Claim) without its type.
#[derive(Clone)]
pub struct Want {
    pub(super) lock: Arc<LockCell>,
    pub(super) is_exclusive: bool,
    /// The looper keeps the lock when the task has ended.
    pub(super) is_kept: bool,
    /// The looper holds the lock already.
    pub(super) is_held: bool,
}

impl LooperCell {
    /// Creates a looper with one handle.
    pub(super) fn new(
        monitor: Arc<Monitor>,
        key: u32,
        id: u64,
        name: Option<Box<str>>,
    ) -> Arc<Self> {
        let is_closed = key == NOWHERE;
        let state = LooperState {
            phase: if is_closed {
                LooperPhase::Ended
            } else {
                LooperPhase::Idle
            },
            is_closed,
            taken_in_rest: 0,
            head: None,
            rest: VecDeque::new(),
            kept: BTreeMap::new(),
            closers: None,
        };
        Arc::new(LooperCell {
            monitor,
            key,
            id,
            name,
            handles: AtomicU32::new(1),
            state: SpinLock::new(state),
        })
    }

    /// Creates the looper of a task of the world, which no table has.
    pub(super) fn world(monitor: &Arc<Monitor>) -> Arc<Self> {
        LooperCell::new(monitor.clone(), WORLD, 0, Some("the world".into()))
    }

    pub(super) fn is_world(&self) -> bool {
        self.key == WORLD
    }

    /// Calls `section` with the state. Others wait meanwhile, so it calls no code of users.
    pub(super) fn with<R>(&self, section: impl FnOnce(&mut LooperState) -> R) -> R {
        self.state.with(section)
    }

    pub(super) fn phase(&self) -> LooperPhase {
        self.with(|state| state.phase)
    }

    pub(super) fn set_phase(&self, phase: LooperPhase) {
        self.with(|state| state.phase = phase);
    }

    pub(super) fn head(&self) -> Option<Arc<PostedJob>> {
        self.with(|state| state.head.clone())
    }

    pub(super) fn add_handle(&self) {
        // Relaxed: the new handle is made from another one, so the count is not zero.
        if self.handles.fetch_add(1, Ordering::Relaxed) > COUNT_MAX {
            std::process::abort();
        }
    }

    /// Adds a handle unless the last one is gone.
    pub(super) fn try_add_handle(&self) -> bool {
        context::apply_effects();
        let more = |handles: u32| (0 < handles && handles < COUNT_MAX).then(|| handles + 1);
        // Relaxed: the table's lock orders what the handle is used for.
        let added = self
            .handles
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        added.is_ok()
    }

    /// Removes a handle. Returns whether it was the last one.
    pub(super) fn remove_handle(&self) -> bool {
        context::apply_effects();
        // AcqRel pairs with itself: the posts of the other handles happen before the close.
        self.handles.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

/// As a waker, a looper lets its task that waits go on.
impl Wake for LooperCell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.monitor
            .change(|table, follow_up| table.woken(self, follow_up));
    }
}

impl LooperState {
    /// Adds a job. Returns whether the looper was idle, so that the table must look at it.
    pub(super) fn add(&mut self, job: Arc<PostedJob>) -> bool {
        if self.phase != LooperPhase::Idle {
            self.rest.push_back(job);
            return false;
        }
        self.head = Some(job);
        self.phase = LooperPhase::Posted;
        true
    }

    /// Returns the number of jobs that have not ended.
    pub(super) fn len(&self) -> usize {
        let head = self.head.iter().filter(|job| !job.body.is_over());
        self.rest.len() - self.taken_in_rest as usize + head.count()
    }
}

impl LooperPhase {
    /// Returns whether the table has begun the head. Until its lane runs it, its work may still be
    /// taken.
    pub(super) fn has_begun(self) -> bool {
        matches!(
            self,
            LooperPhase::Running { .. } | LooperPhase::Suspended | LooperPhase::Resumed
        )
    }
}

impl LockCell {
    /// Creates a lock with a value, or without one.
    pub(super) fn new(
        monitor: Arc<Monitor>,
        name: Option<Box<str>>,
        value: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Arc<Self> {
        let id = monitor.change(|table, _| table.number());
        Arc::new(LockCell {
            monitor,
            id,
            name,
            has_value: value.is_some(),
            state: SpinLock::new(LockState::new(value)),
        })
    }

    /// Calls `section` with the state. Others wait meanwhile, so it calls no code of users.
    pub(super) fn with<R>(&self, section: impl FnOnce(&mut LockState) -> R) -> R {
        self.state.with(section)
    }

    /// Takes the value out, unless a guard or the world has it.
    pub(super) fn take_value(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.with(|state| state.value.take())
    }

    /// Takes the value of a lock that was granted exclusively.
    pub(super) fn take<T: Send + Sync + 'static>(&self) -> Arc<T> {
        let value = self.take_value().and_then(|value| value.downcast().ok());
        value.expect(IN_ITS_LOCK)
    }

    /// Returns a pointer to the value of a lock that was granted.
    pub(super) fn share<T: Send + Sync + 'static>(&self) -> Arc<T> {
        let value = self.with(|state| state.value.clone());
        let value = value.and_then(|value| value.downcast().ok());
        value.expect(IN_ITS_LOCK)
    }

    /// Puts a value back.
    pub(super) fn put(&self, value: Option<Arc<dyn Any + Send + Sync>>) {
        self.with(|state| state.value = value);
    }
}

const IN_ITS_LOCK: &str = "the value of a granted lock is in the lock";

/// Contains a panic of the value's drop. A job may have the last pointers to several values, and a
/// second panic while the first one unwinds would end the process.
impl Drop for LockCell {
    fn drop(&mut self) {
        let value = self.take_value();
        contain(|| drop(value));
    }
}

/// Displays the name or, without one, the number.
impl fmt::Display for LooperCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name),
            None => write!(f, "looper {}", self.id),
        }
    }
}

/// Displays the name or, without one, the number.
impl fmt::Display for LockCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name),
            None => write!(f, "lock {}", self.id),
        }
    }
}

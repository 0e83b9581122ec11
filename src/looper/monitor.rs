//! The table of a controller behind its lock, what is posted meanwhile, and what follows a change.
//!
//! While all lanes are busy, a post to an idle looper goes to the inbox and leaves the table alone;
//! a post to another one never comes here. So threads that post do not take the table's cache lines
//! from the lanes. Each change of the table looks at the posts first, except for the steps of
//! lanes, which do so now and then.
//!
//! # Invariants
//! - INBOX-1: `is_direct` changes only under the table's lock. It becomes true only in the critical
//!   section of `posted`.

use std::sync::Arc;

use super::cell::{LockCell, LooperCell, LooperState};
use super::job::PostedJob;
use super::table::LooperTable;
use crate::contain::{KeptWaker, contain};
use crate::error::{Fault, UnhandledFault};
use crate::instant::Instant;
use crate::lock::SpinLock;
use crate::runtime::{Inner, WaitSource, context};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use crate::sync::global::AtomicU64;
use crate::sync::{CachePadded, Mutex, mutant};
use crate::task::TaskHooks;
use crate::waiters::Waiters;

pub(super) struct Monitor {
    /// On cache lines of its own: the rest is read by each post.
    table: CachePadded<Mutex<LooperTable>>,
    inbox: CachePadded<PostInbox>,
    /// Those that wait for the end of the controller, or until the world does not run.
    pub(super) waiters: Waiters,
    /// The number of handles of the controller.
    pub(super) handles: AtomicUsize,
    /// The highest priority.
    pub(super) highest: u8,
    /// The number of the controller in this process.
    pub(super) id: u64,
    /// The runtime of the lanes; `None` in a model.
    pub(super) runtime: Option<Arc<Inner>>,
}

/// Loopers at which the table must look.
struct PostInbox {
    posted: SpinLock<Vec<u32>>,
    /// 0 if it is empty, otherwise 1 more than the highest priority.
    top: AtomicU32,
    /// Each post must reach the table: a lane waits or may be made, or the controller is closed.
    is_direct: AtomicBool,
}

/// What follows from a change of the table, and is done when the table's lock is free.
///
/// Jobs and wakers may be the last pointers to values of users, so they are dropped here too.
#[derive(Default)]
pub(super) struct FollowUp {
    waker: Option<KeptWaker>,
    /// The controller has ended, or the world has.
    wakes_waiters: bool,
    wakers: Vec<KeptWaker>,
    lists: Vec<Arc<Waiters>>,
    over: Vec<Arc<PostedJob>>,
    jobs: Vec<Arc<PostedJob>>,
    locks: Vec<Arc<LockCell>>,
}

impl Monitor {
    /// Creates a controller with one handle.
    pub(super) fn new(table: LooperTable, highest: u8, runtime: Option<Arc<Inner>>) -> Arc<Self> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        Arc::new(Monitor {
            table: CachePadded(Mutex::new(table)),
            inbox: CachePadded(PostInbox {
                posted: SpinLock::new(Vec::new()),
                top: AtomicU32::new(0),
                is_direct: AtomicBool::new(true),
            }),
            waiters: Waiters::new(),
            handles: AtomicUsize::new(1),
            highest,
            // Relaxed: only the number matters.
            id: IDS.fetch_add(1, Ordering::Relaxed),
            runtime,
        })
    }

    /// Takes a task without a deadline. Returns whether its looper accepts it.
    #[inline]
    pub(super) fn post(&self, looper: &LooperCell, job: Arc<PostedJob>) -> bool {
        context::apply_effects();
        let top = u32::from(job.priority) + 1;
        let mut job = Some(job);
        let add = |state: &mut LooperState| {
            let job = job.take_if(|_| !state.is_closed)?;
            let is_direct = state.add(job) && self.inbox.add(looper.key, top);
            Some(is_direct)
        };
        let added = looper.with(add);
        if added == Some(true) {
            self.change(|_, _| ());
        }
        added.is_some()
    }

    /// Changes the table, then does what follows. Earlier effects of a simulated turn come first.
    #[inline]
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut LooperTable, &mut FollowUp) -> T) -> T {
        self.change_table(|_, top| top > 0, change, || ())
    }

    /// Does the same for a lane, which looks at the posts if they may go first, and now and then.
    /// `show` is called before what follows.
    #[inline]
    pub(super) fn step<T>(
        &self,
        change: impl FnOnce(&mut LooperTable, &mut FollowUp) -> T,
        show: impl FnOnce(),
    ) -> T {
        self.change_table(LooperTable::needs_posts, change, show)
    }

    #[inline]
    fn change_table<T>(
        &self,
        needs_posts: impl FnOnce(&mut LooperTable, u32) -> bool,
        change: impl FnOnce(&mut LooperTable, &mut FollowUp) -> T,
        show: impl FnOnce(),
    ) -> T {
        let mut follow_up = FollowUp::default();
        // Those of a simulation: effects of this turn come before this change.
        context::apply_effects();
        let mut table = self.table.lock();
        if needs_posts(&mut table, self.inbox.top()) {
            self.look_at_posts(&mut table, &mut follow_up);
        }
        let result = change(&mut table, &mut follow_up);
        table.serve_granted(&mut follow_up);
        // While the inbox was not direct it may have got posts that a lane would have to find. A look
        // at them may change that again.
        while self.inbox.set_direct(table.needs_each_post()) {
            self.look_at_posts(&mut table, &mut follow_up);
        }
        drop(table);
        show();
        follow_up.carry_out(&self.waiters);
        result
    }

    fn look_at_posts(&self, table: &mut LooperTable, follow_up: &mut FollowUp) {
        let mut posted = std::mem::take(&mut table.posted);
        self.inbox.take(&mut posted);
        for looper in posted.drain(..) {
            table.prepare(looper, follow_up);
            // Each one is a change of its own.
            table.serve_granted(follow_up);
        }
        table.posted = posted;
    }

    /// Returns the time that the steward sees, on whichever thread this is called.
    pub(super) fn now(&self) -> Instant {
        let runtime = self.runtime.as_ref();
        runtime.map_or_else(Instant::now, |it| it.engine().now())
    }

    /// Looks at the table, after the posts.
    pub(super) fn look<T>(&self, look: impl FnOnce(&LooperTable) -> T) -> T {
        self.change(|table, _| look(table))
    }

    /// Reports a panic whose outcome is not awaited.
    pub(super) fn report(&self, name: &str, fault: &Fault) {
        let Some(runtime) = &self.runtime else { return };
        runtime.report(&UnhandledFault {
            actor: None,
            task: None,
            name: Some(name),
            id: None,
            fault,
            is_source: false,
            is_on_undelivered: false,
            is_on_displaced: false,
        });
    }
}

impl WaitSource for Monitor {
    fn lines(&self) -> Vec<String> {
        self.look(LooperTable::waits)
    }
}

impl PostInbox {
    /// Adds a looper whose head is new. Returns whether the table must be changed now.
    fn add(&self, looper: u32, top: u32) -> bool {
        self.posted.with(|posted| {
            posted.push(looper);
            // Relaxed: the critical section orders all changes. A thread that reads an older value
            // has no post that happened before.
            if top > self.top.load(Ordering::Relaxed) {
                self.top.store(top, Ordering::Relaxed);
            }
            // Relaxed: (INBOX-1) it becomes true in the critical section.
            self.is_direct.load(Ordering::Relaxed)
        })
    }

    fn top(&self) -> u32 {
        // Relaxed: as in `add`.
        self.top.load(Ordering::Relaxed)
    }

    /// Moves all loopers to an empty list.
    fn take(&self, into: &mut Vec<u32>) {
        self.posted.with(|posted| {
            // Relaxed: as in `add`.
            self.top.store(0, Ordering::Relaxed);
            std::mem::swap(posted, into);
        });
    }

    /// Sets whether each post must reach the table. Returns whether there are posts that must.
    fn set_direct(&self, is_direct: bool) -> bool {
        // Relaxed: (INBOX-1) the table's lock orders the changes.
        if self.is_direct.load(Ordering::Relaxed) == is_direct {
            return false;
        }
        self.posted.with(|posted| {
            self.is_direct.store(is_direct, Ordering::Relaxed);
            is_direct && !posted.is_empty() && !mutant("a_lane_waits_without_a_look_at_posts")
        })
    }
}

impl FollowUp {
    #[inline]
    pub(super) fn wake(&mut self, waker: Option<KeptWaker>) {
        if self.waker.is_none() {
            self.waker = waker;
        } else {
            self.wakers.extend(waker);
        }
    }

    /// Wakes all in a list.
    pub(super) fn wake_all(&mut self, list: Option<Arc<Waiters>>) {
        self.lists.extend(list);
    }

    /// Wakes those that wait for the end of the controller or of the world.
    pub(super) fn wake_waiters(&mut self) {
        self.wakes_waiters = true;
    }

    /// Drops a job to which the table may have the last pointer.
    pub(super) fn release(&mut self, job: Arc<PostedJob>) {
        self.jobs.push(job);
    }

    /// Shows the outcome of a job.
    pub(super) fn over(&mut self, job: Arc<PostedJob>) {
        self.over.push(job);
    }

    /// Drops a lock.
    pub(super) fn release_lock(&mut self, lock: Arc<LockCell>) {
        self.locks.push(lock);
    }

    #[inline]
    fn carry_out(self, waiters: &Waiters) {
        for job in self.over {
            job.show();
            contain(|| drop(job));
        }
        for waker in self.wakers {
            waker.wake();
        }
        for list in self.lists {
            list.wake_all();
        }
        // One at a time: a second panic while the first one unwinds would end the process.
        for job in self.jobs {
            contain(|| drop(job));
        }
        for lock in self.locks {
            contain(|| drop(lock));
        }
        if self.wakes_waiters {
            waiters.wake_all();
        }
        if let Some(waker) = self.waker {
            waker.wake();
        }
    }
}

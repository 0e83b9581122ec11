//! Posted tasks that the table of a controller has not taken yet.
//!
//! While all lanes are busy, a post goes here and leaves the table alone. So threads that post do
//! not take the table's cache lines from the lanes. Each change of the table takes all posts first,
//! except for the steps of lanes, which take them now and then.
//!
//! # Invariants
//! - INBOX-1: `is_direct` and `is_closed` change only under the table's lock. `is_direct` becomes
//!   true, and `is_closed` of a looper or the controller, only in the critical section of `posts`.

use std::sync::Arc;

use super::job::Job;
use super::seat::Seat;
use crate::lock::SpinLock;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::mutant;

pub(super) struct Inbox {
    posts: SpinLock<Posts>,
    /// 0 if it is empty, otherwise 1 more than the highest priority.
    top: AtomicU32,
    /// A lane waits or may be made, so each post must reach the table.
    is_direct: AtomicBool,
}

#[derive(Default)]
struct Posts {
    jobs: Vec<Arc<Job>>,
    is_closed: bool,
}

/// What accepts no more posts from now on.
#[derive(Clone, Copy)]
pub(super) enum Shut<'a> {
    Nothing,
    Looper(&'a Seat),
    Controller,
}

impl Inbox {
    pub(super) fn new() -> Self {
        Inbox {
            posts: SpinLock::new(Posts::default()),
            top: AtomicU32::new(0),
            is_direct: AtomicBool::new(true),
        }
    }

    /// Takes a job of a looper. Returns whether the table must be changed now, or `None` if the
    /// looper or the controller is closed.
    pub(super) fn post(&self, seat: &Seat, job: Arc<Job>) -> Option<bool> {
        let rank = u32::from(job.priority) + 1;
        let mut job = Some(job);
        self.posts.with(|posts| {
            if posts.is_closed || seat.is_closed() {
                return None;
            }
            posts.jobs.extend(job.take());
            // Relaxed: the critical section orders all changes. A thread that reads an older value
            // has no post that happened before.
            if rank > self.top.load(Ordering::Relaxed) {
                self.top.store(rank, Ordering::Relaxed);
            }
            Some(self.is_direct.load(Ordering::Relaxed))
        })
    }

    /// Returns 0 if it is empty, otherwise 1 more than the highest priority.
    pub(super) fn top(&self) -> u32 {
        // Relaxed: as in `post`.
        self.top.load(Ordering::Relaxed)
    }

    /// Moves all jobs to an empty list, and closes what is to be shut.
    pub(super) fn take(&self, into: &mut Vec<Arc<Job>>, shut: Shut<'_>) {
        self.posts.with(|posts| {
            match shut {
                Shut::Nothing => {}
                Shut::Looper(seat) => seat.close(),
                Shut::Controller => posts.is_closed = true,
            }
            // Relaxed: as in `post`.
            self.top.store(0, Ordering::Relaxed);
            std::mem::swap(&mut posts.jobs, into);
        });
    }

    /// Sets whether each post must reach the table. Returns whether there are posts that must.
    pub(super) fn set_direct(&self, is_direct: bool) -> bool {
        // Relaxed: (INBOX-1) the table's lock orders the changes.
        if self.is_direct.load(Ordering::Relaxed) == is_direct {
            return false;
        }
        self.posts.with(|posts| {
            self.is_direct.store(is_direct, Ordering::Relaxed);
            is_direct && !posts.jobs.is_empty() && !mutant("a_lane_waits_without_a_look_at_posts")
        })
    }
}

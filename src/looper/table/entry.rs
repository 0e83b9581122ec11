//! A looper in the table: its tasks, and how far the next one has come.
//!
//! The head is the task that has begun or is the next one. It stays here until it has ended.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::looper::effects::Effects;
use crate::looper::job::Job;
use crate::looper::place::Place;
use crate::looper::seat::Seat;
use crate::waiters::Waiters;

/// A looper.
pub(in crate::looper) struct Entry {
    pub(in crate::looper) seat: Arc<Seat>,
    /// The task that has begun or is the next one.
    pub(in crate::looper) head: Option<Arc<Job>>,
    pub(in crate::looper) phase: Phase,
    pub(in crate::looper) is_closed: bool,
    pub(super) extras: Option<Box<Extras>>,
}

/// What few loopers need.
#[derive(Default)]
pub(super) struct Extras {
    pub(super) rest: VecDeque<Arc<Job>>,
    /// The number of jobs in `rest` that were taken.
    pub(super) taken: usize,
    /// The locks that the looper keeps, by their numbers.
    pub(super) kept: BTreeMap<u64, Arc<Place>>,
    /// Those that wait for the end of the looper.
    pub(super) closers: Option<Arc<Waiters>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::looper) enum Phase {
    Idle,
    /// The head waits for this one of its locks, with this number.
    Waiting {
        at: u32,
        number: u64,
    },
    /// The head is ready to begin. Otherwise than with its locks, it has claimed them: they were
    /// free, and a lane takes them for it.
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
}

impl Entry {
    pub(super) fn extras(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }

    /// Returns the number of tasks that have not ended.
    pub(in crate::looper) fn len(&self) -> usize {
        let rest = self.extras.as_ref();
        let rest = rest.map_or(0, |extras| extras.rest.len() - extras.taken);
        let head = self.head.iter().filter(|job| !job.body.is_over());
        rest + head.count()
    }

    /// Makes the next task that was not taken the head.
    pub(super) fn next_head(&mut self, effects: &mut Effects) {
        let Some(extras) = &mut self.extras else {
            return;
        };
        while let Some(job) = extras.rest.pop_front() {
            if !job.body.is_over() {
                self.head = Some(job);
                return;
            }
            extras.taken -= 1;
            effects.release(job);
        }
        if extras.kept.is_empty() && extras.closers.is_none() {
            self.extras = None;
        }
    }
}

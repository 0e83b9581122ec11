//! The names of jobs on a board, and how they are sorted.
//!
//! Each order is total, since each job has its own number. A test counts the comparisons.

use std::cmp::Ordering;
use std::time::Duration;

use crate::directory::KeySlot;
use crate::instant::Instant;

/// How a job is sorted: after its priority by its number, and not before it is due.
pub(in crate::market) struct JobPlace {
    /// One that the board has given, for this job alone.
    pub(in crate::market) number: u64,
    pub(in crate::market) priority: u32,
    pub(in crate::market) due: Instant,
}

/// Names a job in a market. Tickets are sorted as the jobs are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::market) struct JobTicket {
    /// With aging: when a job of priority 0 would be due that had this urgency. Otherwise 0.
    rank: i64,
    pub(super) number: u64,
    /// What is missing to the highest priority.
    below: u32,
    pub(super) slot: Option<KeySlot>,
}

/// Whether a key has a job that could be served, or is served.
#[derive(Default)]
pub(super) enum KeyTurn {
    /// No job of it is due, or its rate limits it.
    #[default]
    Idle,
    /// The job of it that has this ticket, but for the slot, could be served. So this is smaller.
    Ready { rank: i64, number: u64, below: u32 },
    /// A job of it is served, which is not on the board.
    Served,
}

impl KeyTurn {
    /// Returns the ticket of the job that could be served, if there is one.
    pub(super) fn first(&self, slot: KeySlot) -> Option<JobTicket> {
        let KeyTurn::Ready {
            rank,
            number,
            below,
        } = *self
        else {
            return None;
        };
        Some(JobTicket {
            rank,
            number,
            below,
            slot: Some(slot),
        })
    }
}

/// A job that is not the first of its key: next to the others of the key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Behind(pub(super) JobTicket);

/// A moment at which something is to be looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct DueMoment {
    pub(super) at: Instant,
    pub(super) of: DueOf,
}

/// What is to be looked at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DueOf {
    Job(JobTicket),
    Key(KeySlot),
}

#[cfg(all(test, not(greenroom_loom)))]
std::thread_local! {
    /// The comparisons of what is sorted.
    pub(super) static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

macro_rules! sort {
    ($name:ident, |$it:ident| $by:expr) => {
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                #[cfg(all(test, not(greenroom_loom)))]
                STEPS.set(STEPS.get() + 1);
                let by = |$it: &Self| $by;
                by(self).cmp(&by(other))
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }
    };
}

sort!(JobTicket, |it| (it.rank, it.below, it.number));
sort!(Behind, |it| (it.0.slot, it.0));
sort!(DueMoment, |it| (it.at, it.of));

impl JobTicket {
    /// Returns a ticket for a job that gains one priority in each time of the length `aging`.
    pub(super) fn new(place: &JobPlace, aging: Option<Duration>, slot: Option<KeySlot>) -> Self {
        let rank = aging.map_or(0, |aging| {
            let due = place.due.duration_since(Instant::ZERO).as_nanos() as i128;
            let lead = aging.as_nanos() as i128 * i128::from(place.priority);
            // Leads of 292 years and more are equal: the priority decides.
            i64::try_from(due - lead).unwrap_or(i64::MIN)
        });
        JobTicket {
            rank,
            number: place.number,
            below: u32::MAX - place.priority,
            slot,
        }
    }

    /// Returns the turn of its key when the job could be served.
    pub(super) fn turn(self) -> KeyTurn {
        KeyTurn::Ready {
            rank: self.rank,
            number: self.number,
            below: self.below,
        }
    }

    pub(super) fn priority(self) -> u32 {
        u32::MAX - self.below
    }
}

impl Behind {
    /// Returns what no job of this key is before.
    pub(super) fn first_of(slot: KeySlot) -> Self {
        Behind(JobTicket {
            rank: i64::MIN,
            number: 0,
            below: 0,
            slot: Some(slot),
        })
    }
}

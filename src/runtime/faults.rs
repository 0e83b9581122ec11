//! The last faults of a runtime: panics of its actors, and those of tasks that nothing has joined.
//!
//! Only so many are kept, and the beginning of each text. They have numbers without gaps, from 1 on.
//! So who has seen the fault with a number finds those that came later, and whether some are lost.

use std::collections::VecDeque;

use crate::instant::Instant;
use crate::sync::Mutex;
use crate::task::TaskInfo;

/// The number of faults that are kept.
const KEPT: usize = 64;

/// A fault that is not long ago, as [`Runtime::faults`](crate::Runtime::faults) returns it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecentFault {
    /// Its number among all faults of the runtime: 1 for the first.
    pub number: u64,
    /// When it was noted.
    pub at: Instant,
    /// The actor that has panicked, or a part of it; `None` for a task.
    pub actor: Option<TaskInfo>,
    /// Whether the actor goes on: it has begun anew, or only a [part](crate::UnhandledFault) of it has
    /// panicked.
    pub goes_on: bool,
    /// What has happened, such as `"tally" #7 panicked: overflow`, with at most 200 characters of the
    /// panic's text.
    pub text: String,
}

/// The last faults, oldest first.
pub(super) struct FaultLog(Mutex<VecDeque<RecentFault>>);

impl FaultLog {
    pub(super) fn new() -> Self {
        FaultLog(Mutex::new(VecDeque::new()))
    }

    /// Adds a fault, and forgets the oldest one if there are too many.
    pub(super) fn add(&self, actor: Option<&TaskInfo>, goes_on: bool, text: String) {
        let mut fault = RecentFault {
            number: 1,
            at: Instant::now(),
            actor: actor.cloned(),
            goes_on,
            text,
        };
        let mut faults = self.0.lock();
        let last = faults.back().map_or(0, |last| last.number);
        fault.number += last;
        let oldest = match faults.len() {
            KEPT => faults.pop_front(),
            _ => None,
        };
        faults.push_back(fault);
        drop(faults);
        drop(oldest);
    }

    /// Returns the faults with higher numbers.
    pub(super) fn after(&self, number: u64) -> Vec<RecentFault> {
        let faults = self.0.lock();
        let later = faults.iter().filter(|fault| fault.number > number);
        later.cloned().collect()
    }
}

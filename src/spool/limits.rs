//! The limits of a spool, and the judgement whether their numbers are possible.

use std::time::Duration;

use super::error::SpoolError;
use crate::instant::Instant;
use crate::time::RetryIntervals;

/// The request that is refused when the queue is full.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// The request that has just arrived.
    #[default]
    Newest,
    /// The request that has waited longest.
    Oldest,
}

/// The limits of a spool.
pub(super) struct Limits {
    pub(super) capacity: Option<usize>,
    pub(super) responsiveness: Option<Duration>,
    pub(super) busy_pass_rate: u32,
    /// The delay before a worker is replaced.
    pub(super) stand_down: Option<RetryIntervals>,
    /// How long a request may wait.
    pub(super) queue_timeout: Option<Duration>,
    pub(super) overflow: Overflow,
    pub(super) retries: u32,
    pub(super) has_affinity: bool,
    /// All workers join from outside.
    pub(super) is_external: bool,
}

impl Limits {
    /// Returns how long a worker may take.
    pub(super) fn worker_time(&self) -> Option<Duration> {
        self.responsiveness.map(|time| time.saturating_mul(5))
    }

    /// Returns until when a request may wait that has arrived at this instant.
    pub(super) fn deadline_of(&self, arrived: Instant) -> Option<Instant> {
        self.queue_timeout.map(|timeout| arrived + timeout)
    }

    /// Returns whether a request has waited for too long.
    pub(super) fn has_expired(&self, arrived: Instant, now: Instant) -> bool {
        self.deadline_of(arrived)
            .is_some_and(|deadline| deadline <= now)
    }
}

/// From how many requests on the lines are purged, also if the queue has no limit.
pub(super) const PURGE_MIN: usize = 1024;

/// The greatest number of workers of a spool.
const OBJECTS_MAX: usize = 1 << 20;

/// Returns an error if this is no number of workers.
pub(super) fn judge_objects(
    objects: usize,
    parameters: impl Fn() -> String,
) -> Result<(), SpoolError> {
    let problem = match objects {
        0 => "is less than 1".to_owned(),
        1..=OBJECTS_MAX => return Ok(()),
        _ => format!("is more than {OBJECTS_MAX}"),
    };
    let text = format!("{}: count={objects} {problem}", parameters());
    Err(SpoolError::parameters(text))
}

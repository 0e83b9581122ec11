//! The limits of a spool, and the error of those that are not possible.

use std::fmt;
use std::time::Duration;

use crate::error::SpawnProblem;
use crate::instant::Instant;
use crate::time::RetryIntervals;

/// The limits of a spool.
pub(super) struct SpoolLimits {
    pub(super) capacity: Option<usize>,
    pub(super) responsiveness: Option<Duration>,
    pub(super) busy_pass_rate: u32,
    /// The delay before a worker is replaced.
    pub(super) stand_down: Option<RetryIntervals>,
    /// How long a request may wait.
    pub(super) queue_timeout: Option<Duration>,
    /// A full queue refuses the request that has waited longest, and not the newest.
    pub(super) refuse_oldest: bool,
    pub(super) retries: u32,
    pub(super) has_affinity: bool,
    /// All workers join from outside.
    pub(super) is_external: bool,
}

impl SpoolLimits {
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
const WORKERS_MAX: usize = 1 << 20;

/// Returns an error if this is no number of workers.
pub(super) fn judge_workers(
    workers: usize,
    parameters: impl Fn() -> String,
) -> Result<(), SpoolError> {
    let problem = match workers {
        0 => "is less than 1".to_owned(),
        1..=WORKERS_MAX => return Ok(()),
        _ => format!("is more than {WORKERS_MAX}"),
    };
    let text = format!("{}: count={workers} {problem}", parameters());
    Err(SpoolError::Parameters(text))
}

/// An error of [`SpoolBuilder::spawn`](super::SpoolBuilder::spawn) and of
/// [`Spool::resize`](super::Spool::resize).
///
/// The text shows all parameters, then the one that is out of range:
///
/// ```
/// use greenroom::spool::{Spool, SpoolError};
///
/// greenroom::run(async {
///     let error = Spool::<u32, u32>::external().busy_pass_rate(0).spawn().unwrap_err();
///     assert!(matches!(error, SpoolError::Parameters(_)));
///     assert_eq!(
///         error.to_string(),
///         "unexpected parameters (count=8, size=None, responsiveness=5.0), stand_down=30.0): \
///          busy_pass_rate=0 is less than 1",
///     );
/// });
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpoolError {
    /// A parameter is out of range. The text names it, its value and the limit.
    Parameters(String),
    /// The actor of the spool was not spawned.
    Spawn(SpawnProblem),
}

impl fmt::Display for SpoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpoolError::Parameters(text) => f.write_str(text),
            SpoolError::Spawn(problem) => problem.fmt(f),
        }
    }
}

impl std::error::Error for SpoolError {}

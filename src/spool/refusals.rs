//! Why a spool refuses requests, what it answers then, and how often it did.
//!
//! The texts are those of layer_cake, see docs/origins.md. Each request that came is counted once, when it has its
//! outcome.

use std::time::Duration;

use crate::error::{Load, Refusal, RefusalKind};

/// Why the spool refuses a request. A spool stops as `Aborted` or as `Lost`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusalReason {
    /// This many requests wait.
    Overloaded(usize),
    /// The average time until an answer.
    Busy(Duration),
    /// The limit that has passed.
    TimedOut(Duration),
    Unavailable,
    /// The spool stops, or the worker has left.
    Aborted,
    /// The spool has lost a worker and does not replace it.
    Lost,
}

const REJECTED: &str = "message rejected by spool";

impl From<RefusalReason> for Refusal {
    fn from(reason: RefusalReason) -> Self {
        match reason {
            RefusalReason::Overloaded(pending) => Refusal::of_spool(
                RefusalKind::Overloaded,
                REJECTED,
                format!("overloaded, {pending} pending"),
                Some(Load::Pending(pending)),
            ),
            RefusalReason::Busy(average) => Refusal::of_spool(
                RefusalKind::Busy,
                REJECTED,
                format!("average response time {:.2}", average.as_secs_f64()),
                Some(Load::Average(average)),
            ),
            RefusalReason::TimedOut(limit) => Refusal::of(
                RefusalKind::TimedOut,
                format!("no answer within {} s", limit.as_secs_f64()),
            ),
            RefusalReason::Unavailable => Refusal::of_spool(
                RefusalKind::Unavailable,
                "Service temporarily unavailable",
                "no worker and no immediate prospects of one".to_owned(),
                None,
            ),
            RefusalReason::Aborted => {
                Refusal::of(RefusalKind::Aborted, "user or software interrupt")
            }
            RefusalReason::Lost => Refusal::of(
                RefusalKind::Aborted,
                "the spool has lost a worker and does not replace it",
            ),
        }
    }
}

/// The state of a [`Spool`](super::Spool), as [`Spool::status`](super::Spool::status) returns it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpoolStatus {
    /// The number of workers without a request.
    pub idle: usize,
    /// The number of workers with a request.
    pub busy: usize,
    /// The number of requests in the queue.
    pub waiting: usize,
    /// The number of workers that are still to be made: after a death, or after a `resize`.
    pub standing_down: usize,
    /// The average time until an answer, over the last 32 answers, with the time in the queue. It
    /// is 0 before the first answer.
    pub average: Duration,
    /// How many requests workers have answered, also by a refusal.
    pub answered: u64,
    /// How many requests workers have lost: they died, or dropped the reply.
    pub lost: u64,
    /// How many requests were dropped unhandled, since their askers were gone.
    pub unwanted: u64,
    /// How many requests the spool has refused because the queue was full.
    pub refused_overloaded: u64,
    /// How many requests the spool has refused because the average response time was too long.
    pub refused_busy: u64,
    /// How many requests have ended because the worker gave no answer in time, or the queue timeout
    /// passed.
    pub refused_timed_out: u64,
    /// How many requests the spool has refused because no worker had joined.
    pub refused_unavailable: u64,
    /// How many requests have ended because the spool stopped, or the worker left.
    pub refused_aborted: u64,
    /// How many workers have died. A panic of the function that makes workers counts, too.
    pub deaths: u64,
}

impl SpoolStatus {
    /// Returns how many requests the spool itself has refused, of all kinds.
    pub fn refused(&self) -> u64 {
        self.refused_overloaded
            + self.refused_busy
            + self.refused_timed_out
            + self.refused_unavailable
            + self.refused_aborted
    }
}

//! The state of a market, as programs see it.

use std::time::Duration;

/// The state of a market at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MarketStatus {
    /// The number of jobs that wait. 0 when the market was stopped.
    pub waiting: usize,
    /// How many of `waiting` are not due: those with a [delay](super::Job::after), and those that
    /// are tried again later.
    pub delayed: usize,
    /// The number of jobs that run.
    pub running: usize,
    /// The number of workers that wait for a job.
    pub idle: usize,
    /// The number of workers that were ever created.
    pub created: u64,
    /// The number of workers that have ended.
    pub died: u64,
    /// The number of jobs that a stop has discarded. A [cancelled](super::JobHandle::cancel) job
    /// counts nowhere, unless it ran then and has run to its end.
    pub discarded: u64,
    /// The number of jobs that have run to their end, also by a panic. A job that was tried several
    /// times counts once.
    pub finished: u64,
    /// How many of `finished` have failed: they panicked, or the last attempt of a job with
    /// [retries](super::Job::retries) returned an error.
    pub failed: u64,
    /// How often an attempt of a job has failed that was to be tried again.
    pub retried: u64,
    /// The number of workers for which the system started no thread.
    pub failed_starts: u64,
    /// The longest time that a job has waited before it began, from when it was due.
    pub longest_wait: Duration,
    /// The board has no room for another job.
    pub is_full: bool,
    /// The market was not stopped. A market that is being drained operates until its last job has
    /// ended.
    pub is_operating: bool,
}

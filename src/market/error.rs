//! The errors of a market: of offering a job, and of a job.
//!
//! A job that is not accepted comes back in its error.

use std::fmt;

use crate::contain::Panic;

/// The reason why a market did not accept a job, with the job.
#[non_exhaustive]
pub enum OfferError<J> {
    /// The market was stopped or is being drained, or its runtime is over.
    Stopping(J),
    /// As many jobs of this key wait as the market
    /// [allows](super::MarketBuilder::capacity_per_key).
    KeyBusy(J),
}

/// The reason why a market did not accept a job at once, with the job.
#[non_exhaustive]
pub enum TryOfferError<J> {
    /// The board is full, or other producers wait for room.
    Full(J),
    /// The market was stopped or is being drained, or its runtime is over.
    Stopping(J),
    /// As many jobs of this key wait as the market
    /// [allows](super::MarketBuilder::capacity_per_key).
    KeyBusy(J),
}

/// The reason why a job has no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum JobError {
    /// The job panicked. Its worker goes on.
    Panicked(Panic),
    /// The market was stopped before the job began, or before it was tried again.
    Discarded,
    /// The job was [cancelled](super::JobHandle::cancel) before it began, or before it was tried
    /// again.
    Cancelled,
}

const STOPPING: &str = "the market accepts no more jobs";
const KEY_BUSY: &str = "the key of the job has as many jobs in the market as it may have";

impl<J> OfferError<J> {
    /// Returns the job.
    pub fn into_inner(self) -> J {
        match self {
            OfferError::Stopping(job) | OfferError::KeyBusy(job) => job,
        }
    }
}

impl<J> TryOfferError<J> {
    /// Returns the job.
    pub fn into_inner(self) -> J {
        match self {
            TryOfferError::Full(job)
            | TryOfferError::Stopping(job)
            | TryOfferError::KeyBusy(job) => job,
        }
    }

    /// Returns whether there was no room, so that a later offer may be accepted.
    pub fn is_full(&self) -> bool {
        matches!(self, TryOfferError::Full(_))
    }
}

impl<J> fmt::Display for OfferError<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OfferError::Stopping(_) => STOPPING,
            OfferError::KeyBusy(_) => KEY_BUSY,
        })
    }
}

impl<J> fmt::Display for TryOfferError<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TryOfferError::Full(_) => "the board of the market is full",
            TryOfferError::Stopping(_) => STOPPING,
            TryOfferError::KeyBusy(_) => KEY_BUSY,
        })
    }
}

impl<J> fmt::Debug for OfferError<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OfferError::Stopping(_) => "Stopping(..)",
            OfferError::KeyBusy(_) => "KeyBusy(..)",
        })
    }
}

impl<J> fmt::Debug for TryOfferError<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TryOfferError::Full(_) => "Full(..)",
            TryOfferError::Stopping(_) => "Stopping(..)",
            TryOfferError::KeyBusy(_) => "KeyBusy(..)",
        })
    }
}

impl<J> std::error::Error for OfferError<J> {}
impl<J> std::error::Error for TryOfferError<J> {}

/// A job has no result if it did not begin, and if its last attempt has failed.
const BEGAN: &str = "began, or before it was tried again";

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobError::Panicked(panic) => write!(f, "the job panicked: {panic}"),
            JobError::Discarded => write!(f, "the market was stopped before the job {BEGAN}"),
            JobError::Cancelled => write!(f, "the job was cancelled before it {BEGAN}"),
        }
    }
}

impl std::error::Error for JobError {}

//! What a shutdown came to.

/// What the shutdown of a runtime came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Actors that lived when it began and ended by themselves.
    pub ended: usize,
    /// Actors that were cancelled.
    pub cancelled: usize,
    /// Messages that were accepted and never handled.
    pub unhandled: usize,
    /// Threads that user code did not give back in time. They end when it does.
    pub left_behind: usize,
}

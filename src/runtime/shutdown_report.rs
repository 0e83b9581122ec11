//! The report of a shutdown.

/// The outcome of the shutdown of a runtime, returned by
/// [`Runtime::shutdown`](crate::Runtime::shutdown).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// The number of actors that were live when the shutdown began and ended by themselves.
    pub ended: usize,
    /// The number of actors that were cancelled.
    pub cancelled: usize,
    /// The number of messages that were accepted and never handled.
    pub unhandled: usize,
    /// The number of threads that user code did not return in time. They end when it returns.
    pub left_behind: usize,
}

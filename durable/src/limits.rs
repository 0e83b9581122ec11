//! What a store takes at most.

/// What a store takes at most. What exceeds a limit is refused with
/// [`StoreProblem::TooLarge`](crate::StoreProblem::TooLarge) or
/// [`TooMany`](crate::StoreProblem::TooMany), which name the limit.
///
/// ```
/// use greenroom_durable::Limits;
///
/// let limits = Limits {
///     waiting: 1000,
///     ..Limits::default()
/// };
/// # assert_eq!(limits.payload, 1 << 20);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The bytes of a job, an event or a snapshot, encoded. The default is 1 MiB: put large data
    /// elsewhere, and its name into the job.
    pub payload: usize,
    /// The jobs of a queue that wait. The default is 10 million.
    pub waiting: u64,
    /// The bytes of the name of a queue, a journal or a lease. The default is 200.
    pub name: usize,
    /// The bytes of a key, or of the id of a job. The default is 200.
    pub key: usize,
    /// The queues of a store. The default is 1000.
    pub queues: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            payload: 1 << 20,
            waiting: 10_000_000,
            name: 200,
            key: 200,
            queues: 1000,
        }
    }
}

//! The state of a controller, as programs see it.

/// The state of a controller, as [`Controller::stats`](super::Controller::stats) returns it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LooperStats {
    /// The number of loopers.
    pub loopers: usize,
    /// The number of loopers whose next task could begin or go on.
    pub ready: usize,
    /// The number of loopers whose task a lane runs now.
    pub running: usize,
    /// The number of loopers that wait for a lock.
    pub waiting: usize,
    /// The number of locks that are held.
    pub locks_held: usize,
    /// Whether a task of the world waits or runs, so that no other task begins.
    pub is_world_stopped: bool,
}

//! The room of a queue, with the line of those that wait for it.

use super::line::Line;

pub(super) struct Bound<M> {
    pub(super) capacity: usize,
    /// The number of messages and permits.
    pub(super) len: usize,
    pub(super) line: Line<M>,
}

impl<M> Bound<M> {
    /// Returns whether there is room and no sender waits in the line.
    pub(super) fn has_room(&self) -> bool {
        self.len < self.capacity && self.line.is_empty()
    }
}

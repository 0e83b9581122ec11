//! A machine before its first message.

use std::fmt;

use super::definition::Machine;

/// A machine with its first state, as it is spawned.
///
/// [`machine`](super::machine()) creates it, and [`SpawnError`](crate::SpawnError) returns it.
pub struct Initial<A: Machine> {
    pub(super) machine: A,
    pub(super) state: A::State,
    /// The maximum number of saved messages.
    pub(super) saved: usize,
}

impl<A: Machine> Initial<A> {
    /// Returns the value and the state.
    pub fn into_inner(self) -> (A, A::State) {
        (self.machine, self.state)
    }
}

impl<A: Machine<State: Clone> + Clone> Clone for Initial<A> {
    fn clone(&self) -> Self {
        Initial {
            machine: self.machine.clone(),
            state: self.state.clone(),
            saved: self.saved,
        }
    }
}

impl<A: Machine> fmt::Debug for Initial<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Initial").finish_non_exhaustive()
    }
}

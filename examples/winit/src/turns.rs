//! Counts the turns of the loop, to show that it sleeps when there is nothing to do.

use std::fmt;

#[derive(Default)]
pub struct Turns {
    all: u64,
    /// Those without an event and without a task that was ready.
    idle: u64,
    has_event: bool,
}

impl Turns {
    pub fn event(&mut self) {
        self.has_event = true;
    }

    /// Ends a turn, which has run this many tasks.
    pub fn ran(&mut self, tasks: usize) {
        self.all += 1;
        self.idle += u64::from(!std::mem::take(&mut self.has_event) && tasks == 0);
    }
}

impl fmt::Display for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} turns of the loop, {} idle", self.all, self.idle)
    }
}

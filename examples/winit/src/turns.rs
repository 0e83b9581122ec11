//! Counts the turns of the loop, to show that it sleeps when there is nothing to do.

use std::fmt;

#[derive(Default)]
pub struct Turns {
    all: u64,
    /// Those without an event, a timer or a task.
    idle: u64,
    has_work: bool,
}

impl Turns {
    pub fn begin(&mut self, is_timer: bool) {
        self.has_work = is_timer;
    }

    pub fn event(&mut self) {
        self.has_work = true;
    }

    /// Ends a turn, which has run this many tasks.
    pub fn ran(&mut self, tasks: usize) {
        self.all += 1;
        self.idle += u64::from(!self.has_work && tasks == 0);
    }
}

impl fmt::Display for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} turns of the loop, {} idle", self.all, self.idle)
    }
}

//! The lanes of a controller: which ones wait for work.
//!
//! At most one lane at a time is being woken. It wakes the next one if it finds more to do, so a
//! burst of tasks does not wake all lanes at once.

use super::effects::Effects;
use crate::waker::KeptWaker;

pub(super) struct Lanes {
    /// The greatest number of lanes.
    limit: usize,
    made: usize,
    /// The wakers of the lanes that wait.
    idle: Vec<(usize, KeptWaker)>,
    /// A lane was woken and has not looked for work yet.
    is_waking: bool,
    /// One more lane is to be made.
    is_wanted: bool,
}

impl Lanes {
    pub(super) fn new(limit: usize) -> Self {
        Lanes {
            limit,
            made: 0,
            idle: Vec::new(),
            is_waking: false,
            is_wanted: false,
        }
    }

    /// Returns the number of a new lane, which looks for work.
    pub(super) fn make(&mut self) -> usize {
        self.is_wanted = false;
        self.is_waking = true;
        self.made += 1;
        self.made - 1
    }

    /// Returns whether a lane waits, or may be made.
    pub(super) fn has_spare(&self) -> bool {
        !self.idle.is_empty() || self.made < self.limit
    }

    /// Returns whether one more lane is to be made.
    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Wakes a lane that waits, or lets the steward make one.
    #[inline]
    pub(super) fn summon(&mut self, steward: &mut Option<KeptWaker>, effects: &mut Effects) {
        if self.is_waking || self.is_wanted {
            return;
        }
        if let Some((_, waker)) = self.idle.pop() {
            self.is_waking = true;
            effects.wake(Some(waker));
        } else if self.made < self.limit {
            self.is_wanted = true;
            effects.wake(steward.take());
        }
    }

    /// Sets whether a lane is on its way. Returns whether one was.
    pub(super) fn set_waking(&mut self, is_waking: bool) -> bool {
        std::mem::replace(&mut self.is_waking, is_waking)
    }

    /// Notes that a lane looks for work after it has waited.
    pub(super) fn looks(&mut self, lane: usize) {
        let waits = self.idle.iter().position(|(idle, _)| *idle == lane);
        match waits {
            // It was polled without having been woken by the table.
            Some(at) => drop(self.idle.swap_remove(at)),
            None => self.is_waking = false,
        }
    }

    /// Notes that a lane waits.
    pub(super) fn waits(&mut self, lane: usize, waker: KeptWaker) {
        self.idle.push((lane, waker));
    }

    /// Notes that the runtime has dropped a lane. It makes no others.
    pub(super) fn lost(&mut self, lane: usize) {
        self.looks(lane);
        self.limit = 0;
        self.is_wanted = false;
    }

    /// Wakes all lanes, so that they end.
    pub(super) fn wake_all(&mut self, effects: &mut Effects) {
        for (_, waker) in self.idle.drain(..) {
            effects.wake(Some(waker));
        }
    }
}

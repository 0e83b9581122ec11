//! The starts of a key that count for its rate.
//!
//! They are in the order of their moments. A key has at most as many of them as may begin in a
//! period, since it has its turn only when there are fewer.

use std::collections::VecDeque;
use std::time::Duration;

use crate::instant::Instant;

#[derive(Default)]
pub(super) struct StartRate {
    starts: VecDeque<Instant>,
    /// The moment at which the key is looked at, which is in the moments of the board.
    pub(super) moment: Option<Instant>,
}

impl StartRate {
    /// Notes a start.
    pub(super) fn begin(&mut self, now: Instant) {
        self.starts.push_back(now);
    }

    /// Moves the last start to a later moment.
    pub(super) fn begins_later(&mut self, now: Instant) {
        if let Some(last) = self.starts.back_mut() {
            *last = now;
        }
    }

    /// Forgets the starts whose period is over.
    pub(super) fn forget(&mut self, now: Instant, per: Duration) {
        while self.starts.front().is_some_and(|start| *start + per <= now) {
            self.starts.pop_front();
        }
    }

    /// Returns when another job may begin, or `None` if it may now.
    pub(super) fn full_until(&self, starts: usize, per: Duration) -> Option<Instant> {
        let oldest = self.starts.front().filter(|_| self.starts.len() >= starts);
        oldest.map(|start| *start + per)
    }

    /// Returns when the last start counts no more, or `None` if none counts now.
    pub(super) fn counts_until(&self, per: Duration) -> Option<Instant> {
        self.starts.back().map(|start| *start + per)
    }
}

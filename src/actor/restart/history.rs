//! The restarts of one actor so far, against their intensity.
//!
//! Only the restarts within the window are kept. Of more than a thousand, those that came within a
//! thousandth of the window are one entry.

use std::collections::VecDeque;
use std::time::Duration;

use crate::instant::Instant;

#[derive(Default)]
pub(crate) struct History {
    /// The restarts within the window: when the first ones of each entry came, and how many.
    recent: VecDeque<(Instant, u32)>,
    total: u32,
}

/// The number of entries from which on they are merged.
const FINE: usize = 1000;

impl History {
    /// Counts another restart, if at most `most` are then within the window.
    pub(crate) fn count(&mut self, most: u32, window: Duration) -> bool {
        let now = Instant::now();
        while let Some((since, restarts)) = self.recent.front()
            && now - *since >= window
        {
            self.total -= restarts;
            self.recent.pop_front();
        }
        if self.total >= most {
            return false;
        }
        self.total += 1;
        let is_crowded = self.recent.len() >= FINE;
        match self.recent.back_mut() {
            Some((since, restarts)) if is_crowded && now - *since < window / FINE as u32 => {
                *restarts += 1;
            }
            _ => self.recent.push_back((now, 1)),
        }
        true
    }

    pub(crate) fn clear(&mut self) {
        *self = History::default();
    }
}

//! When a thread that the system has not started is tried again.
//!
//! At most one try is due at a time.

use std::time::Duration;

use crate::sync::mutant;

/// How long one waits before the next try: after each failure twice as long.
#[derive(Default)]
pub(crate) struct StartRetry {
    last: Option<Duration>,
    /// A try is due. At most one is at a time.
    is_armed: bool,
}

impl StartRetry {
    const FIRST: Duration = Duration::from_millis(10);
    const LAST: Duration = Duration::from_secs(1);

    /// Returns the time until the next try, or `None` if one is due already.
    pub(crate) fn arm(&mut self) -> Option<Duration> {
        let was_armed = std::mem::replace(&mut self.is_armed, true);
        if was_armed || mutant("a_failed_start_is_not_tried_again") {
            return None;
        }
        let next = self.last.map_or(Self::FIRST, |last| last * 2);
        self.last = Some(next.min(Self::LAST));
        self.last
    }

    /// Notes that the time is over.
    pub(crate) fn fire(&mut self) {
        self.is_armed = false;
    }

    /// Notes that a thread has started.
    pub(crate) fn has_succeeded(&mut self) {
        self.last = None;
    }
}

//! The waker of the future that a looper runs: it makes the looper ready again.

use std::sync::Arc;
use std::task::Wake;

use super::monitor::Monitor;
use super::seat::Seat;

pub(super) struct Alarm {
    pub(super) seat: Arc<Seat>,
    pub(super) monitor: Arc<Monitor>,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.monitor
            .change(|table, effects| table.woken(&self.seat, effects));
    }
}

//! What the sleep protocol sees of a worker of this policy.
//!
//! It only reads, except that it passes on when a worker sleeps.

use std::time::Duration;

use super::Stealing;
use crate::instant::Instant;
use crate::scheduler::duties::Duties;
use crate::scheduler::sleep::View;

/// The queues and the duties of a worker, as the sleep protocol sees them.
pub(crate) struct PolicyView<'a> {
    policy: &'a Stealing,
    duties: &'a Duties<'a>,
}

impl<'a> PolicyView<'a> {
    pub(crate) fn new(policy: &'a Stealing, duties: &'a Duties<'a>) -> Self {
        PolicyView { policy, duties }
    }
}

impl View for PolicyView<'_> {
    fn has_work(&self) -> bool {
        self.policy.queues.has_work()
    }

    fn has_any(&self, me: usize) -> bool {
        self.policy.queues.has_any(me)
    }

    fn has_outside(&self) -> bool {
        self.policy.queues.has_outside()
    }

    fn deadline(&self) -> Option<Instant> {
        self.duties.deadline()
    }

    fn must_rise(&self) -> bool {
        self.duties.must_rise()
    }

    fn longest_sleep(&self) -> Option<Duration> {
        self.policy.polling.map(|polling| polling.relaxed_sleep)
    }

    fn last_lies_down(&self) {
        self.duties.lies_down();
    }

    fn until_silence(&self) -> Option<Duration> {
        self.duties.until_silence()
    }

    fn find_endless_waits(&self) {
        self.duties.find_endless_waits();
    }
}

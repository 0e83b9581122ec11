//! What the models see of the sleepers, and what always holds of them.

use std::time::Duration;

use super::{ONE_SLEEPER, SEARCHING, WATCHED, WorkerSleep};
use crate::sync::atomic::Ordering;

impl WorkerSleep {
    /// Calls [`Parker::let_time_pass`] for all workers.
    pub(crate) fn let_time_pass(&self, parks: u32, longest: Duration) {
        self.parkers
            .iter()
            .for_each(|parker| parker.let_time_pass(parks, longest));
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.state.load(Ordering::Acquire) & WATCHED != 0
    }

    /// Checks what holds whenever the lock is free; returns how many workers sleep.
    pub(crate) fn audit(&self) -> usize {
        let sleepers = self.sleepers.lock();
        let state = self.state.load(Ordering::Acquire);
        assert_eq!(
            state / ONE_SLEEPER,
            sleepers.stack.len(),
            "sleepers are miscounted"
        );
        let all_sleep = sleepers.stack.len() == self.parkers.len();
        assert!(
            !all_sleep || state & SEARCHING == 0,
            "a sleeper is marked as the searcher"
        );
        let keeper = sleepers.keeper;
        assert!(
            keeper.is_none_or(|keeper| sleepers.stack.contains(keeper)),
            "the keeper is awake"
        );
        assert!(keeper.is_some() || state & WATCHED == 0, "no watcher");
        sleepers.stack.len()
    }
}

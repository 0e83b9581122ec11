//! Drops the runnables that a runtime will no longer run.

use crate::contain::contain;
use crate::runtime::inner::Inner;
use crate::sync::atomic::{Ordering, fence};
use crate::sync::mutant;
use crate::task::Runnable;

impl Inner {
    /// Drops a runnable that no worker will run, unless its task is exempt.
    pub(crate) fn drop_unneeded(&self, runnable: Runnable) {
        if let Some(unneeded) = self.shutdown.spare(runnable) {
            contain(|| drop(unneeded));
        }
    }

    /// Drops every runnable that is in no worker's queue, once no worker is left to run them.
    ///
    /// One thread drains at a time. The same loop drops a runnable that a drop pushes. So a chain
    /// of tasks that hold each other does not become a recursion.
    pub(crate) fn drain(&self) {
        while self.scheduler.has_left() && self.shutdown.begin_drain() {
            let kept = self.scheduler.len_of_other();
            let mut dropped = 0;
            while let Some(runnable) = self.take_left() {
                dropped += 1;
                self.drop_unneeded(runnable);
            }
            self.shutdown.end_drain();
            if mutant("drain_looks_once") {
                return;
            }
            if !mutant("drain_ends_without_fence") {
                // SeqCst pairs with the fence after the push of a thread that saw this drain in
                // progress.
                fence(Ordering::SeqCst);
            }
            let stuck = kept.is_some() && kept == self.scheduler.len_of_other();
            if dropped == 0 && stuck && self.scheduler.shutdown_queue.len() == 0 {
                // The policy does not return the runnables that it holds.
                return;
            }
        }
    }

    fn take_left(&self) -> Option<Runnable> {
        let are_workers_gone = self.shutdown.are_workers_gone();
        self.scheduler.take_left(self, are_workers_gone)
    }
}

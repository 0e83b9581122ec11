//! The executor of a task that may have a name.
//!
//! A task without one need not pay for it: so the name is beside the executor in the task's cell,
//! and not in the header of all tasks.

use std::task::Waker;

use super::executor::{Executor, TaskName};
use super::hooks::TaskHooks;
use super::key::LiveIndex;
use super::runnable::Runnable;

/// An executor, with the name of the one task that it is for.
#[derive(Clone)]
pub(crate) struct Named<H> {
    pub(crate) executor: H,
    pub(crate) name: Option<TaskName>,
}

impl<H: Executor> Executor for Named<H> {
    fn schedule(&self, runnable: Runnable, again: bool) {
        // (EXECUTOR-1) The name is not used once the runnable is handed over.
        self.executor.schedule(runnable, again);
    }

    fn hooks(&self) -> &(dyn TaskHooks + 'static) {
        self.executor.hooks()
    }

    fn name(&self) -> Option<TaskName> {
        self.name.clone()
    }

    fn marks(&self) -> u8 {
        self.executor.marks()
    }

    fn is_observed(&self) -> bool {
        self.executor.is_observed()
    }

    fn track(&self, waker: &Waker) -> Option<LiveIndex> {
        self.executor.track(waker)
    }

    fn untrack(&self, live_index: LiveIndex) {
        self.executor.untrack(live_index);
    }

    fn task_dropped(&self) {
        self.executor.task_dropped();
    }
}

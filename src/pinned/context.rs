//! A pinned thread as its runtime sees it on that thread, and how a stage lets it run.

use std::sync::Arc;
use std::time::Duration;

use super::call::Call;
use super::local::PinnedLocal;
use super::thread::{PinnedThread, ThreadKind};
use crate::instant::Instant;
use crate::runtime::context::{self, Role, ThreadContext};
use crate::runtime::{HostContext, HostThread, Inner};
use crate::timers::Clock;

impl HostContext for PinnedLocal {
    fn runtime(&self) -> &Arc<Inner> {
        self.thread.runtime()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        match self.runtime().is_simulated() {
            false => self.thread.clone(),
            true => self.runtime().clone(),
        }
    }

    fn is_detached(&self) -> bool {
        matches!(self.thread.kind, ThreadKind::Detached)
    }

    fn is_stage(&self) -> bool {
        matches!(self.thread.kind, ThreadKind::Stage(_))
    }

    /// As [`Stage::run_ready`](super::stage::Stage::run_ready), which is called for first.
    fn run_ready(&self) -> usize {
        let mut ready = None;
        // Asked when the timers were fired: what those have woken is ready as well.
        self.run(|ran| ran < *ready.get_or_insert_with(|| self.thread.queued()))
    }

    /// How long this thread may park.
    fn until_next(&self) -> Option<Duration> {
        self.thread.timers.until_next()
    }

    /// (CALL-1) Before it is let run: what comes from now on is called for again.
    fn take_call_back(&self) {
        self.thread.call().take_back();
    }

    /// Drops all that is there, if that was not done.
    fn end(&self) {
        let context = ThreadContext::new(self.thread.runtime(), Role::Pinned(self));
        let _entered = context.enter();
        self.end_at(&context);
    }
}

impl PinnedLocal {
    /// Runs what is ready as long as that goes on, which is told how much that was; says how much.
    pub(super) fn run(&self, mut goes_on: impl FnMut(usize) -> bool) -> usize {
        let thread = &*self.thread;
        let context = ThreadContext::new(thread.runtime(), Role::Pinned(self));
        let _entered = context.enter();
        thread.timers.fire(Instant::now());
        let mut ran = 0;
        while !thread.is_over() && goes_on(ran) {
            let Some(runnable) = thread.pop(self) else {
                break;
            };
            thread.turn(&context, runnable);
            ran += 1;
        }
        if thread.is_over() {
            self.end_at(&context);
        }
        if thread.is_closing_down() {
            thread.runtime().host_progressed();
        }
        if thread.queued() > 0 {
            thread.call().call();
        }
        ran
    }

    fn end_at(&self, context: &ThreadContext<'_>) {
        if self.is_in_turn() {
            // What runs can't be dropped: whoever lets it run ends the rest after that.
            self.thread.close();
            self.thread.finish();
        } else if !self.is_ending.replace(true) {
            self.thread.end(self, context);
        }
    }

    /// Whether this is called in a turn of something that lives there.
    fn is_in_turn(&self) -> bool {
        context::outward(|contexts| {
            let mut running = contexts.filter(|context| context.running.get().is_some());
            running.any(|context| {
                let local = PinnedLocal::of(context);
                local.is_some_and(|local| Arc::ptr_eq(&local.thread, &self.thread))
            })
        })
    }
}

impl PinnedThread {
    /// How the loop of its stage is interrupted.
    pub(super) fn call(&self) -> &Call {
        match &self.kind {
            ThreadKind::Stage(call) => call,
            ThreadKind::Own | ThreadKind::Detached => unreachable!("nobody else lets a thread run"),
        }
    }
}

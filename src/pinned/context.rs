//! `HostContext` for a pinned thread, and how a stage runs what is ready.

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

    /// Does what [`Stage::run_ready`](super::stage::Stage::run_ready) does after it has taken the
    /// call back.
    fn run_ready(&self) -> usize {
        let mut ready = None;
        // Counted after the timers were fired: the tasks that they woke are ready as well.
        self.run(|ran| ran < *ready.get_or_insert_with(|| self.thread.queued()))
    }

    /// Returns how long this thread may park.
    fn until_next(&self) -> Option<Duration> {
        self.thread.timers.until_next()
    }

    /// (CALL-1) Takes the call back before the stage runs, so that later pushes call again.
    fn take_call_back(&self) {
        self.thread.call().take_back();
    }

    /// Drops all that lives there, if that has not begun yet.
    fn end(&self) {
        let context = ThreadContext::new(self.thread.runtime(), Role::Pinned(self));
        let _entered = context.enter();
        self.end_at(&context);
    }
}

impl PinnedLocal {
    /// Runs ready tasks while `goes_on` returns true for the number of turns so far; returns that
    /// number.
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
            // The running task can't be dropped now: `run` ends the rest after the turn.
            self.thread.close();
            self.thread.finish();
        } else if !self.is_ending.replace(true) {
            self.thread.end(self, context);
        }
    }

    /// Returns whether this is called in a turn of a task or an actor of this thread.
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
    /// Returns the call that interrupts the loop of the stage.
    pub(super) fn call(&self) -> &Call {
        match &self.kind {
            ThreadKind::Stage(call) => call,
            ThreadKind::Own | ThreadKind::Detached => unreachable!("only a stage has a loop"),
        }
    }
}

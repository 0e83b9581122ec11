//! A worker: ask the policy for something, run it, and see to the other duties in between.

use std::sync::Arc;

use super::blocking;
use super::chosen::Local;
use super::current::{Place, Role};
use super::inner::Inner;
use super::policy::Duties;
use super::stats::Counters;
use crate::contain::contain;
use crate::instant::Instant;
use crate::sync::mutant;
use crate::task::Runnable;
use crate::timers::Pace;

/// The body of a worker's thread.
pub(super) fn work(inner: &Arc<Inner>, index: usize) {
    if hold_place(inner, index) == Left::Displaced {
        blocking::come(inner);
    }
}

/// Why a thread is no worker any more.
#[derive(PartialEq, Eq)]
pub(super) enum Left {
    /// The runtime is over, and with it the thread.
    Over,
    /// Another thread goes on in its place: it waited in `block_on`, in a turn that has ended.
    Displaced,
}

/// Is worker `index` until the runtime is over, or until another thread is.
pub(super) fn hold_place(inner: &Arc<Inner>, index: usize) -> Left {
    let mut made = None;
    contain(|| made = Some(Local::new(inner, index)));
    let Some(local) = made else {
        go_without(inner, index);
        return Left::Over;
    };
    let left = hold(inner, index, &local);
    // What a policy has for a worker is dropped as user code is.
    contain(|| drop(local));
    left
}

fn hold(inner: &Arc<Inner>, index: usize, local: &Local<'_>) -> Left {
    let place = Place::new(inner, Role::Worker(local));
    let _entered = place.enter();
    let mut worker = Worker {
        inner,
        local,
        place: &place,
        counters: &inner.counters[index],
        is_watched: inner.is_observed(),
        pace: Pace::new(),
        looks_at_left: false,
    };
    let left = worker.run_until_over();
    inner.process().end_copy();
    if left == Left::Displaced {
        if inner.closing.is_settled() {
            // What came to rest on a thread that is given back late.
            inner.cancel_all();
        } else if inner.is_over() {
            // What this turn pushed, when no worker was there any more to take it.
            inner.drain();
        }
        return left;
    }
    worker.drop_all();
    let lingered = inner.closing.linger(|runnable| worker.turn(runnable));
    if lingered || inner.closing.is_settled() {
        // What was exempt until now, or came to rest on a thread that is given back late.
        inner.cancel_all();
        worker.drop_all();
    }
    inner.drain();
    // What the drops pushed on this thread.
    worker.drop_all();
    inner.blocking.crew.leave();
    inner.closing.leave_place();
    left
}

/// The policy has nothing for this worker, so nobody waits for it.
fn go_without(inner: &Inner, index: usize) {
    inner.closing.tell(index);
    inner.closing.tell(index);
    inner.closing.progress();
    inner.blocking.crew.leave();
    inner.closing.leave_place();
}

struct Worker<'a> {
    inner: &'a Arc<Inner>,
    local: &'a Local<'a>,
    place: &'a Place<'a>,
    counters: &'a Counters,
    /// Somebody wants to know of each run.
    is_watched: bool,
    pace: Pace,
    /// In a shutdown: it is the turn of what was queued before, and not of the policy.
    looks_at_left: bool,
}

impl Worker<'_> {
    fn run_until_over(&mut self) -> Left {
        let duties = Duties::new(self.inner, self.local.index());
        loop {
            let is_closing = self.inner.closing.has_begun();
            if is_closing {
                // The shutdown may wait for the turn that has just ended.
                self.inner.closing.progress();
            }
            if self.place.is_displaced() {
                return Left::Displaced;
            }
            if is_closing {
                if self.inner.is_over() {
                    return Left::Over;
                }
                if let Some(runnable) = self.see_to_the_shutdown() {
                    self.run(runnable);
                    continue;
                }
            }
            if self.inner.fire_at_pace(&mut self.pace) && self.place.is_displaced() {
                // A waker has waited in `block_on`.
                return Left::Displaced;
            }
            match self.local.dequeue(&duties) {
                Some(runnable) => self.run(runnable),
                None => self.see_to_duties(),
            }
        }
    }

    /// Has what is queued counted as queued before, and takes of that at every other turn.
    fn see_to_the_shutdown(&mut self) -> Option<Runnable> {
        let Inner { closing, left, .. } = &**self.inner;
        if closing.has_to_tell(self.local.index()) {
            left.mark_before(self.local.drain().into_iter().map(Runnable::into_raw));
            closing.tell(self.local.index());
            closing.progress();
            self.inner.policy.interrupt();
        }
        self.looks_at_left = !self.looks_at_left;
        if self.looks_at_left {
            left.pop().map(super::queues::runnable)
        } else {
            None
        }
    }

    /// There is nothing to run, or something comes before it.
    fn see_to_duties(&self) {
        if self.inner.fire(Instant::now()) > 0 {
            self.local.owe_keeper();
        }
        self.inner.tell_what_is_declared();
    }

    fn run(&mut self, runnable: Runnable) {
        self.turn(runnable);
        if self.is_watched {
            self.inner.turn_ended();
        }
    }

    /// Drops what is left in this worker's queues, but for what is exempt.
    fn drop_all(&self) {
        if mutant("an_ended_worker_keeps_its_queues") {
            return;
        }
        loop {
            let left = self.local.drain();
            if left.is_empty() {
                return;
            }
            // Their drops may push more.
            for runnable in left {
                self.inner.drop_unneeded(runnable);
            }
        }
    }

    fn turn(&self, runnable: Runnable) {
        self.counters.begin_run();
        self.place.running.set(Some(runnable.key()));
        if self.is_watched {
            self.inner.run_observed(Some(self.local), runnable);
        } else {
            contain(|| runnable.run());
        }
        self.place.running.set(None);
    }
}

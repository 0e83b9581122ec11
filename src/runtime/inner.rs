//! What all threads of a runtime share, and the runtime as its tasks see it.
//!
//! Tasks hold the runtime and its queues hold tasks; the cycle is broken by the shutdown, which
//! drops every task that is left.

use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::blocking::Blocking;
use super::builder::Options;
use super::closing::{Closing, State};
use super::current;
use super::queues::Queues;
use super::registry::Registry;
use super::sleep::View;
use crate::contain::contain;
use crate::error::Unjoined;
use crate::pinned::Seats;
use crate::sync::atomic::{AtomicUsize, Ordering, fence};
use crate::sync::mutant;
use crate::task::{CellHome, Header, Home, Key, Runnable, Ticket};
use crate::timers::{Clock, Timers};

pub struct Inner {
    pub(super) options: Options,
    pub(super) queues: Queues,
    pub(super) timers: Timers,
    pub(super) registry: Registry,
    pub(crate) blocking: Blocking,
    pub(crate) seats: Seats,
    pub(super) closing: Closing,
    /// How many clones of [`Runtime`](super::Runtime) keep it going.
    pub(super) counting: AtomicUsize,
}

impl Inner {
    pub(super) fn new(options: Options) -> Self {
        let workers = options.workers;
        Inner {
            blocking: Blocking::new(options.thread_name.clone()),
            options,
            queues: Queues::new(workers),
            timers: Timers::new(),
            // One more than workers, for all other threads.
            registry: Registry::new(workers + 1),
            seats: Seats::new(),
            closing: Closing::new(),
            counting: AtomicUsize::new(1),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.closing.is_over()
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Something has left one of the pinned threads.
    pub(crate) fn leave_seat(&self) {
        self.closing.progress();
    }

    /// The tasks that await the shutdown.
    pub(crate) fn exempted(&self) -> Vec<Key> {
        self.closing.exempted()
    }

    pub(crate) fn had_its_turn(&self, key: Key) {
        self.closing.had_its_turn(key);
    }

    /// Waits until the shutdown is over, but for the tasks that await it.
    pub(crate) fn wait_for_report(&self) {
        self.closing.wait_until(None, State::is_reported);
    }

    /// Which of its workers this thread is.
    fn worker(&self) -> Option<usize> {
        current::with(|place| Some(place?.local_of(self)?.index()))
    }

    /// Drops whatever is in no worker's queue, when nobody is there any more to run it.
    ///
    /// One thread at a time does it: what is pushed by a drop is dropped by the same loop, so a
    /// chain of tasks that hold each other does not become a recursion.
    pub(super) fn drain(&self) {
        while self.queues.has_left() && self.closing.begin_drain() {
            while let Some(entry) = self.queues.pop_left() {
                #[expect(unsafe_code, reason = "an entry is a `Runnable` in its raw form")]
                // SAFETY: (N1) taken from the queue, so it is in our hands alone.
                let runnable = unsafe { Runnable::from_raw(entry) };
                if let Some(unneeded) = self.closing.spare(runnable) {
                    contain(|| drop(unneeded));
                }
            }
            self.closing.end_drain();
            if mutant("drain_looks_once") {
                return;
            }
            if !mutant("drain_ends_without_fence") {
                // SeqCst pairs with the fence in `notify` of whoever pushed and saw us draining.
                fence(Ordering::SeqCst);
            }
        }
    }
}

impl View for Inner {
    fn has_work(&self) -> bool {
        self.queues.has_work()
    }

    fn has_slot(&self, me: usize) -> bool {
        self.queues.has_slot(me)
    }

    fn until_deadline(&self) -> Option<Duration> {
        self.timers.until_next()
    }

    fn must_rise(&self, me: usize) -> bool {
        self.is_over() || (self.closing.has_begun() && !self.queues.is_counted(me))
    }
}

impl Home for Arc<Inner> {
    fn schedule(&self, runnable: Runnable, again: bool) {
        let entry = runnable.into_raw();
        let local = current::with(|place| {
            let local = place.and_then(|place| place.local_of(self));
            local.map(|local| local.push(entry, again)).is_some()
        });
        if !local {
            self.queues.push_outside(entry);
            // The push was followed by a fence: either the shutdown sees it, or we see that. As
            // long as the shutdown looks, nothing is dropped here: whoever wakes a task may hold
            // a lock that the drop of its future takes.
            if self.closing.is_settled() && !mutant("late_push_stays") {
                self.drain();
            }
        }
    }

    fn track(&self, waker: &Waker) -> Option<Ticket> {
        self.registry.track(waker, self.worker(), || self.is_over())
    }

    fn untrack(&self, ticket: Ticket) {
        self.registry.untrack(ticket);
    }

    fn report(&self, unjoined: &Unjoined<'_>) {
        contain(|| (self.options.on_fault)(unjoined));
    }
}

impl CellHome for Arc<Inner> {
    fn enter(&self, cell: NonNull<Header>) -> bool {
        self.registry.enter(cell, self.worker())
    }

    fn leave(&self, cell: NonNull<Header>) {
        self.registry.leave(cell);
        self.closing.progress();
    }

    fn is_closing(&self) -> bool {
        self.closing.has_begun()
    }

    fn cancelled(&self) {
        self.closing.cancelled();
    }

    fn undelivered(&self, messages: usize) {
        self.closing.undelivered(messages);
    }

    fn batch(&self) -> u32 {
        self.options.batch
    }
}

impl Clock for Inner {
    fn timers(&self) -> &Timers {
        &self.timers
    }

    fn next_changed(&self) {
        // A worker that sleeps next sees to the deadline itself; most timers are armed like that.
        let by_worker = current::with(|place| {
            let local = place.and_then(|place| place.local_of(self));
            local.map(|local| local.owe_keeper()).is_some()
        });
        self.queues.sleep.notify_deadline(by_worker);
    }
}
